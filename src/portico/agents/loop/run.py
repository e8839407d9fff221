"""One turn of the built-in agent: an agent run of several steps, or one answer in a chat.

Append, then act, then record: every call is in the log before it runs and ends there. Whatever a model writes can only
ask; what is allowed is decided by the settings, the grants and people.
"""

from collections.abc import Awaitable, Sequence

import msgspec

from portico.agents.loop.answer import ModelError, Reply
from portico.agents.loop.compaction import MARK, REQUEST, SYSTEM, split, summary
from portico.agents.loop.endpoint import CompletionRequest
from portico.agents.loop.guidance import guidance
from portico.agents.loop.model_call import ModelCaller, Way
from portico.agents.loop.protocol import (
    FINISH,
    NOT_FINAL,
    QUOTE,
    Invalid,
    ModelAction,
    ModelStep,
    chat_instructions,
    correction,
    instructions,
    native_tools,
    read_answer,
    read_calls,
    read_text,
    step_schema,
)
from portico.agents.loop.servers import ServerTools
from portico.agents.loop.settings import Current
from portico.agents.loop.tools import TOOLS, CommandFailed, LoopToolbox, PlannedCall, plain
from portico.agents.loop.transcript import Entry, Exchange, UserText, Wrong, compacts, render
from portico.agents.loop.visible_text import VisibleText
from portico.agents.mcp.sign_in import SignInNeeded, asked
from portico.errors import AgentError, Forbidden, PorticoError
from portico.events import ErrorInfo, Json, ToolSpec
from portico.host.approval import Decision
from portico.host.call import Call
from portico.host.customization import server_channel
from portico.host.turn import Turn

INVALID_MAX = 2
"""Invalid or empty answers in a row that end a run."""
_KINDS = {
    "listFiles": "search",
    "readFiles": "read",
    "search": "search",
    "createFile": "edit",
    "editFile": "edit",
    "runCommand": "execute",
}


