"""One Copilot session: created or resumed, prompted, steered, aborted."""

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from copilot import CopilotSession, Tool, ToolInvocation, ToolResult
from copilot.rpc import PermissionDecisionApproveOnce, PermissionDecisionReject, PermissionDecisionUserNotAvailable
from copilot.session_events import SessionErrorData, SessionEvent

from portico import surrogates
from portico.agents import attachment
from portico.agents.agent import Call, Decision, Json, Message, Opening, Turn
from portico.agents.copilot.event import Events
from portico.agents.copilot.option import EFFORT, EFFORTS, THINKING
from portico.agents.copilot.runtime import Runtime
from portico.agents.elicitation import elicit
from portico.agents.facts import Problem
from portico.agents.supervisor import Supervisor
from portico.agents.transcript import NOTE, retold
from portico.kernel.action import Action, Kind
from portico.kernel.errors import AgentDied, AgentError, PorticoError, SignInRequired
from portico.workspace.files import Files
from portico.workspace.jail import Jail

if TYPE_CHECKING:
    from portico.agents.copilot.agent import CopilotAgent

logger = logging.getLogger("portico.agents.copilot")

_BYPASSES = ("request_sandbox_bypass", "request_sandbox_permissive", "sandbox_path_grant", "managed_approval_required")
"""Fields that ask for more than the call itself."""


KEY = "api_key_env in [agents.copilot.provider]."


