"""One turn of the built-in agent: an agent run of several steps, or one answer in a chat."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from portico.agents.loop.act import begin, fail, perform
from portico.agents.loop.compaction import MARK, REQUEST, SYSTEM, split
from portico.agents.loop.guidance import Guidance, near_rules
from portico.agents.loop.model_call import ModelCaller, Way
from portico.agents.loop.other_names import FINISH
from portico.agents.loop.prompt import system_message
from portico.agents.loop.protocol import (
    FINISH_TOOL,
    NOT_FINAL,
    QUOTE,
    Invalid,
    ModelAction,
    ModelStep,
    chat_instructions,
    correction,
    of_actions,
    read_answer,
    read_calls,
    read_text,
    read_thought,
    step_schema,
)
from portico.agents.loop.record import STEP, Compaction, StepRecord, compacted, is_plain, result_text
from portico.agents.loop.repeats import INFORM, STOP, Repeats, advice
from portico.agents.loop.reply import ModelError, Reply, Said, WireName
from portico.agents.loop.servers import ServerTools
from portico.agents.loop.settings import Current
from portico.agents.loop.tools import CHANGES
from portico.agents.loop.toolset.choice import Toolset
from portico.agents.loop.transcript import Entry, Exchange, UserText, compacts, cut, fitting, size_of
from portico.agents.loop.visible_calls import VisibleCalls
from portico.agents.loop.visible_text import VisibleText
from portico.agents.loop.wires.registry import CODECS
from portico.agents.loop.wires.request import CompletionRequest
from portico.agents.servers import McpServer
from portico.kernel.call import Call
from portico.kernel.customization import server_channel
from portico.kernel.errors import AgentError, BadRequest
from portico.kernel.events import Json, ToolSpec
from portico.kernel.turn import Turn
from portico.sandbox.policy import Confinement

INVALID_MAX = 3
"""How often in a row a model sees what was wrong with its answer before the run ends."""
EMPTY_ANSWER = "<notice>\nYour answer was empty. Answer the last message in words.\n</notice>"
ENDINGS = {
    "length": ("The answer ended at the model's limit of tokens.", "max_tokens"),
    "content_filter": ("The answer was stopped by the content filter of the endpoint.", "refusal"),
}
"""Ends of an answer that a person should know of, and what they are in `TurnEnded.stop`."""
SHORTENED_MAX = 4
"""How often one request is shortened for a model that finds it too long."""
WRONG_CHARS = 4000
"""Of an invalid answer that goes back to the model."""


class LoopRun:
    def __init__(
        self,
        turn: Turn,
        asker: ModelCaller,
        current: Current,
        before: list[Entry],
        said: list[UserText],
        place: str = "",
    ) -> None:
        """`before`: the conversation so far; `said`: what this turn adds; `place`: see `prompt.describe_place`."""
        self._place = place
        self._turn = turn
        self._asker = asker
        self._current = current
        self._entries: list[Entry] = [*before, *said]
        self._added: list[UserText] = list(said)
        """What was added since the last recorded step."""
        self._compactions: list[Compaction] = []
        resumed = turn.session.state.turn(turn.id)
        self._number = resumed.steps[-1].step if resumed is not None and resumed.steps else 0
        self._limit = 0
        """Characters that a request may have; set before each one."""
        self._size = 0
        self._spent = 0
        self._native = False
        self._wire: WireName = "chat"
        self._compacted = False
        self._tool_chars = 0
        """What the declarations of the tools take."""
        self.steered: list[str] = []

    def _add(self, text: UserText) -> None:
        self._entries.append(text)
        self._added.append(text)

    # -- a chat ------------------------------------------------------------------------------------------------

    async def chat(self) -> None:
        """One streamed answer without tools."""
        turn = self._turn
        system = chat_instructions(turn.session.state.cwd)
        for attempt in range(INVALID_MAX):
            prose = VisibleText(turn, f"answer{attempt}" if attempt else "answer")
            reply = await self._ask(system, (), prose)
            prose.release()
            if reply.text.strip():
                break
            await self._record(reply, ModelStep())
            self._add(UserText("user", EMPTY_ANSWER))
        else:
            raise AgentError(f"{self._asker.model} gave an empty answer.")
        await self._record(reply, ModelStep(summary=reply.text, done=True))

    # -- an agent run ------------------------------------------------------------------------------------------

    async def pursue(
        self,
        toolset: Toolset,
        told: Guidance,
        max_steps: int,
        more_tools: Sequence[ToolSpec] = (),
        servers: ServerTools | None = None,
    ) -> str:
        """Steps until the model is done, the budget is spent, or its answers stay invalid. Returns the last answer."""
        self._guidance = told
        self._tools = toolset
        tools = [
            *toolset.specs,
            *(tool for tool in more_tools if tool.name not in toolset and tool.name != FINISH),
        ]
        servers = servers or ServerTools({}, Path(), "", (), _no_server)
        tools += await servers.offer(self._turn, [tool.name for tool in tools])
        self._tool_chars = len(msgspec.json.encode(tools))
        self._servers = servers
        self._repeats = Repeats()
        wrong, left = 0, max_steps
        while True:
            if left == 0:
                if not await self._continues(f"The agent has made {max_steps} steps and is not done."):
                    return ""
                left = max_steps
            left -= 1
            self._take_steering()
            prose = VisibleText(self._turn, f"step{self._number + 1}")
            reply = await self._ask("", tools, prose)
            try:
                step = self._adapted(self._read(reply, tools))
            except Invalid as error:
                wrong += 1
                if wrong > INVALID_MAX and self._native and (words := spoken(reply)):
                    self._turn.notice("The model gave only its reasoning; it is shown as the answer.")
                    self._turn.text(words, f"end{self._number}")
                    await self._record(reply, ModelStep(summary=words, done=True))
                    return words
                await self._complain(reply, str(error), tools, wrong)
                continue
            self._show(reply, step, prose)
            said = await self._record(reply, step)
            if not step.done:
                wrong = wrong + 1 if all(action.problem for action in step.actions) else 0
                if wrong > INVALID_MAX:
                    raise AgentError(
                        f"{self._asker.model} made {wrong} invalid calls in a row. {step.actions[0].problem}"
                    )
                if not await self._act(step, said):
                    return ""
                continue
            if not self.steered:
                return step.summary

    def _read(self, reply: Reply, tools: Sequence[ToolSpec]) -> ModelStep:
        names = [tool.name for tool in tools]
        is_cut = reply.finish == "length"
        if reply.calls:
            return read_calls(reply.calls, reply.text, names, is_cut)
        if not reply.text.strip() and (found := read_thought(reply.thought, names)) is not None:
            return found
        if self._native:
            return read_answer(reply.text, names, is_cut)
        try:
            return read_text(reply.text)
        except Invalid:  # some models keep to the form they know
            step = read_answer(reply.text, names)
            if step.done:
                raise
            return step

    def _adapted(self, step: ModelStep) -> ModelStep:
        """The step with its calls in the form in which they are judged, shown and run. A `finish` under another name
        ends the run, too."""
        if not step.actions:
            return step
        actions = [action if self._is_others(action) else self._tools.adapt(action) for action in step.actions]
        return of_actions(actions, step.commentary)

    def _is_others(self, action: ModelAction) -> bool:
        """A tool of an MCP server or of the session gets its arguments as they are."""
        return action.tool not in self._tools and not self._is_unknown(action)

    def _show(self, reply: Reply, step: ModelStep, prose: VisibleText) -> None:
        """What a person has not seen yet of a valid step."""
        if reply.calls or step.summary == reply.text:
            prose.release()
        elif self._native and step.actions:
            prose.replace(step.commentary)
        else:
            prose.finish(step.summary or step.commentary, "" if step.done else "\n")
        if step.done and reply.calls and step.summary != reply.text:
            self._turn.text(step.summary, f"end{self._number}")

    def _take_steering(self) -> None:
        for text in self.steered:
            self._add(UserText("user", text))
        self.steered.clear()

    async def _complain(self, reply: Reply, problem: str, tools: Sequence[ToolSpec], wrong: int) -> None:
        diagnosis = f"{problem} It said: {reply.text[:QUOTE] or '(nothing)'}"
        self._turn.notice(f"The answer is no step: {diagnosis}")
        if wrong > INVALID_MAX:
            raise AgentError(f"{self._asker.model} gave {wrong} answers in a row that are no step. {diagnosis}")
        shown = cut(reply.text, WRONG_CHARS)
        if shown != reply.text:
            reply = msgspec.structs.replace(reply, message=CODECS[self._wire].plain(shown))
        await self._record(reply, ModelStep(commentary=shown))
        self._add(UserText("user", correction(problem, tools, self._native)))

    async def _continues(self, problem: str) -> bool:
        """Asks a person; without a yes the turn ends here."""
        answer = await self._turn.ask(f"{problem} Continue?")
        if answer.response != "accept" or answer.text.strip().lower() in ("no", "n", "stop", "false"):
            self._turn.notice(f"{problem} It was stopped.")
            return False
        self._repeats.reset()
        if answer.text.strip().lower() not in ("", "yes", "y", "true", "continue"):
            self._add(UserText("user", answer.text))
        return True

    # -- asking the model --------------------------------------------------------------------------------------

    async def _ask(self, system: str, tools: Sequence[ToolSpec], prose: VisibleText) -> Reply:
        """`system` is for a chat; a run's own depends on how the model is asked."""
        await self._turn.admit()
        await self._compact(system or self._instructions(tools, True))
        self._number += 1
        own = tuple(spec.name for spec in self._tools.specs) if tools else ()
        self._shown = shown = VisibleCalls(self._turn, self._number, own)
        asked = ""

        def void() -> None:
            prose.void()
            shown.void()

        def build(way: Way) -> CompletionRequest:
            nonlocal asked
            self._native = way.mode == "tools" and bool(tools)
            self._wire = way.endpoint.wire
            if asked != way.model:
                asked = way.model
                self._turn.step(self._number, way.model)
            prose.begin("native" if self._native else "text" if tools else "chat")
            return self._request(way, system, tools)

        for _ in range(SHORTENED_MAX):
            try:
                reply = await self._asker.ask(build, prose.report, self._turn.drained, void, shown.grow)
                break
            except ModelError as error:  # only one that is too long for the model comes here
                self._asker.learn(error, self._size)
                self._turn.notice(f"{error.message} The conversation is shortened.")
                await self._compact(system or self._instructions(tools, True))
        else:
            raise AgentError(f"The conversation is too long for {self._asker.model}.")
        await shown.end_void()
        self._asker.count(reply, self._size)
        self._count(reply)
        words, self._turn.stop = ENDINGS.get(reply.finish, ("", ""))
        if words:
            self._turn.notice(words)
        return reply

    def _request(self, way: Way, system: str, tools: Sequence[ToolSpec]) -> CompletionRequest:
        native = self._native
        endpoint = way.endpoint
        told = system or self._instructions(tools, native)
        self._tell_compaction(self._limit - len(told))
        entries = fitting(self._entries, self._limit - len(told))
        self._size = len(told) + sum(map(size_of, entries)) + self._tool_chars
        return CompletionRequest(
            way.model,
            endpoint.codec.render(told, entries, native=native, model=way.model, pictures=way.pictures),
            system=told,
            tools=[*tools, FINISH_TOOL] if native else (),
            schema=step_schema(tools, endpoint.bound) if way.mode == "schema" and tools else None,
            usage=way.usage,
            temperature=way.temperature(self._current.loop.temperature),
            max_tokens=way.max_tokens,
            wire=endpoint.wire,
            lacks=way.lacks,
            cache=f"portico-{self._turn.session.id}" if endpoint.cache_keys else "",
            pictures=way.pictures and any(isinstance(each, UserText) and each.pictures for each in entries),
        )

    def _instructions(self, tools: Sequence[ToolSpec], native: bool) -> str:
        session = self._turn.session
        folders, model = session.folders.reach(), self._asker.model
        return system_message(session.state.cwd, tools, native, folders, model, self._place) + self._guidance.text

    async def _record(self, reply: Reply, step: ModelStep) -> Said:
        """Stores the step before anything of it runs."""
        said = Said(self._wire, self._asker.model, reply.message, self._native)
        record = StepRecord(self._added, said, step, self._compactions)
        if not step.actions:
            self._entries.append(UserText("assistant", step.summary or step.commentary, said=said))
        if not is_plain(record, self._turn.message.text, self._number):
            blob = await self._turn.keep(msgspec.json.encode(record))
            self._turn.step(self._number, self._asker.model, blob)
        self._added, self._compactions = [], []
        return said

    async def _compact(self, told: str) -> None:
        """Lets the model summarise what is too long; where it cannot, old results and turns are left out."""
        needed = len(told) + sum(map(size_of, self._entries))
        self._limit = limit = max(2000, await self._asker.room(needed) - self._tool_chars)
        room = limit - len(told)
        if self._current.loop.compaction == "cut" or not compacts(self._entries, room):
            return
        older, newer = split(self._entries, room)
        text = await self._summarise(older, limit) if len(older) > 1 else ""  # one alone is a summary, or the goal
        if text:
            self._turn.notice(MARK + text)
            places = {id(entry): at for at, entry in enumerate(self._entries)}
            change = Compaction(text, [places[id(entry)] for entry in newer])
            self._compactions.append(change)
            self._entries[:] = compacted(self._entries, change)

    async def _summarise(self, older: Sequence[Entry], limit: int) -> str:
        def build(way: Way) -> CompletionRequest:
            entries = fitting([*older, UserText("user", REQUEST)], limit - len(SYSTEM))
            sent = way.endpoint.codec.render(SYSTEM, entries, native=False, pictures=False)
            return CompletionRequest(
                way.model,
                sent,
                usage=way.usage,
                max_tokens=way.max_tokens,
                wire=way.endpoint.wire,
                lacks=way.lacks,
                system=SYSTEM,
            )

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

    async def _act(self, step: ModelStep, said: Said) -> bool:
        """Runs the calls of a step, reads that follow each other at the same time. False: a person stopped it."""
        results: list[tuple[str, str]] = []
        waiting: list[ModelAction] = []
        for action in step.actions:
            if waiting and not (self._tools.only_reads(action) and self._tools.only_reads(waiting[-1])):
                results += await self._together(waiting)
                waiting = []
            waiting.append(action)
        results += await self._together(waiting)
        self._entries.append(Exchange(step, results, said))
        for rules in await near_rules(self._guidance.project, _touched(step), self._entries):
            self._add(rules)
        if shown := self._tools.take_pictures():
            names = ", ".join(name for name, _ in shown)
            self._add(UserText("user", f"<pictures>\n{names}\n</pictures>", [data for _, data in shown]))
        return await self._notice_repeats(step, results)

    async def _together(self, actions: Sequence[ModelAction]) -> list[tuple[str, str]]:
        started = [(action, self._begin(action)) for action in actions]
        texts = await asyncio.gather(*(self._do(action, call) for action, call in started))
        return [(action.tool, text) for (action, _), text in zip(started, texts, strict=True)]

    def _begin(self, action: ModelAction) -> Call | None:
        if action.tool == FINISH and not action.problem:
            return None
        if (shown := self._shown.take(action)) is not None:
            return shown
        if action.problem or action.tool in self._tools or self._is_unknown(action):
            return begin(self._turn, action, self._number)
        if action.tool in self._servers:
            return begin(self._turn, action, self._number, self._origin(action.tool))
        return self._turn.session_tool(action.tool, id=action.id, meta={STEP: self._number})

    async def _do(self, action: ModelAction, call: Call | None) -> str:
        if call is None:
            return NOT_FINAL
        if action.problem:
            call.ready("{}", action.tool)
            return await fail(call, BadRequest(action.problem, field="arguments"))
        if action.tool in self._tools or self._is_unknown(action):
            planned = self._tools.plan(action.tool, action.arguments)
            return await perform(call, action.arguments, planned, self._current)
        if action.tool in self._servers:
            plan = self._servers.plan(action.tool, action.arguments)
            return await perform(call, action.arguments, plan, self._current)
        call.ready(msgspec.json.encode(action.arguments).decode())
        result = await self._turn.perform(call)
        return result_text(result.ok, result.output, result.error)

    def _is_unknown(self, action: ModelAction) -> bool:
        return action.tool not in self._servers and all(
            spec.name != action.tool for spec in self._turn.session.tools.specs()
        )

    def _origin(self, tool: str) -> Json:
        """Where a tool of an MCP server comes from, and what shows its calls."""
        server, view = self._servers.server_of(tool), self._servers.view_of(tool)
        channel = server_channel(self._turn.session.id, server)
        return {"server": server, "meta": {"ui": {"resourceUri": view, "channel": channel}} if view else {}}

    async def _notice_repeats(self, step: ModelStep, results: list[tuple[str, str]]) -> bool:
        done = [(action, text) for action, (_, text) in zip(step.actions, results, strict=True)]
        if any(action.tool in CHANGES and not text.startswith("error:") for action, text in done):
            self._repeats.reset()
        counts = [(self._repeats.note(action, text), action.tool) for action, text in done]
        count, tool = max(counts, default=(0, ""))
        if count >= STOP:
            return await self._continues(f"The agent has called {tool!r} {count} times with the same result.")
        if count >= INFORM:
            self._add(UserText("user", advice(tool, count)))
        return True


def spoken(reply: Reply) -> str:
    """The words of an answer that has nothing but reasoning; some models forget to end it."""
    return "" if reply.text.strip() or reply.calls else reply.thought.strip()


def _touched(step: ModelStep) -> Iterator[str]:
    """The files that the calls of a step name."""
    for action in step.actions:
        wanted = action.arguments
        for value in (wanted.get("path"), *(files if isinstance(files := wanted.get("files"), list) else ())):
            if isinstance(value, str):
                yield value


async def _no_server(server: McpServer) -> Confinement:
    raise AssertionError("a run without servers starts none")
