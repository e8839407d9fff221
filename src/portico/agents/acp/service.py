"""What an ACP agent may ask of us in the middle of a turn: a permission, a file, a command, an answer of a person.

The attack: an agent (or what talked it into something) uses our hands where its own would be watched. So files stay
inside the session's folder, and a write or a command that nobody has allowed in this turn, for this very path or
command, is asked for like any other call. A permission is answered by the kind of the option, never by its place.
"""

import asyncio
import difflib
from collections.abc import Sequence
from pathlib import Path

from portico.agents.acp.update import Track
from portico.agents.agent import Json, Turn
from portico.errors import BadRequest, Forbidden, NotFound
from portico.workspace.files import Files
from portico.workspace.jail import Jail
from portico.workspace.process import environment, run

COMMAND_SECONDS = 24 * 3600.0
"""The agent decides when a command has taken too long; a day is a forgotten one."""
OUTPUT_BYTES = 1024 * 1024
"""Of a command, when the agent names no limit."""
READ_BYTES = 8 * 1024 * 1024
"""Of a file: an agent edits what it has read, so it gets it whole unless it is no source any more."""
_APPROVAL_KINDS = {
    "read": "read",
    "search": "read",
    "fetch": "read",
    "edit": "write",
    "delete": "write",
    "move": "write",
    "execute": "shell",
}


class Cancelled(Exception):
    """Nothing the agent offers is a refusal: the only way to say no is to stop the turn."""


