"""The scripted agent: deterministic, programmable, without a model. Tests, demos and authors of jobs use it.

With no script it plays directives (`[[say:hi]]`) and otherwise greets. `demo` is the same agent with a packaged
script that streams, reads and really edits files, asks for approval and fails on request.
"""

import asyncio
import math
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from pathlib import Path

import msgspec

from portico.agents import script as s
from portico.agents.agent import (
    Agent,
    AgentContext,
    AgentDied,
    AgentError,
    AgentInfo,
    Autonomy,
    Call,
    Capabilities,
    ErrorInfo,
    Message,
    Opening,
    Resource,
    SignInRequired,
    Turn,
    Unauthenticated,
)
from portico.features.sandboxes.agent import ConfinableAgent
from portico.kernel.agent import SignInState
from portico.kernel.context import ABOUT, ATTACHED, MESSAGE
from portico.kernel.events import Json, PartKind
from portico.kernel.host import Host
from portico.kernel.state import Part, TextPart, TurnState, client_of
from portico.workspace import patch

_READ_CHARS = 20_000
"""What the demo shows of a file."""


def scripted(context: AgentContext) -> Iterable[Agent]:
    script = s.load(context.script) if context.script else s.AgentScript()
    providers = script.providers or [s.Provider("scripted", "Scripted", "Plays a script; no model behind it.")]
    return [ScriptedAgent(provider, script.rules, context.script_delay) for provider in providers]


def demo(context: AgentContext) -> Iterable[Agent]:
    text = resources.files("portico.agents").joinpath("demo.json").read_text("utf-8")
    script = s.parse(text, "demo.json")
    return [ScriptedAgent(provider, script.rules, context.script_delay) for provider in script.providers]


async def seed(host: Host, workspace: str | None = None) -> None:
    """The sessions that scripts declare are there, with their history, when a host starts for the first time. Where a
    script names no folder they are in the workspace: editors list the sessions of the folder they have open."""
    if host.log.channels("session/"):
        return
    for agent in host.agents.values():
        if isinstance(agent, ScriptedAgent):
            for each in agent.provider.sessions:
                await host.start(
                    by="host",
                    agent=agent.id,
                    model=each.model,
                    cwd=each.cwd or workspace,
                    title=each.title,
                    history=[_seeded(index, turn, host.now()) for index, turn in enumerate(each.turns, 1)],
                )


def _seeded(index: int, turn: s.SeedTurn, now: int) -> TurnState:
    kinds: list[tuple[PartKind, str]] = [("reasoning", turn.reasoning), ("text", turn.answer)]
    parts: list[Part] = [TextPart(f"{kind}-{index}", kind, text, done=True) for kind, text in kinds if text]
    ident, message = f"seed-{index}", Message(turn.prompt)
    return TurnState(ident, message, "host", now, 0, parts, ended=now, outcome="completed")


