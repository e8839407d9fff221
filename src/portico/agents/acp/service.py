"""What an ACP agent may ask of us in the middle of a turn: a permission, a file, a command, an answer of a person.

The attack: an agent (or what talked it into something) uses our hands where its own would be watched. So files stay
inside the session's folder, and a write or a command that nobody has allowed in this turn, for this very path or
command, is asked for like any other call. A permission is answered by the kind of the option, never by its place.
"""

import difflib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from portico.agents.acp.command import Commands, line_of
from portico.agents.acp.update import Track
from portico.agents.agent import Call, ErrorInfo, Json, Turn
from portico.agents.elicitation import elicit
from portico.errors import BadRequest, Conflict, Forbidden, NotFound, PorticoError
from portico.workspace.files import Files
from portico.workspace.jail import Jail

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


Subject = tuple[str, str]
"""`write` and a path, or `shell` and a command."""


class Cancelled(Exception):
    """Nothing the agent offers is a refusal: the only way to say no is to stop the turn."""


class Service:
    """Serves one conversation, in its folders."""

    def __init__(self, cwd: str, folders: Sequence[str] = ()) -> None:
        self._cwd = Path(cwd)
        jail = Jail(dict.fromkeys([cwd, *folders]))
        self.files = Files(jail)
        self.commands = Commands(jail)
        self._allowed: set[Subject] = set()

    def begin(self) -> None:
        """A new turn: what was allowed in the last one counts no more."""
        self._allowed.clear()
        self.commands.begin()

    # -- permission --------------------------------------------------------------------------------------------

    async def permit(self, track: Track, options: list[Json], turn: Turn) -> Json:
        track.decided = True
        kind = _APPROVAL_KINDS.get(track.kind, "other")
        judged, shown = _subjects(track, kind, self._cwd)  # before anybody answers: the agent may change it meanwhile
        decision = await track.call.approve(
            kind,
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
            self._allowed |= judged if decision.by == "policy" else shown
        else:
            track.refused = True
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    @asynccontextmanager
    async def _asked(
        self, turn: Turn, kind: str, tool: str, subject: str, diff: str | None = None
    ) -> AsyncIterator[Call | None]:
        """Around the deed itself, which only happens if it is allowed. The call that asked for it ends as the deed
        does; there is none where somebody has allowed it before."""
        if (kind, subject) in self._allowed:
            yield None
            return
        path, command = (subject, None) if kind == "write" else (None, subject)
        call = turn.tool(tool, title=f"{tool} {subject}", kind="edit" if kind == "write" else "execute")
        decision = await call.approve(kind, path=path, command=command, diff=diff)
        if not decision.allowed:
            await call.end(ok=False, outcome="cancelled")
            raise Forbidden(f"The user refused: {subject!r}.")
        self._allowed.add((kind, subject))
        try:
            yield call
        except PorticoError as error:
            await call.end(ok=False, error=ErrorInfo(error.code, error.message))
            raise
        await call.end()

    # -- files -------------------------------------------------------------------------------------------------

    async def read(self, params: Json) -> Json:
        first, limit = params.get("line") or 1, params.get("limit")
        last = first + limit - 1 if limit else None
        text = await self.files.read_text(str(params.get("path")), max(first, 1), last, limit=READ_BYTES)
        return {"content": text.text}

    async def write(self, params: Json, turn: Turn) -> Json:
        path, content = str(params.get("path")), str(params.get("content", ""))
        try:
            before = (await self.files.read_text(path)).text
        except NotFound:
            before = ""
        diff = unified(path, before, content)
        async with self._asked(turn, "write", "write_text_file", str(self._cwd / path), diff):
            await self.files.write(path, content.encode("utf-8", "replace"), parents=True)
        return {}

    # -- commands ----------------------------------------------------------------------------------------------

    async def start(self, params: Json, turn: Turn) -> Json:
        async with self._asked(turn, "shell", "terminal", line_of(params)) as call:
            command = await self.commands.start(params, turn.session)
            if call is not None:
                call.content([command.shown])
        return {"terminalId": command.shown["terminal"]}

    async def close(self) -> None:
        await self.commands.close()

    # -- all of them -------------------------------------------------------------------------------------------

    async def serve(self, method: str, params: Json, turn: Turn | None) -> Json:
        """What has begun may be looked at and ended at any time; what is new needs a turn in which it is asked for."""
        match method:
            case "fs/read_text_file":
                return await self.read(params)
            case "terminal/output":
                return self.commands.output(params)
            case "terminal/wait_for_exit":
                return await self.commands.wait(params)
            case "terminal/kill":
                return await self.commands.kill(params)
            case "terminal/release":
                return await self.commands.release(params)
        if turn is None:
            raise Conflict("Nothing runs in this session.")
        match method:
            case "fs/write_text_file":
                return await self.write(params, turn)
            case "terminal/create":
                return await self.start(params, turn)
            case "elicitation/create":
                return await elicit(params, turn)
        raise BadRequest(f"Portico does not know the method {method!r}.", field="method")


def _subjects(track: Track, kind: str, cwd: Path) -> tuple[set[Subject], set[Subject]]:
    """What a permission is for: what a rule judges, and what a person is shown. Nothing that the agent only says beside
    it: a read may name a command, and an edit a second file."""
    path = {("write", str(cwd / track.path))} if track.path else set()
    diffs = {("write", str(cwd / str(diff["path"]))) for diff in track.diffs}
    command = {("shell", track.command)} if track.command else set()
    match kind:
        case "write":
            return path, path | diffs
        case "shell":
            return command, command
        case "other":
            return set(), path | diffs | command
    return set(), set()


def choose(options: list[Json], allow: bool) -> str | None:
    """The id of the option to answer with. Once rather than always: what is remembered, and until when, is ours."""
    kinds = ("allow_once", "allow_always") if allow else ("reject_once", "reject_always")
    for kind in kinds:
        for option in options:
            if option.get("kind") == kind:
                return str(option.get("optionId"))
    return None


def _diff(track: Track) -> str | None:
    pieces = [unified(str(diff["path"]), diff["old"] or "", diff["new"]) for diff in track.diffs]
    return "".join(pieces) or None


def unified(path: str, before: str, after: str) -> str:
    names = f"a/{path.lstrip('/')}", f"b/{path.lstrip('/')}"
    return "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), *names))
