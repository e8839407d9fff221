"""What an ACP agent may ask of us in the middle of a turn: a permission, a file, a command, an answer of a person.

The attack: an agent (or content that has manipulated it) acts through the host where its own actions would be watched.
So files stay inside the session's folder, and a write or a command that was not allowed in this turn, for exactly this
content or command, needs an approval like any other call. An approval is for one action: the next one asks again. A
permission is answered by the kind of the option, never by its position.
"""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from portico.agents.acp.action import permission_action, terminal_action
from portico.agents.acp.update import CANCELLED, Track
from portico.agents.agent import Call, ErrorInfo, Json, Turn
from portico.agents.elicitation import elicit
from portico.agents.terminal_commands import TerminalCommands
from portico.features.approvals.coverage import same
from portico.features.terminals.command_turn import CommandOutput
from portico.kernel.action import Action
from portico.kernel.errors import BadRequest, Conflict, Forbidden, NotFound, PorticoError
from portico.workspace import patch
from portico.workspace.files import Files
from portico.workspace.jail import Jail

READ_BYTES = 8 * 1024 * 1024
"""Of a file: an agent edits what it has read, so it gets it whole unless it is no source any more."""


@dataclass(frozen=True)
class AllowedAction:
    """One action that a person has allowed, and what was shown of it."""

    action: Action
    path: str = ""
    """Of a write, from the root."""
    diffs: tuple[Json, ...] = ()

    def allows_write(self, path: str, before: str, content: str) -> bool:
        """Where a diff was shown, only of what it shows: a whole file, or pieces of one."""
        if self.action.kind != "write" or path != self.path:
            return False
        text = before
        for each in self.diffs:
            text = text.replace(each["old"], each["new"], 1) if each["old"] else each["new"]
        return not self.diffs or _lines(content) in (_lines(text), _lines(self.diffs[-1]["new"]))


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").rstrip("\n")


class Cancelled(Exception):
    """No option of the agent is clearly the answer that was given: the turn is stopped."""