class LoopRun:
    def __init__(self, turn: Turn, asker: ModelCaller, current: Current, entries: list[Entry]) -> None:
        self._turn = turn
        self._asker = asker
        self._current = current
        self._entries = entries
        self._limit = current.loop.context_chars
        self._spent = 0
        self._native = False
        self._compacted = False
        self._guidance = ""
        """What the project says to whoever works in it."""
        self.steered: list[str] = []

    # -- a chat ------------------------------------------------------------------------------------------------

    async def chat(self) -> None:
        """One streamed answer without tools."""
        turn = self._turn
        system = chat_instructions(turn.session.state.cwd)

        prose = VisibleText(turn, "answer")
        reply = await self._ask(system, (), prose)
        prose.release()
        if not reply.text.strip():
            raise AgentError(f"{self._asker.model} gave an empty answer.")

    # -- an agent run ------------------------------------------------------------------------------------------

    async def pursue(
        self, toolbox: LoopToolbox, max_steps: int, more_tools: Sequence[ToolSpec], servers: ServerTools
    ) -> None:
        """Steps until the model is done, the budget is spent or it talks nonsense twice in a row."""
        self._guidance = await guidance(toolbox.roots)
        own = {tool.name for tool in TOOLS} | {FINISH}
        tools = [*TOOLS, *(tool for tool in more_tools if tool.name not in own)]
        tools += await servers.offer(self._turn, [tool.name for tool in tools])
        self._servers = servers
        wrong = 0
        for number in range(1, max_steps + 1):
            self._take_steering()
            prose = VisibleText(self._turn, f"step{number}")
            reply = await self._ask("", tools, prose)
            try:
                step = self._read(reply, tools)
            except Invalid as error:
                wrong += 1
                self._complain(reply, str(error), tools, wrong)
                continue
            wrong = 0
            if reply.calls or step.summary == reply.text:
                prose.release()
            else:
                prose.finish(step.summary or step.commentary)
            if not step.done:
                await self._act(step, toolbox, own)
                continue
            if reply.calls and step.summary != reply.text:
                self._turn.text(step.summary + "\n", f"end{number}")
            if not self.steered:
                return
            self._entries.append(UserText("assistant", step.summary))
        raise AgentError(f"The goal was not reached in {max_steps} steps. Resume the turn to go on.")

    def _read(self, reply: Reply, tools: Sequence[ToolSpec]) -> ModelStep:
        if reply.calls:
            return read_calls(reply.calls, reply.text)
        if self._native:
            return read_answer(reply.text, [tool.name for tool in tools])
        return read_text(reply.text)

    def _take_steering(self) -> None:
        self._entries += [UserText("user", text) for text in self.steered]
        self.steered.clear()

    def _complain(self, reply: Reply, problem: str, tools: Sequence[ToolSpec], wrong: int) -> None:
        diagnosis = f"{problem} It said: {reply.text[:QUOTE] or '(nothing)'}"
        self._turn.notice(f"The answer is no step: {diagnosis}")
        if wrong >= INVALID_MAX:
            raise AgentError(f"{self._asker.model} gave {wrong} answers in a row that are no step. {diagnosis}")
        self._entries.append(Wrong(reply.text, correction(problem, tools, self._native)))

    async def _ask(self, system: str, tools: Sequence[ToolSpec], prose: VisibleText) -> Reply:
        """`system` is for a chat; a run's own depends on how the model is asked."""
        await self._turn.admit()
        await self._compact(system or self._instructions(tools, True))

        def build(way: Way) -> CompletionRequest:
            self._native = way.mode == "tools" and bool(tools)
            prose.begin("native" if self._native else "text" if tools else "chat")
            return self._request(way, system, tools)

        for _ in range(3):
            try:
                reply = await self._asker.ask(build, prose.report, self._turn.drained, prose.void)
                break
            except ModelError:  # only one that is too long for the model comes here
                self._limit //= 3
                self._turn.notice("The conversation is too long for this model; older results are left out.")
        else:
            raise AgentError(f"The conversation is too long for {self._asker.model}.")
        self._count(reply)
        if reply.finish == "length":
            self._turn.notice("The answer ended at the model's limit of tokens.")
        return reply

    def _request(self, way: Way, system: str, tools: Sequence[ToolSpec]) -> CompletionRequest:
        native = self._native
        endpoint = way.endpoint
        told = system or self._instructions(tools, native)
        limit = min(self._limit, endpoint.context_chars or self._limit)
        self._tell_compaction(limit - len(told))
        return CompletionRequest(
            way.model,
            render(told, self._entries, native=native, limit=limit, pictures=way.pictures),
            tools=native_tools(tools) if native else (),
            schema=step_schema(tools, endpoint.bound) if way.mode == "schema" and tools else None,
            usage=way.usage,
            temperature=self._current.loop.temperature,
            max_tokens=endpoint.max_tokens,
        )

    def _instructions(self, tools: Sequence[ToolSpec], native: bool) -> str:
        session = self._turn.session
        return instructions(session.state.cwd, tools, native, session.folders.reach()) + self._guidance

    async def _compact(self, told: str) -> None:
        """Lets the model tell what is too long in short; where it cannot, old results and turns are left out."""
        limit = min(self._limit, await self._asker.room() or self._limit)
        room = limit - len(told)
        if self._current.loop.compaction == "cut" or not compacts(self._entries, room):
            return
        older, newer = split(self._entries, room)
        text = await self._summarise(older, limit) if len(older) > 1 else ""  # one alone is a summary, or the goal
        if text:
            self._turn.notice(MARK + text)
            self._entries[:] = [summary(text), *newer]

    async def _summarise(self, older: Sequence[Entry], limit: int) -> str:
        def build(way: Way) -> CompletionRequest:
            messages = render(SYSTEM, [*older, UserText("user", REQUEST)], native=False, limit=limit, pictures=False)
            return CompletionRequest(way.model, messages, usage=way.usage, max_tokens=way.endpoint.max_tokens)

        try:
            reply = await self._asker.ask(build, lambda text, reasoning: None, self._turn.drained)
        except ModelError:  # even this is too long for it
            return ""
        self._count(reply)
        return reply.text.strip()

    def _tell_compaction(self, room: int) -> None:
        if not self._compacted and compacts(self._entries, room):
            self._compacted = True
            self._turn.notice(
                f"The conversation is longer than {room} characters: what is oldest is told to the model in short."
            )

    def _count(self, reply: Reply) -> None:
        used = reply.usage
        if used is not None:
            self._turn.usage(
                input=used.input, output=used.output, cached=used.cached, cost=used.cost, model=self._asker.model
            )
            self._spent += used.input + used.output
        budget = self._current.loop.budget_tokens
        if budget and self._spent > budget:
            raise AgentError(f"The budget of {budget} tokens is spent ({self._spent}). Resume the turn to go on.")

    # -- actions -----------------------------------------------------------------------------------------------

    async def _act(self, step: ModelStep, toolbox: LoopToolbox, own: set[str]) -> None:
        results: list[tuple[str, str]] = []
        for action in step.actions:
            results.append((action.tool, await self._do(action, toolbox, own)))
        self._entries.append(Exchange(step, results))

    async def _do(self, action: ModelAction, toolbox: LoopToolbox, own: set[str]) -> str:
        if action.tool == FINISH:
            return NOT_FINAL
        if action.tool in self._servers:
            plan = self._servers.plan(action.tool, action.arguments)
            return await perform(self._turn, action, action.arguments, plan, self._current, self._origin(action.tool))
        if self._is_own(action, own):
            return await perform_own(self._turn, action, toolbox, self._current)
        return await self._delegate(action)

    def _origin(self, tool: str) -> Json:
        """Where a tool of an MCP server comes from, and what shows its calls."""
        server, view = self._servers.server_of(tool), self._servers.view_of(tool)
        channel = server_channel(self._turn.session.id, server)
        return {"server": server, "meta": {"ui": {"resourceUri": view, "channel": channel}} if view else {}}

    def _is_own(self, action: ModelAction, own: set[str]) -> bool:
        return action.tool in own or all(spec.name != action.tool for spec in self._turn.session.tools.specs())

    async def _delegate(self, action: ModelAction) -> str:
        """A tool of the session: the host's or a client's. Whoever owns it decides about it."""
        call = self._turn.session_tool(action.tool, msgspec.json.encode(action.arguments).decode(), id=action.id)
        result = await self._turn.perform(call)
        return result.output if result.ok else f"error: {result.error.message if result.error else 'it failed'}"