class CopilotConversation:
    def __init__(self, agent: "CopilotAgent", opening: Opening, supervisor: Supervisor[Runtime]) -> None:
        self._agent = agent
        self._supervisor = supervisor
        self._opening = opening
        self._vendor = opening.vendor
        self._runtime: Runtime | None = None
        self._session: CopilotSession | None = None
        self._turn: Turn | None = None
        self._events: Events | None = None
        self._queue: asyncio.Queue[SessionEvent | asyncio.Event] = asyncio.Queue()
        self._prelude = ""
        self._own_tools = frozenset(spec.name for spec in opening.tools)

    # -- opening -----------------------------------------------------------------------------------------------

    async def begin(self) -> Runtime:
        """Connect to a running runtime, and resume the session by the SDK's id or create a new one."""
        await self._agent.need_sign_in(self._supervisor)
        runtime = await self._supervisor.get(self._opening.tell)
        with self._supervisor.opening(runtime):
            return await self._join(runtime)

    async def _join(self, runtime: Runtime) -> Runtime:
        common = self._common()
        session = None
        if self._vendor:
            try:
                session = await runtime.ask(runtime.client.resume_session(self._vendor, **common))
            except AgentDied:
                raise
            except AgentError as error:
                logger.warning("copilot does not take up %s: %s", self._opening.session, error.message)
        if session is None:
            session = await runtime.ask(runtime.client.create_session(**common))
            self._prelude = retold(self._opening.history) if self._opening.history else ""
        session.on(self._hear)
        self._runtime, self._session = runtime, session
        self._vendor = session.session_id
        self._opening.known_as(session.session_id)
        return runtime

    def _common(self) -> dict[str, Any]:
        opening, options = self._opening, self._agent.options
        common: dict[str, Any] = {
            "model": opening.model or None,
            "client_name": "portico",
            "streaming": True,
            "working_directory": opening.cwd,
            "include_sub_agent_streaming_events": True,
            "on_permission_request": self._permit,
            "on_user_input_request": self._ask,
            "on_elicitation_request": self._elicit,
            "tools": [self._tool(spec.name, spec.description, spec.schema) for spec in opening.tools],
            "mcp_servers": self._agent.mcp_servers(opening.session, opening.off),
        }
        if (effort := opening.model_config.get(THINKING) or opening.config.get(EFFORT)) in EFFORTS:
            common[EFFORT] = effort
        if options.provider is not None:
            common["provider"] = options.provider.config()
        return common

    def _tool(self, name: str, description: str, schema: Json) -> Tool:
        # The session's tools ask for themselves where they need to.
        return Tool(name, description, self._perform, schema or {"type": "object"}, skip_permission=True)

    @property
    def _byok(self) -> bool:
        return self._agent.options.provider is not None

    # -- a turn ------------------------------------------------------------------------------------------------

    async def send(self, message: Message, turn: Turn) -> None:
        runtime, config = self._runtime, turn.session.state.config
        if runtime is None or not runtime.usable or config.get(EFFORT) != self._opening.config.get(EFFORT):
            self._opening.history, self._opening.config = turn.earlier, dict(config)
            self._opening.tell = turn.waits
            await self.close()
            runtime = await self.begin()
        assert self._session is not None  # begin made it
        self._queue = asyncio.Queue()
        self._turn, self._events = turn, Events(turn, self._own_tools)
        try:
            with self._supervisor.busy(runtime):
                if self._prelude:
                    turn.notice(NOTE)
                text = self._prelude + message.text + await self._attached(message)
                await runtime.ask(self._session.send(text, attachments=attachments(message) or None))
                self._prelude = ""
                await self._listen(runtime, self._events)
        finally:
            self._turn = self._events = None

    async def _attached(self, message: Message) -> str:
        """Small attached texts as part of the prompt: of an attached file the model sees only the name."""
        files = Files(Jail(dict.fromkeys([self._opening.cwd, *(self._opening.folders or ())])))
        found = [await attachment.read(each, files) for each in message.attachments]
        return "".join(f"\n\nAttached file {each.label}:\n{each.text}" for each in found if each.text is not None)

    async def _listen(self, runtime: Runtime, events: Events) -> None:
        idle = False
        while not idle:
            event = await runtime.process.alive(self._queue.get())
            if isinstance(event, asyncio.Event):
                event.set()
            else:
                idle = await events.apply(event)
        if events.error is not None and events.error.error_type == "authentication" and not self._byok:
            runtime.doomed = True  # the next one looks for a login again
            raise self._agent.signed_out(self._supervisor, events.error.message)
        if events.error is not None and _wants_key(events.error):
            self._agent.key_refused = Problem.now(f"Copilot: {events.error.message} Set another key: {KEY}")
            raise SignInRequired(self._agent.key_refused.text)
        if events.error is None and not events.aborted:
            self._agent.key_refused = Problem()
        if events.error is not None and not events.aborted:
            status = f" ({events.error.status_code})" if events.error.status_code else ""
            raise AgentError(f"Copilot: {events.error.message}{status}")

    def _hear(self, event: SessionEvent) -> None:
        if self._turn is not None:
            self._queue.put_nowait(event)

    async def _caught_up(self) -> None:
        """Wait until all events received so far are in the turn."""
        mark = asyncio.Event()
        self._queue.put_nowait(mark)
        await mark.wait()

    async def steer(self, message: Message) -> bool:
        if self._session is None or self._runtime is None or self._turn is None:
            return False
        await self._runtime.ask(
            self._session.send(message.text, attachments=attachments(message) or None, mode="immediate")
        )
        return True

    async def cancel(self) -> bool:
        if self._session is None or self._runtime is None or self._turn is None:
            return False
        await self._runtime.ask(self._session.abort())
        return True

    async def close(self) -> None:
        session, runtime = self._session, self._runtime
        self._session = self._runtime = None
        if session is not None and runtime is not None and runtime.usable:
            await runtime.ask(session.disconnect())

    # -- what Copilot asks -------------------------------------------------------------------------------------

    async def _permit(self, request: Any, invocation: dict[str, Any]) -> Any:
        """Answer a permission request. No answer, no turn and an error in our code are all a refusal."""
        turn, events = self._turn, self._events
        if turn is None or events is None:
            return PermissionDecisionUserNotAvailable()
        ident = getattr(request, "tool_call_id", None)
        await self._caught_up()
        call = events.call(ident) or events.begin(ident, _tool_name(request), _asked(request))
        decision = await self._approve(call, request)
        if decision.allowed:
            return PermissionDecisionApproveOnce()
        if ident is not None:
            events.refuse(ident)
        return PermissionDecisionReject(feedback=decision.reason or None)

    async def _approve(self, call: Call, request: Any) -> Decision:
        title = str(getattr(request, "intention", "") or "")
        return await call.approve(action=action_of(request), title=title, diff=getattr(request, "diff", None))

    async def _ask(self, request: Any, invocation: dict[str, str]) -> Any:
        if self._turn is None:
            return {"answer": "", "wasFreeform": True}
        choices = request.get("choices") or []
        fields: list[Json] = []
        if choices:
            options = [{"id": choice, "label": choice} for choice in choices]
            free = bool(request.get("allowFreeform", True))
            fields = [{"id": "answer", "kind": "single-select", "options": options, "allowFreeformInput": free}]
        answer = await self._turn.ask(str(request.get("question") or "Copilot asks."), fields)
        text = answer.text if answer.response == "accept" else "(The user did not answer.)"
        return {"answer": text, "wasFreeform": text not in choices}

    async def _elicit(self, context: Any) -> Any:
        """A server of tools wants to know something."""
        return {"action": "cancel"} if self._turn is None else await elicit(context, self._turn)

    async def _perform(self, invocation: ToolInvocation) -> ToolResult:
        """One of the session's own tools."""
        if self._turn is None:
            return ToolResult("Nothing runs in this session.", "failure")
        arguments = surrogates.encode(invocation.arguments or {}).decode()
        try:
            call = self._turn.session_tool(invocation.tool_name, arguments, id=invocation.tool_call_id)
            result = await self._turn.perform(call)
        except PorticoError as error:
            return ToolResult(error.message, "failure", error.message)
        text = result.output or (result.error.message if result.error is not None else "")
        return ToolResult(text, "success" if result.ok else "failure", None if result.ok else text)