class Command:
    """A command that the agent runs through us."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.output = ""
        self.cut = False
        self.code: int | None = None
        self.killed = False
        self.task: asyncio.Task[None] | None = None

    def hear(self, text: str) -> None:
        whole = (self.output + text).encode("utf-8", "replace")
        self.cut = self.cut or len(whole) > self.limit
        self.output = whole[-self.limit :].decode("utf-8", "ignore")

    @property
    def status(self) -> Json | None:
        if self.killed:
            return {"exitCode": None, "signal": "SIGTERM"}
        return None if self.code is None else {"exitCode": self.code, "signal": None}


class Service:
    """Serves one conversation, in its folders."""

    def __init__(self, cwd: str, folders: Sequence[str] = ()) -> None:
        self._cwd = Path(cwd)
        self._jail = Jail(dict.fromkeys([cwd, *folders]))
        self._files = Files(self._jail)
        self._commands: dict[str, Command] = {}
        self._count = 0
        self._allowed: set[tuple[str, str]] = set()

    def begin(self) -> None:
        """A new turn: what was allowed in the last one counts no more."""
        self._allowed.clear()

    # -- permission --------------------------------------------------------------------------------------------

    async def permit(self, track: Track, options: list[Json], turn: Turn) -> Json:
        track.decided = True
        decision = await track.call.approve(
            _APPROVAL_KINDS.get(track.kind, "other"),
            title=track.title,
            path=track.path,
            command=track.command,
            diff=_diff(track),
        )
        if decision.by == "turn" or turn.cancelled_by is not None:
            return {"outcome": {"outcome": "cancelled"}}
        chosen = choose(options, decision.allowed)
        if chosen is None:
            track.refused = not decision.allowed
            raise Cancelled
        if decision.allowed:
            self._remember(track)
        else:
            track.refused = True
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    def _remember(self, track: Track) -> None:
        for path in [track.path, *track.locations, *(str(diff["path"]) for diff in track.diffs)]:
            if path:
                self._allowed.add(("write", str(self._cwd / path)))
        if track.command:
            self._allowed.add(("shell", track.command))

    async def _ask(self, turn: Turn, kind: str, tool: str, subject: str, diff: str | None = None) -> None:
        if (kind, subject) in self._allowed:
            return
        path, command = (subject, None) if kind == "write" else (None, subject)
        call = turn.tool(tool, title=f"{tool} {subject}", kind="edit" if kind == "write" else "execute")
        decision = await call.approve(kind, path=path, command=command, diff=diff)
        await call.end(ok=decision.allowed, outcome="completed" if decision.allowed else "cancelled")
        if not decision.allowed:
            raise Forbidden(f"The user refused: {subject!r}.")
        self._allowed.add((kind, subject))

    # -- files -------------------------------------------------------------------------------------------------

    async def read(self, params: Json) -> Json:
        first, limit = params.get("line") or 1, params.get("limit")
        last = first + limit - 1 if limit else None
        text = await self._files.read_text(str(params.get("path")), max(first, 1), last, limit=READ_BYTES)
        return {"content": text.text}

    async def write(self, params: Json, turn: Turn) -> Json:
        path, content = str(params.get("path")), str(params.get("content", ""))
        try:
            before = (await self._files.read_text(path)).text
        except NotFound:
            before = ""
        await self._ask(turn, "write", "write_text_file", str(self._cwd / path), unified(path, before, content))
        await self._files.write(path, content.encode("utf-8", "replace"), parents=True)
        return {}

    # -- commands ----------------------------------------------------------------------------------------------

    async def start(self, params: Json, turn: Turn) -> Json:
        program, arguments = str(params.get("command", "")), [str(each) for each in params.get("args") or []]
        line = " ".join([program, *arguments])
        await self._ask(turn, "shell", "terminal", line)
        where = str(params.get("cwd") or self._cwd)
        cwd = self._jail.resolve(where)
        env = {str(each.get("name")): str(each.get("value")) for each in params.get("env") or []}
        command = Command(int(params.get("outputByteLimit") or OUTPUT_BYTES))
        # Some agents send a whole shell line as the command.
        what = [program, *arguments] if arguments or " " not in program else program
        self._count += 1
        ident = f"terminal-{self._count}"
        self._commands[ident] = command
        command.task = turn.session.host.own(_run(command, what, cwd, environment(**env)), f"command {ident}")
        return {"terminalId": ident}

    def output(self, params: Json) -> Json:
        command = self._command(params)
        answer: Json = {"output": command.output, "truncated": command.cut}
        return answer if command.status is None else {**answer, "exitStatus": command.status}

    async def wait(self, params: Json) -> Json:
        command = self._command(params)
        if command.task is not None:
            await asyncio.wait({command.task})
        return command.status or {"exitCode": None, "signal": None}

    async def kill(self, params: Json) -> Json:
        await _stop(self._command(params))
        return {}

    async def release(self, params: Json) -> Json:
        await _stop(self._command(params))
        del self._commands[str(params.get("terminalId"))]
        return {}

    def _command(self, params: Json) -> Command:
        ident = str(params.get("terminalId"))
        if ident not in self._commands:
            raise NotFound("terminal", ident)
        return self._commands[ident]

    async def close(self) -> None:
        for command in self._commands.values():
            await _stop(command)
        self._commands.clear()

    # -- all of them -------------------------------------------------------------------------------------------

    async def serve(self, method: str, params: Json, turn: Turn) -> Json:
        match method:
            case "fs/read_text_file":
                return await self.read(params)
            case "fs/write_text_file":
                return await self.write(params, turn)
            case "terminal/create":
                return await self.start(params, turn)
            case "terminal/output":
                return self.output(params)
            case "terminal/wait_for_exit":
                return await self.wait(params)
            case "terminal/kill":
                return await self.kill(params)
            case "terminal/release":
                return await self.release(params)
            case "elicitation/create":
                return await elicit(params, turn)
        raise BadRequest(f"Portico does not know the method {method!r}.", field="method")


async def _run(command: Command, what: str | list[str], cwd: Path, env: dict[str, str]) -> None:
    finished = await run(what, cwd=cwd, env=env, timeout=COMMAND_SECONDS, on_output=command.hear)
    command.code = finished.code


async def _stop(command: Command) -> None:
    if command.task is not None and not command.task.done():
        command.killed = True
        command.task.cancel()
        await asyncio.wait({command.task})


def choose(options: list[Json], allow: bool) -> str | None:
    """The id of the option to answer with. Once rather than always: what is remembered, and until when, is ours."""
    kinds = ("allow_once", "allow_always") if allow else ("reject_once", "reject_always")
    for kind in kinds:
        for option in options:
            if option.get("kind") == kind:
                return str(option.get("optionId"))
    return None


async def elicit(params: Json, turn: Turn) -> Json:
    """A form or a link becomes a question."""
    schema = params.get("requestedSchema")
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    required = schema.get("required") or [] if isinstance(schema, dict) else []
    fields = [_field(name, shape, name in required) for name, shape in properties.items() if isinstance(shape, dict)]
    answer = await turn.ask(str(params.get("message") or "The agent asks."), fields, params.get("url"))
    if answer.response != "accept":
        return {"action": answer.response}
    return {"action": "accept", "content": {name: _value(value) for name, value in answer.answers.items()}}


def _field(name: str, shape: Json, required: bool) -> Json:
    title = shape.get("title") or name
    field: Json = {"id": name, "title": title, "message": shape.get("description") or title, "required": required}
    field["kind"] = {"boolean": "boolean", "number": "number", "integer": "number"}.get(str(shape.get("type")), "text")
    if isinstance(choices := shape.get("enum") or shape.get("oneOf"), list):
        field["kind"] = "single-select"
        field["options"] = [
            {"id": each.get("const"), "label": each.get("title") or each.get("const")}
            if isinstance(each, dict)
            else {"id": each, "label": str(each)}
            for each in choices
        ]
    return field


def _value(answer: object) -> object:
    """An answer as doors keep it (`{"state", "value": {"value"}}`), down to the bare value."""
    while isinstance(answer, dict) and "value" in answer:
        answer = answer["value"]
    return answer


def _diff(track: Track) -> str | None:
    pieces = [unified(str(diff["path"]), diff["old"] or "", diff["new"]) for diff in track.diffs]
    return "".join(pieces) or None


def unified(path: str, before: str, after: str) -> str:
    names = f"a/{path.lstrip('/')}", f"b/{path.lstrip('/')}"
    return "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), *names))