class ScriptedAgent(ConfinableAgent):
    """It starts no process."""

    def __init__(self, provider: s.Provider, rules: list[s.ScriptRule] | None = None, delay: float = 0.0) -> None:
        self.provider = provider
        self.rules = [rule for rule in rules or [] if rule.provider in (None, provider.id)]
        self.delay = delay
        self.seen = s.Seen()
        self._tokens: dict[str, float] = {}
        """Until when the token of a client is good."""
        self._signed_out: set[str] = set()

    @property
    def id(self) -> str:
        return self.provider.id

    async def describe(self) -> AgentInfo:
        provider = self.provider
        return AgentInfo(
            provider.id,
            provider.name,
            provider.description,
            provider.models or s.DEFAULT_MODELS,
            Capabilities(tools=True, steer=provider.steer, resume=True, fork=True, attachments=True, folders=True),
            config=provider.config,
            missing=self._missing(),
            resources=[self._resource(provider.sign_in)] if provider.sign_in is not None else [],
            label=provider.label,
            customizations=provider.customizations,
        )

    def autonomy(self, option: str, value: object) -> Autonomy:
        name = self.provider.autonomy.get(option, {}).get(str(value), "asks")
        return Autonomy[name.upper().replace("-", "_")]

    def _missing(self) -> str | None:
        wanted = self.provider.sign_in
        if wanted is None or not wanted.required or self._tokens:
            return None
        return f"{self.provider.name} is not signed in to {wanted.name or wanted.resource}."

    def _resource(self, wanted: s.ScriptedSignIn) -> Resource:
        name = wanted.name or self.provider.name
        return Resource(wanted.resource, name, wanted.servers, wanted.scopes, required=wanted.required)

    def sign_in_state(self, resource: str, client: str) -> SignInState:
        if client not in self._tokens:
            return "expired" if client in self._signed_out else "required"
        return "given" if time.monotonic() < self._tokens[client] else "expired"

    async def authenticate(self, resource: str, token: str, seconds: float | None, client: str) -> None:
        wanted = self.provider.sign_in
        if wanted is None or (wanted.token and not secrets.compare_digest(wanted.token.encode(), token.encode())):
            raise Unauthenticated(f"{self.provider.name} does not take this token.")
        self._tokens[client] = time.monotonic() + seconds if seconds is not None else math.inf

    def sign_out(self, client: str) -> None:
        self._tokens.pop(client, None)
        self._signed_out.add(client)

    def check_sign_in(self, client: str) -> None:
        wanted = self.provider.sign_in
        if wanted is not None and wanted.required and self.sign_in_state(wanted.resource, client) != "given":
            raise SignInRequired(f"{self.provider.name} is not signed in to {wanted.name or wanted.resource}.")

    async def complete(self, property: str, query: str) -> list[Json]:
        return self.provider.completions.get(property, [])

    async def open(self, opening: Opening) -> "ScriptedConversation":
        opening.known_as(opening.vendor or f"script-{opening.session}")
        return ScriptedConversation(self, opening)

    async def close(self) -> None:
        pass


class ScriptedConversation:
    def __init__(self, agent: ScriptedAgent, opening: Opening) -> None:
        self._agent = agent
        self._cwd = opening.cwd
        self._folders = [Path(each) for each in (opening.folders if opening.folders is not None else [opening.cwd])]
        self._tools = {tool.name for tool in opening.tools}
        self._client = opening.client
        self._steered: list[str] = []

    async def send(self, message: Message, turn: Turn) -> None:
        self._agent.check_sign_in(self._client)
        if self._agent.delay:
            await asyncio.sleep(self._agent.delay)
        context, _, said = message.text.rpartition(MESSAGE)
        said, _, attached = said.partition(ATTACHED)
        directives = s.directives(said, self._agent.seen)
        if directives is not None:
            await self._follow(directives, turn)
            return
        for rule in self._agent.rules:
            match = re.search(rule.match, said)
            if match:
                around = {"context": context.removeprefix(ABOUT), "attached": attached, "cwd": self._cwd}
                values = {"prompt": said, **around, **match.groupdict()}
                values.update({str(i): group or "" for i, group in enumerate(match.groups(), 1)})
                await Player(turn, self._agent, self._folders, self._tools, values).play(rule.steps)
                self._answer_steering(turn)
                return
        await self._follow(s.Directives(), turn)

    async def steer(self, message: Message) -> bool:
        if self._agent.provider.steer:
            self._steered.append(message.text)
        return self._agent.provider.steer

    def _answer_steering(self, turn: Turn) -> None:
        for text in self._steered:
            turn.text(f"\n\nSteered: {text}")
        self._steered.clear()

    async def cancel(self) -> bool:
        return False  # everything here can be cancelled where it waits

    async def close(self) -> None:
        pass

    async def _follow(self, wanted: s.Directives, turn: Turn) -> None:
        """A turn of directives: reasoning, tool calls, message, idle."""
        await asyncio.sleep(wanted.delay)
        for index in range(wanted.reasoning):
            await self._tick(wanted, turn)
            turn.reasoning(f"{_stamp(wanted)}think{index} ")
        for name, argument in wanted.tools:
            await self._call(turn, name, argument)
        if wanted.die:
            raise AgentDied("The agent's process ended in mid-turn (exit code 1).")
        for piece in _pieces(wanted):
            await self._tick(wanted, turn)
            turn.text(_stamp(wanted) + piece)
        self._answer_steering(turn)
        if wanted.crash:
            raise AgentError("stub crash")
        if wanted.hang:
            await asyncio.get_running_loop().create_future()

    @staticmethod
    async def _tick(wanted: s.Directives, turn: Turn) -> None:
        """Between deltas: the gap, or at least one tick of the loop for everybody else."""
        await asyncio.sleep(wanted.gap)
        await turn.drained()

    @staticmethod
    async def _call(turn: Turn, name: str, argument: str) -> None:
        call = turn.session_tool(name, msgspec.json.encode({"argument": argument}).decode())
        if call.owner is not None or turn.session.tools.is_own(name):
            call.output("...")
        await turn.perform(call)


