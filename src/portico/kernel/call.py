"""One tool call of a running turn, as the agent reports it."""

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import quote

from portico.kernel import events as e
from portico.kernel import faults, limits
from portico.kernel.action import Action
from portico.kernel.action import of as describe
from portico.kernel.approval import Decision, Request
from portico.kernel.events import ErrorInfo, Json, Outcome
from portico.kernel.tool import ToolResult
from portico.kernel.tool_output import cut, missing, pieces

if TYPE_CHECKING:
    from portico.kernel.turn import Turn


class Call:
    def __init__(self, turn: "Turn", ident: str, tool: str, owner: str | None, title: str = "") -> None:
        self.turn = turn
        self.id = ident
        self.tool = tool
        self.owner = owner
        self.done = False
        self.proposed = False
        """Its client has run it, and its result waits for approval."""
        self._input: list[str] = []
        self._ready = False
        self._unsaid: e.ToolReady | None = None
        self._title = title
        self._output: list[str] = []
        self._size = self._left_out = 0
        self._content: list[Json] = []
        self.signing_in: asyncio.Future[e.SignInSettled] | None = None
        """Set while the call waits for a token."""
        self.result: asyncio.Future[ToolResult] = asyncio.get_running_loop().create_future()

    @property
    def input(self) -> str:
        return "".join(self._input)

    def feed(self, delta: str) -> None:
        """Report a piece of the input while the model is still writing it."""
        for piece in pieces(delta):
            self._input.append(piece)
            self._post(e.ToolInput(turn=self.turn.id, part=self.id, text=piece))

    def ready(self, input: str | None = None, title: str = "") -> None:
        """Mark the input (JSON text) as complete. A second time: the call has changed and needs a new answer.

        The event is posted one tick later, so that an immediate `approve` is part of the same commit and no reader
        shows the call as running in between."""
        if input is not None:
            self._input = [input]
        self._ready = True
        self._title = title or self._title
        self.say_ready()
        self._unsaid = e.ToolReady(turn=self.turn.id, call=self.id, input=self.input, title=title)
        asyncio.get_running_loop().call_soon(self.say_ready)

    def say_ready(self) -> None:
        unsaid, self._unsaid = self._unsaid, None
        if unsaid is not None:
            self.turn.report(unsaid)

    async def approve(
        self,
        kind: str = "other",
        *,
        action: Action | None = None,
        title: str = "",
        path: str | None = None,
        command: str | None = None,
        diff: str | None = None,
        options: list[e.Option] | None = None,
        editable: bool = False,
        result: bool = False,
        timeout: float | None = None,
        strict: bool = False,
        passing: str = "",
        meta: Json | None = None,
    ) -> Decision:
        """Request approval for this exact call. A policy, a grant or a person decides; a timeout means no.

        `action` describes everything that the call does; for simple calls `kind`, `path` and `command` are enough."""
        if not self._ready:
            self.ready()
        request = Request(
            action=action or describe(kind, path, command),
            home=self.turn.session.state.cwd,
            tool=self.tool,
            call=self.id,
            title=title or self._title or self.tool,
            input=self.input,
            diff=diff,
            options=options,
            editable=editable,
            result=result,
            timeout=timeout,
            strict=strict,
            passing=passing,
            meta=meta,
            ready=self._unsaid,
        )
        self._unsaid = None
        decision = await self.turn.approve(request)
        if decision.input is not None:
            self._input = [decision.input]
        return decision

    async def sign_in(self, resource: Json, reason: e.SignInReason, scopes: list[str]) -> e.SignInSettled:
        """Wait until a client provides a token (`signed_in`), declines, or cancels the turn."""
        if not self.turn.live or self.turn.withdrawn:
            return e.SignInSettled(turn=self.turn.id, call=self.id, given=False, by="turn")
        self.signing_in = asyncio.get_running_loop().create_future()
        self.turn.waiting += 1
        try:
            self._post(e.SignInAsked(turn=self.turn.id, call=self.id, resource=resource, reason=reason, scopes=scopes))
            return await self.signing_in
        finally:
            self.signing_in = None
            self.turn.waiting -= 1

    def signed_in(self, given: bool, by: str) -> None:
        if self.signing_in is not None and not self.signing_in.done():
            self._post(e.SignInSettled(turn=self.turn.id, call=self.id, given=given, by=by))

    @property
    def title(self) -> str:
        return self._title

    @property
    def shown(self) -> str:
        """The live output up to now."""
        return "".join(self._output)

    def output(self, delta: str) -> None:
        """Report a piece of live output."""
        for piece in pieces(self._fitting(delta)):
            self._output.append(piece)
            self._post(e.ToolOutput(turn=self.turn.id, part=self.id, text=piece))

    def _fitting(self, delta: str) -> str:
        """Cut the delta to the limits of this call and its turn; `end` reports how much was omitted."""
        room = min(len(delta), limits.CALL_BYTES - self._size)
        fits = self.turn.spend(room) if room > 0 else 0
        self._size += fits
        self._left_out += len(delta) - fits
        return delta[:fits]

    def content(self, content: list[Json], by: str = "") -> None:
        """Report structured content: diffs, terminals, sub-agents. Replaces the earlier content."""
        self._content = self._located(content)
        self._post(e.ToolContent(turn=self.turn.id, call=self.id, content=self._content, by=by))

    def _located(self, content: list[Json]) -> list[Json]:
        """Add the location to diffs, so that both sides can be read by it later, and to sub-agents the URI that clients
        use for them."""
        return [self._locate(each, index) for index, each in enumerate(content)]

    def _locate(self, item: Json, index: int) -> Json:
        session = self.turn.session
        if item.get("type") == "diff":
            return {**item, "at": f"{session.id}/{quote(self.id, safe='')}/{index}"}
        child = session.host.find(str(item.get("session"))) if item.get("type") == "subagent" else None
        return {**item, "uri": child.summary.uri} if child is not None and child.summary.uri else item

    async def end(
        self,
        *,
        ok: bool = True,
        output: str | None = None,
        error: ErrorInfo | None = None,
        content: list[Json] | None = None,
        title: str = "",
        detail: str = "",
        outcome: Outcome | None = None,
        by: str = "",
        result: Json | None = None,
        exit_code: int | None = None,
    ) -> None:
        """End the call; without `output` the live output is used. If it is too long for an event, a blob stores all
        of it and the event keeps head and tail."""
        if self.done or not self.turn.live:
            return
        self.done = True
        whole = self._whole(output)
        shown, blob = whole, None
        if len(whole) > limits.TOOL_OUTPUT_CHARS:
            blob = await self.turn.keep(whole.encode("utf-8", "replace")[: limits.BLOB_BYTES])
            shown = cut(whole)
        faults.reach("before-result")
        self._post(
            e.ToolEnded(
                turn=self.turn.id,
                call=self.id,
                ok=ok,
                output=shown,
                blob=blob,
                content=self._content if content is None else self._located(content),
                error=error,
                title=title,
                detail=detail,
                outcome=outcome or ("completed" if ok else "failed"),
                by=by,
                result=result or {},
                exit_code=exit_code,
            )
        )
        self.turn.ended(self)
        if not self.result.done():
            self.result.set_result(ToolResult(ok, whole, error, content or []))

    def _whole(self, output: str | None) -> str:
        if output is None:
            return "".join(self._output) + missing(self._left_out)
        return output[: limits.CALL_BYTES] + missing(len(output) - limits.CALL_BYTES)

    def _post(self, event: e.Event) -> None:
        self.say_ready()
        if not self.done or isinstance(event, e.ToolEnded):
            self.turn.report(event)