def _wants_key(error: SessionErrorData) -> bool:
    return error.error_type == "authentication" or error.status_code == 401


def action_of(request: Any) -> Action:
    """Return the action that a permission request is for. Its intention is text for people and is never judged."""
    odd = [name for name in _BYPASSES if getattr(request, name, None)]
    unclear = f"it wants more: {', '.join(odd)}" if odd else ""
    line = getattr(request, "full_command_text", None)
    if line is not None or str(request.kind) == "shell":
        folder = str(getattr(request, "resolved_working_directory", None) or "")
        return Action("shell", str(line) if line else None, cwd=folder, unclear=unclear)
    edits = [getattr(each, "file_name", None) or getattr(each, "path", None) for each in _edits(request)]
    named = [getattr(request, name, None) for name in ("file_name", "path", "resolved_path")]
    files = tuple(dict.fromkeys(str(each) for each in [*named, *edits] if each))
    kind: Kind = "write" if str(request.kind) == "write" else "read" if str(request.kind) == "read" else "other"
    return Action(kind, files=files, unclear=unclear)


def _edits(request: Any) -> list[Any]:
    found = getattr(request, "file_edits", None)
    return found if isinstance(found, list) else []


def _tool_name(request: Any) -> str:
    names = {"shell": "bash", "write": "edit", "read": "view"}
    return str(getattr(request, "tool_name", None) or names.get(str(request.kind), str(request.kind)))


def _asked(request: Any) -> Json:
    """The subject of a permission, for a call that was not reported before."""
    fields = ("full_command_text", "file_name", "path", "url", "args", "new_file_contents")
    return {name: value for name in fields if (value := getattr(request, name, None)) is not None}


def attachments(message: Message) -> list[Any]:
    return [found for each in message.attachments if (found := _attachment(each)) is not None]


def _attachment(attachment: Json) -> Json | None:
    uri = str(attachment.get("uri") or attachment.get("path") or "")
    path = unquote(urlparse(uri).path) if uri.startswith("file:") else uri
    label = str(attachment.get("label") or attachment.get("displayName") or Path(path).name or "attachment")
    if isinstance(data := attachment.get("data"), str):
        media = str(attachment.get("contentType") or "application/octet-stream")
        return {"type": "blob", "data": data, "mimeType": media, "displayName": label}
    if not path:
        return None
    kind = "directory" if attachment.get("type") == "directory" else "file"
    return {"type": kind, "path": path, "displayName": label}