def _pieces(wanted: s.Directives) -> Iterator[str]:
    for index in range(wanted.deltas):
        if wanted.say is not None:
            yield wanted.say if index == 0 else ""
        else:
            yield "Hello" if index == 0 else "." if index == wanted.deltas - 1 else "!"


def _cut(text: str, pieces: int) -> Iterator[str]:
    """A text in so many pieces of about the same length; none for 0."""
    size = max(1, -(-len(text) // pieces)) if pieces else 0
    for start in range(0, len(text), size) if size else ():
        yield text[start : start + size]


def _stamp(wanted: s.Directives) -> str:
    return f"t={int(time.time() * 1000)};" if wanted.stamp else ""


class Player:
    """Plays the steps of a rule into a turn."""

    def __init__(
        self, turn: Turn, agent: ScriptedAgent, folders: list[Path], tools: set[str], values: dict[str, str]
    ) -> None:
        """`folders`: where it may read and write; relative paths start at the session's own."""
        self._turn = turn
        self._agent = agent
        self._folders = folders
        self._tools = tools
        self._values = values

    async def play(self, steps: list[s.AnyStep]) -> None:
        for step in steps:
            await self._step(step)

    async def _step(self, step: s.AnyStep) -> None:
        turn = self._turn
        match step:
            case s.Say():
                await self._stream(step.text, step.deltas, step.gap, turn.text)
            case s.Reason():
                await self._stream(step.text, step.deltas, step.gap, turn.reasoning)
            case s.NoticeStep():
                turn.notice(self._text(step.text))
            case s.ToolStep():
                await self._tool(step)
            case s.Read():
                await self._read(step)
            case s.Write():
                await self._write(step)
            case s.AskStep():
                await self._ask(step)
            case s.UsageStep():
                turn.usage(input=step.input, output=step.output, cached=step.cached, cost=step.cost, model=step.model)
            case s.Title():
                turn.title(self._text(step.text))
            case s.Fail():
                raise AgentError(self._text(step.message))
            case s.Crash():
                raise AgentError("stub crash")
            case s.Die():
                raise AgentDied("The agent's process ended in mid-turn (exit code 1).")
            case s.Hang():
                await asyncio.get_running_loop().create_future()
            case s.SignOut():
                client = client_of(turn.session.state, turn.id)
                self._agent.sign_out(client)
                self._agent.check_sign_in(client)
            case s.Delay():
                await asyncio.sleep(step.ms / 1000)
            case s.Spawn():
                await self._spawn(step)

    def _text(self, template: str) -> str:
        return s.expand(template, self._values)

    async def _stream(self, template: str, deltas: int, gap: float, emit: Callable[[str], None]) -> None:
        text = self._text(template)
        for piece in _cut(text, max(1, deltas)):
            await asyncio.sleep(gap / 1000)
            emit(piece)

    async def _tool(self, step: s.ToolStep) -> None:
        turn = self._turn
        given = step.name in self._tools if step.session_tool is None else step.session_tool
        arguments = msgspec.json.encode(s.expand_all(step.input, self._values)).decode()
        if given:
            call = turn.session_tool(step.name)
            await self._write_input(call, arguments, step.input_deltas)
            await turn.perform(call)
            return
        call = turn.tool(step.name, title=self._text(step.title), kind=step.kind)
        await self._write_input(call, arguments, step.input_deltas)
        if step.permission is not None and not await self._allowed(call, step.permission):
            await call.end(ok=False, error=ErrorInfo("denied", step.denied), outcome="cancelled")
            return
        for piece in step.partial:
            call.output(self._text(piece))
            await asyncio.sleep(0)
        content = list(s.expand_all(step.content, self._values))
        if step.structured is not None:
            content.append({"type": "structured", "value": s.expand_all(step.structured, self._values)})
        if step.confirm_result and step.output:  # the person who is asked about a result must see exactly that result
            if step.partial:
                content.insert(0, {"type": "text", "text": self._text(step.output)})
            else:
                call.output(self._text(step.output))
        if content:
            call.content(content)
        if (
            step.confirm_result
            and not (await call.approve("other", title=f"Use the result of {step.name}?", result=True)).allowed
        ):
            await call.end(ok=False, error=ErrorInfo("denied", "The result was refused."), outcome="cancelled")
        elif step.fail is not None:
            await call.end(ok=False, error=ErrorInfo("tool_failed", self._text(step.fail)), exit_code=step.exit_code)
        else:
            await call.end(output=self._text(step.output) or None, exit_code=step.exit_code)

    async def _write_input(self, call: Call, arguments: str, deltas: int) -> None:
        for piece in _cut(arguments, deltas):
            call.feed(piece)
            await asyncio.sleep(0)
        call.ready(arguments)

    async def _allowed(self, call: Call, permission: s.ScriptedPermission) -> bool:
        decision = await call.approve(
            permission.kind,
            title=self._text(permission.title),
            path=self._text(permission.path) if permission.path else None,
            command=self._text(permission.command) if permission.command else None,
            diff=self._text(permission.diff) if permission.diff else None,
            editable=permission.editable,
            timeout=permission.timeout,
        )
        return decision.allowed

    def _below(self, name: str) -> Path:
        path = (Path(self._turn.session.state.cwd) / self._text(name)).resolve()
        if not any(path.is_relative_to(folder.resolve()) for folder in self._folders):
            raise AgentError(f"{name!r} is outside the working directory.")
        return path

    async def _read(self, step: s.Read) -> None:
        path = self._below(step.path)
        call = self._turn.tool(
            "read", msgspec.json.encode({"path": path.name}).decode(), kind="read", title=f"Read {path.name}"
        )
        try:
            text = path.read_text("utf-8", "replace")[:_READ_CHARS]
        except OSError as error:
            await call.end(ok=False, error=ErrorInfo("not_found", f"{path.name}: {error.strerror}"))
            self._values["read"] = f"(could not read {path.name})"
            return
        self._values["read"] = text
        await call.end(output=text)

    async def _write(self, step: s.Write) -> None:
        path = self._below(step.path)
        existed = path.is_file()
        before = path.read_text("utf-8", "replace") if existed else ""
        after = before + self._text(step.text) if step.append else self._text(step.text)
        diff = patch.diff(before, after, path.name, old_exists=existed)
        arguments = msgspec.json.encode({"path": path.name, "content": after}).decode()
        call = self._turn.tool("write", arguments, kind="edit", title=f"Write {path.name}")
        if step.ask and not (await call.approve("write", path=str(path), diff=diff)).allowed:
            self._values["written"] = "nothing, since you said no"
            await call.end(ok=False, error=ErrorInfo("denied", "You said no."), outcome="cancelled")
            return
        await self._turn.settled()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Append to the current content: another session may have written to the file in between.
            with path.open("a" if step.append else "w", encoding="utf-8") as file:
                file.write(self._text(step.text))
        except OSError as error:
            self._values["written"] = f"nothing ({error.strerror})"
            await call.end(ok=False, error=ErrorInfo("agent_failed", f"{path.name}: {error.strerror}"))
            return
        self._values["written"] = path.name
        edit = patch.edit(str(path), before if existed else None, after)
        await call.end(output=f"Wrote {path.name} ({len(after)} characters).", content=[edit])

    async def _ask(self, step: s.AskStep) -> None:
        answer = await self._turn.ask(self._text(step.text), step.fields)
        self._values["answer"] = answer.text if answer.response == "accept" else f"({answer.response})"
        if step.echo:
            self._turn.text(f"You said: {self._values['answer']}\n")

    async def _spawn(self, step: s.Spawn) -> None:
        arguments = msgspec.json.encode({"prompt": self._text(step.prompt)}).decode()
        call = self._turn.tool("task", arguments, title=step.title or "Sub-agent", kind="think")
        child = await self._turn.spawn(self._text(step.prompt), title=step.title, call=call, agent=step.agent)
        call.content([{"type": "subagent", "session": child.session.id, "title": step.title, "agent": step.agent}])
        await Player(child, self._agent, self._folders, set(), self._values).play(step.steps)
        error = ErrorInfo("agent_failed", step.fail) if step.fail else None
        await child.finish("failed" if error else "completed", error)
        await call.end(ok=error is None, error=error, output="done" if error is None else "")
