"""Translate Copilot's events into a turn. Sub-agents report into separate child turns."""

from copilot import session_events as s

from portico import surrogates
from portico.agents.agent import Call, ErrorInfo, Json, Turn
from portico.agents.copilot.message import CopilotMessages
from portico.agents.copilot.notice import notice_of

KINDS = {
    **dict.fromkeys(("bash", "read_bash", "write_bash", "stop_bash", "shell"), "execute"),
    **dict.fromkeys(("create", "edit", "str_replace_editor", "apply_patch"), "edit"),
    **dict.fromkeys(("view", "read", "show_file"), "read"),
    **dict.fromkeys(("grep", "glob", "rg", "search"), "search"),
    **dict.fromkeys(("web_fetch", "fetch"), "fetch"),
    **dict.fromkeys(("task", "report_intent", "think", "update_todo"), "think"),
}


class Events:
    """The events of one turn, in order. `apply` returns True when the agent is idle."""

    def __init__(self, turn: Turn, own_tools: frozenset[str]) -> None:
        self._turn = turn
        self._own_tools = own_tools
        self._calls: dict[str, Call] = {}
        self._refused: set[str] = set()
        self._children: dict[str, Turn] = {}
        """By the id of the tool call that started the sub-agent, and by the sub-agent's own id."""
        self._messages = CopilotMessages()
        self._shells: set[str] = set()
        """Calls whose output is streamed."""
        self.error: s.SessionErrorData | None = None
        self.aborted = False

    async def apply(self, event: s.SessionEvent) -> bool:
        data = event.data
        turn = self._whose(event)
        match data:
            case s.AssistantMessageDeltaData():
                self._messages.grow(turn, "text", data.message_id, data.delta_content, str(event.id))
            case s.AssistantMessageData():
                self._messages.complete(turn, data)
            case s.AssistantReasoningDeltaData():
                self._messages.grow(turn, "reasoning", data.reasoning_id, data.delta_content, str(event.id))
            case s.AssistantReasoningData():
                self._messages.settle(turn, "reasoning", data.reasoning_id, data.content)
            case s.ToolExecutionStartData():
                self._start(data, turn)
            case s.ToolShellOutputData():
                self._shells.add(data.tool_call_id)
                if call := self._calls.get(data.tool_call_id):
                    call.output(data.text)
            case s.ToolExecutionPartialResultData():
                self._snapshot(data)
            case s.ToolExecutionCompleteData():
                await self._complete(data)
            case s.SubagentStartedData():
                await self._spawn(data, event.agent_id)
            case s.SubagentCompletedData():
                await self._finish_child(data.tool_call_id, None)
            case s.SubagentFailedData():
                await self._finish_child(data.tool_call_id, data.error)
            case s.AssistantUsageData():
                turn.usage(
                    input=int(data.input_tokens or 0),
                    output=int(data.output_tokens or 0),
                    cached=int(data.cache_read_tokens or 0),
                    model=data.model,  # its `cost` is the model's multiplier, not dollars
                )
            case s.SessionTitleChangedData():
                turn.title(data.title)
            case s.AssistantTurnRetryData() | s.ModelCallFailureData():
                self._messages.fail(turn, data)
            case s.SessionErrorData():
                self.error = data
            case s.SessionIdleData():
                self.aborted = bool(data.aborted)
                return True
            case _:
                if words := notice_of(data):
                    turn.notice(words)
        return False

    def _snapshot(self, data: s.ToolExecutionPartialResultData) -> None:
        """Handle a snapshot of a call's output so far, from tools that do not stream. Text that a stream cannot retract
        waits for the end of the call."""
        call = self._calls.get(data.tool_call_id)
        if call is None or data.tool_call_id in self._shells:
            return
        shown = call.shown
        if data.partial_output.startswith(shown):
            call.output(data.partial_output[len(shown) :])

    def _whose(self, event: s.SessionEvent) -> Turn:
        """The turn of the sub-agent that sent the event, or ours."""
        if event.agent_id is not None and event.agent_id in self._children:
            return self._children[event.agent_id]
        parent = getattr(event.data, "parent_tool_call_id", None)
        return self._children.get(parent, self._turn) if isinstance(parent, str) else self._turn

    def call(self, ident: str | None) -> Call | None:
        return self._calls.get(ident) if ident is not None else None

    def refuse(self, ident: str) -> None:
        """A person refused this call: report its failure as a refusal."""
        self._refused.add(ident)

    def begin(self, ident: str | None, name: str, arguments: Json) -> Call:
        """Create a call that asks for permission before its start is reported."""
        call = self._turn.tool(name, _json(arguments), id=ident, title=name, kind=KINDS.get(name, "other"))
        if ident is not None:
            self._calls[ident] = call
        return call

    def _start(self, data: s.ToolExecutionStartData, turn: Turn) -> None:
        if data.tool_name in self._own_tools or data.tool_call_id in self._calls:
            return  # shown by the session's own call, or by its permission
        name = data.mcp_tool_name or data.tool_name
        self._calls[data.tool_call_id] = turn.tool(
            name,
            _json(data.arguments),
            id=data.tool_call_id,
            title=data.tool_title or _title(name, data.arguments),
            kind=KINDS.get(name, "other"),
            parent=data.parent_tool_call_id,
        )

    async def _complete(self, data: s.ToolExecutionCompleteData) -> None:
        call = self._calls.pop(data.tool_call_id, None)
        if call is None:
            return
        output = data.result.content if data.result is not None else None
        exit_code = data.shell_execution.exit_code if data.shell_execution is not None else None
        if data.success:
            await call.end(output=output, exit_code=exit_code)
        elif data.tool_call_id in self._refused:
            await call.end(ok=False, error=ErrorInfo("denied", "The call was refused."), outcome="cancelled")
        else:
            message = data.error.message if data.error is not None else "The tool failed."
            await call.end(ok=False, output=output, error=ErrorInfo("tool_failed", message), exit_code=exit_code)

    async def _spawn(self, data: s.SubagentStartedData, agent: str | None) -> None:
        call = self._calls.get(data.tool_call_id)
        prompt = call.input if call is not None else data.agent_description
        child = await self._turn.spawn(prompt, title=data.agent_display_name, call=call, agent=data.agent_name)
        self._children[data.tool_call_id] = child
        if agent is not None:
            self._children[agent] = child
        if call is not None:
            title = data.agent_display_name
            shown = {"type": "subagent", "session": child.session.id, "title": title, "agent": data.agent_name}
            call.content([shown])

    async def _finish_child(self, call: str, error: str | None) -> None:
        child = self._children.get(call)
        if child is not None:
            await child.finish("failed" if error else "completed", ErrorInfo("agent_failed", error) if error else None)


def _title(name: str, arguments: object) -> str:
    if isinstance(arguments, dict):
        for key in ("description", "command", "path", "file_path", "pattern", "intent"):
            if isinstance(value := arguments.get(key), str):
                return f"{name}: {value.splitlines()[0][:100] if value else ''}"
    return name


def _json(value: object) -> str:
    return value if isinstance(value, str) else surrogates.encode(value if value is not None else {}).decode()