class Service:
    """Serves one conversation, in its folders."""

    def __init__(self, cwd: str, folders: Sequence[str] = ()) -> None:
        self._cwd = Path(cwd)
        jail = Jail(dict.fromkeys([cwd, *folders]))
        self._jail = jail
        self.files = Files(jail)
        self.commands = TerminalCommands()
        self._allowed: list[AllowedAction] = []
        self._open: list[tuple[Call, CommandOutput]] = []
        """Calls whose commands run."""
        self.refused = False
        """A request was refused in this turn: some agents then end it as cancelled."""

    def begin(self) -> None:
        """A new turn: what was allowed in the last one counts no more."""
        self._allowed.clear()
        self.refused = False
        self.commands.begin()

    # -- permission --------------------------------------------------------------------------------------------

    async def permit(self, track: Track, options: list[Json], turn: Turn) -> Json:
        track.decided = True
        action = permission_action(track, str(self._cwd))  # before the answer: the agent may change it during the wait
        permissions = self._permissions(action, track.diffs)
        decision = await track.call.approve(action=action, title=track.title, diff=_diff(track))
        if decision.by == "turn" or turn.cancelled_by is not None:
            return {"outcome": {"outcome": "cancelled"}}
        self.refused = self.refused or not decision.allowed
        chosen = choose(options, decision.allowed)
        if chosen is None:
            track.refused = not decision.allowed
            raise Cancelled
        if decision.allowed:
            self._allowed += permissions
        else:
            track.refused = True
        return {"outcome": {"outcome": "selected", "optionId": chosen}}

    def _permissions(self, action: Action, diffs: list[Json]) -> list[AllowedAction]:
        if action.kind != "write":
            return [AllowedAction(action)]
        paths = [self._at(path) for path in action.files]
        return [
            AllowedAction(action, path, tuple(each for each in diffs if self._at(each["path"]) == path))
            for path in paths
        ]

    def _at(self, path: str) -> str:
        return os.path.normpath(self._cwd / path)

    def _use(self, allows: Callable[[AllowedAction], bool]) -> bool:
        """Whether it was allowed in this turn. The permission is used up."""
        found = next((each for each in self._allowed if allows(each)), None)
        if found is not None:
            self._allowed.remove(found)
        return found is not None

    async def _ask(self, turn: Turn, tool: str, action: Action, diff: str | None = None) -> Call:
        """Before the action itself, which only happens if it is allowed. The call that asks for it ends with it."""
        subject = action.shown(str(self._cwd)) or ", ".join(action.files)
        call = turn.tool(tool, title=f"{tool} {subject}", kind="edit" if action.kind == "write" else "execute")
        decision = await call.approve(action=action, diff=diff)
        if not decision.allowed:
            self.refused = True
            await call.end(ok=False, outcome="cancelled")
            raise Forbidden(f"The user refused: {subject!r}.")
        return call

    # -- files -------------------------------------------------------------------------------------------------

    async def read(self, params: Json) -> Json:
        first, limit = params.get("line") or 1, params.get("limit")
        last = first + limit - 1 if limit else None
        text = await self.files.read_text(str(params.get("path")), max(first, 1), last, limit=READ_BYTES)
        return {"content": text.text}

    async def write(self, params: Json, turn: Turn) -> Json:
        path, content = self._at(str(params.get("path"))), str(params.get("content", ""))
        try:
            before, exists = (await self.files.read_text(path)).text, True
        except NotFound:
            before, exists = "", False
        call = None
        if not self._use(lambda each: each.allows_write(path, before, content)):
            diff = patch.diff(before, content, path.lstrip("/"), old_exists=exists)
            call = await self._ask(turn, "write_text_file", Action("write", files=(path,)), diff)
        async with _failing(call):
            await self.files.write(path, content.encode("utf-8", "replace"), parents=True)
        if call is not None:
            await call.end()
        return {}

    # -- commands ----------------------------------------------------------------------------------------------

    async def start(self, params: Json, turn: Turn) -> Json:
        action = terminal_action(params, self._jail)
        allowed = self._use(lambda each: same(each.action, action))
        call = None if allowed else await self._ask(turn, "terminal", action)
        async with _failing(call):
            command = await self.commands.start(action, params.get("outputByteLimit"), turn.session)
        if call is not None:
            call.content([command.shown])
            self._open.append((call, command))
            turn.session.host.own(self._follow(call, command), f"terminal {command.shown['terminal']}")
        return {"terminalId": command.shown["terminal"]}

    async def _follow(self, call: Call, command: CommandOutput) -> None:
        """The call that asked for a command runs as long as the command does."""
        await command.ended.wait()
        await self._end(call, command)

    async def _end(self, call: Call, command: CommandOutput) -> None:
        code = command.status["exitCode"] if command.status is not None else None
        output = "" if self.commands.is_shown(command) else command.output  # not twice
        if not call.done:
            call.content([command.shown])
        if call.turn.cancelled_by is not None:
            await call.end(ok=False, output=output, error=CANCELLED, outcome="cancelled", exit_code=code)
        else:
            await call.end(output=output, exit_code=code)

    async def finish(self) -> None:
        """End the open calls after the turn; commands that it left running continue."""
        for call, command in self._open:
            await self._end(call, command)
        self._open.clear()

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
        if turn.cancelled_by is not None:  # also what was allowed before
            raise Conflict("The turn was cancelled.")
        match method:
            case "fs/write_text_file":
                return await self.write(params, turn)
            case "terminal/create":
                return await self.start(params, turn)
            case "elicitation/create":
                return await elicit(params, turn)
        raise BadRequest(f"Portico does not know the method {method!r}.", field="method")


@asynccontextmanager
async def _failing(call: Call | None) -> AsyncIterator[None]:
    """Around the action: a failure of it is the end of the call that asked for it."""
    try:
        yield
    except PorticoError as error:
        if call is not None:
            await call.end(ok=False, error=ErrorInfo(error.code, error.message))
        raise


def choose(options: list[Json], allow: bool) -> str | None:
    """The id of the option to answer with. Once rather than always: what is remembered, and until when, is ours. An id
    that options of several kinds share means nothing: the agent may take a refusal for its opposite."""
    kinds = ("allow_once", "allow_always") if allow else ("reject_once", "reject_always")
    meant: dict[str, list[object]] = {}
    for option in options:
        meant.setdefault(str(option.get("optionId")), []).append(option.get("kind"))
    for kind in kinds:
        for ident, found in meant.items():
            if all(each == kind for each in found):
                return ident
    return None


def _diff(track: Track) -> str | None:
    return "".join(each["diff"] for each in track.diffs) or None
