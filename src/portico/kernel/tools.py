"""The tools that a session offers to its agent: the host's own and those that connected clients contribute."""

import asyncio
from typing import TYPE_CHECKING

import msgspec

from portico.kernel.call import Call
from portico.kernel.errors import Forbidden, NotFound, PorticoError
from portico.kernel.events import ErrorInfo, Json, ToolSpec
from portico.kernel.tool import ToolResult

if TYPE_CHECKING:
    from portico.kernel.session import Session


class SessionTools:
    def __init__(self, session: "Session") -> None:
        self._session = session

    def specs(self) -> list[ToolSpec]:
        """Return the tools, the host's first: a client cannot use their names."""
        specs = {spec.name: spec for spec in self._session.host.tools_of(self._session.state)}
        for client in self._session.state.clients:
            for spec in client.tools:
                specs.setdefault(spec.name, spec)
        return list(specs.values())

    async def perform(self, call: Call) -> ToolResult:
        if self.is_own(call.tool):
            return await self._run_own(call)
        if call.owner is not None:
            return await call.result
        error = ErrorInfo("not_found", "no such tool")
        await call.end(ok=False, error=error)
        return ToolResult(False, error=error)

    async def _run_own(self, call: Call) -> ToolResult:
        try:
            arguments = msgspec.json.decode(call.input or "{}", type=dict)
            result = await self._session.host.tools[call.tool].run(arguments, call)
        except (msgspec.DecodeError, RecursionError) as error:
            result = ToolResult(False, error=ErrorInfo("bad_request", f"The arguments are not a JSON object: {error}"))
        except PorticoError as error:
            result = ToolResult(False, error=ErrorInfo(error.code, error.message))
        await call.end(ok=result.ok, output=result.output, error=result.error, content=result.content)
        return result

    def is_own(self, name: str) -> bool:
        """Return whether it is a tool of the host that this session has."""
        tool = self._session.host.tools.get(name)
        return tool is not None and tool.offered(self._session.state)

    def owner(self, name: str) -> str | None:
        if self.is_own(name):
            return None
        return next(
            (client.id for client in self._session.state.clients if any(spec.name == name for spec in client.tools)),
            None,
        )

    # -- calls that a client runs --------------------------------------------------------------------------------

    def report(self, call_id: str, content: list[Json], *, client: str, by: str = "") -> None:
        self._owned(call_id, client).content(content, by)

    async def complete(
        self, call_id: str, result: ToolResult, words: Json | None = None, *, client: str, title: str = "", by: str = ""
    ) -> None:
        """End a call that has run. `words`: the original result of the client, if `result` contains less."""
        await _end(self._owned(call_id, client), result, title, by, words)

    async def propose(
        self, call_id: str, result: ToolResult, words: Json, *, client: str, title: str = "", by: str = ""
    ) -> None:
        """Ask for approval before the agent gets the result of a call that has run. Return when it is requested."""
        call = self._owned(call_id, client)
        call.proposed = True
        host = self._session.host
        host.own(self._confirm(call, result, words, title, by), f"result {self._session.id}/{call.id}")
        await asyncio.sleep(0)  # the task starts and posts its first event
        await host.log.flush()

    async def _confirm(self, call: Call, result: ToolResult, words: Json, title: str, by: str) -> None:
        question = f"Use the result of {call.tool}?"
        decision = await call.approve("other", title=question, result=True, meta={"result": words, "by": by})
        if decision.allowed:
            await _end(call, result, title, by if decision.by == "policy" else "", words)
        else:
            await call.end(ok=False, error=ErrorInfo("denied", "The result was refused."), outcome="cancelled")

    async def abandon(self, client: str) -> None:
        """Fail the running calls of a client that has left permanently."""
        turn = self._session.running
        error = ErrorInfo("client_gone", f"The client {client!r} that runs this tool is gone.")
        for call in list(turn.calls.values()) if turn else []:
            if call.owner == client and not call.proposed:
                await call.end(ok=False, error=error)

    def _owned(self, call_id: str, client: str) -> Call:
        turn = self._session.running
        if turn is None or call_id not in turn.calls or turn.calls[call_id].proposed:
            raise NotFound("running tool call", call_id)
        call = turn.calls[call_id]
        if call.owner != client:
            raise Forbidden(f"The call {call_id!r} does not belong to {client!r}.")
        return call


async def _end(call: Call, result: ToolResult, title: str, by: str, words: Json | None) -> None:
    await call.end(
        ok=result.ok, output=result.output, error=result.error, content=result.content, title=title, by=by, result=words
    )