async def perform_own(turn: Turn, action: ModelAction, toolbox: LoopToolbox, current: Current) -> str:
    """One call of our own tools."""
    wanted = plain(action.arguments)
    return await perform(turn, action, wanted, toolbox.plan(action.tool, wanted), current)


async def perform(
    turn: Turn,
    action: ModelAction,
    wanted: Json,
    planned: Awaitable[PlannedCall],
    current: Current,
    origin: Json | None = None,
) -> str:
    """A call from its start to its recorded end; returns what the model reads."""
    arguments = msgspec.json.encode(wanted).decode()
    kind = _KINDS.get(action.tool, "other")
    call = turn.tool(action.tool, id=action.id, kind=kind, title=action.tool, **origin or {})
    try:
        plan = await planned
    except PorticoError as error:
        call.ready(arguments, action.tool)
        return await _fail(turn, call, error)
    call.ready(arguments, plan.title)
    try:
        decision = await _decide(call, plan, current)
        if not decision.allowed:
            reason = decision.reason or "a person said no"
            await call.end(ok=False, error=ErrorInfo("denied", f"Refused: {reason}."), outcome="cancelled")
            return f"error: refused ({reason})"
        if plan.changes:
            await turn.settled()
        text = await _acted(plan, call)
    except PorticoError as error:
        return await _fail(turn, call, error, error.by if isinstance(error, SignInNeeded) else "")
    except OSError as error:  # a full disk, an unreadable folder: the model may find another way
        await call.end(ok=False, error=ErrorInfo("agent_failed", f"{error.strerror or error}"))
        return f"error: {error.strerror or error}"
    exit_code = 0 if plan.action.kind == "shell" else None
    await call.end(output=text, title=plan.title, content=plan.content or None, exit_code=exit_code)
    return text


async def _acted(plan: PlannedCall, call: Call) -> str:
    """Does it; a server that wants a token first gets one from a person, or the call fails."""
    while True:
        try:
            text: str = await plan.act(call.output)
            return text
        except SignInNeeded as needed:
            if not await asked(needed, call):
                raise


async def _fail(turn: Turn, call: Call, error: PorticoError, by: str = "") -> str:
    """The model is told; a path that leads out is also written down."""
    if isinstance(error, Forbidden):
        who = f"session:{turn.session.id}"
        await turn.session.host.audit("path.refused", who, tool=call.tool, reason=error.message[:QUOTE])
    exit_code = error.exit_code if isinstance(error, CommandFailed) else None
    said = ErrorInfo(error.code, error.message[:QUOTE])
    await call.end(ok=False, output=error.message, error=said, exit_code=exit_code, by=by)
    return f"error: {error.message}"


async def _decide(call: Call, plan: PlannedCall, current: Current) -> Decision:
    """`agent.require_approval` says who is asked; a rule or a grant that denies counts in any case."""
    wanted = current.agent.require_approval
    asks = wanted == "all" or (wanted == "edits" and plan.changes)
    return await call.approve(
        action=plan.action,
        title=plan.title,
        diff=plan.diff,
        strict=asks,
        passing="" if asks else f"agent.require_approval = {wanted}",
    )
