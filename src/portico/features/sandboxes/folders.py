"""The sandbox that was last chosen in each folder. New conversations there have it, in every client.

A session keeps the sandbox it was started with: each choice has its time, and a session uses the last one before its
start. The choices are events of the host's channel, and a stored value in the same commit.
"""

import asyncio
import os
import sys
from collections.abc import Iterable

import msgspec
from msgspec import Struct

from portico.features.sandboxes.events import SandboxChosen
from portico.kernel.errors import Forbidden
from portico.kernel.events import HOST, Json, Record
from portico.kernel.log.log import Log
from portico.kernel.session import Session
from portico.sandbox.policy import MODES, Mode

FOLDERS = 1_000
"""Folders that are remembered: 100 KB. The ones that were chosen first are forgotten first."""
CHOICES = 50
"""Choices of one folder: sessions that are older than all of them have the default of the host."""
_KEY = "sandbox.folders"
_ORIGINS = "sandbox.origins"


class SessionFolders:
    """Where the folders of a session lead. The attack: a confined program of another session replaces the folder of
    this one (a work tree below its own) with a link, and this session's sandbox would show what the link leads to."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._known: dict[str, dict[str, str]] = {}

    async def check(self, session: Session, folders: Iterable[str]) -> None:
        """Raise Forbidden if a folder leads elsewhere than when the session first had a sandbox."""
        known = self._known.get(session.id)
        if known is None:
            data = await self._log.get_kv(session.channel, _ORIGINS)
            known = self._known[session.id] = msgspec.json.decode(data, type=dict[str, str]) if data else {}
        found = await asyncio.to_thread(_real, list(folders))
        for folder, real in found.items():
            if known.get(folder, real) != real:
                raise Forbidden(
                    f"The folder {folder!r} leads to {real!r} now, and led to {known[folder]!r} when the session first"
                    " had a sandbox. Move it back, or start a new session."
                )
        if not found.keys() <= known.keys():
            known |= found
            self._log.put_kv(session.channel, _ORIGINS, msgspec.json.encode(known))


def _real(folders: list[str]) -> dict[str, str]:
    return {each: os.path.realpath(each) for each in folders}


class ChoiceAt(Struct, frozen=True, array_like=True):
    time: int
    mode: str


class FolderChoices:
    def __init__(self, log: Log) -> None:
        self._log = log
        self._choices: dict[str, list[ChoiceAt]] = {}
        self._writing = asyncio.Lock()

    async def read(self) -> None:
        data = await self._log.get_kv(HOST, _KEY)
        if data is not None:
            self._choices = msgspec.json.decode(data, type=dict[str, list[ChoiceAt]])

    def latest(self, folder: str) -> Mode | None:
        return self.of(folder, sys.maxsize)

    def of(self, folder: str, time: int) -> Mode | None:
        """Return what was chosen for the folder before this time; None: nothing."""
        known = [each.mode for each in self._choices.get(normal_folder(folder), ()) if each.time < time]
        return next((mode for mode in MODES if known and mode == known[-1]), None)

    def apply(self, record: Record) -> None:
        """Called with each committed choice, also of other hosts on the same log."""
        event = record.event
        assert isinstance(event, SandboxChosen)
        self._choices = _with(self._choices, event, record.time)

    async def choose(self, folder: str, mode: str, by: str, now: int) -> None:
        event = SandboxChosen(folder=normal_folder(folder), mode=mode, by=by)
        async with self._writing:  # the stored value has all choices
            self._log.put_kv(HOST, _KEY, msgspec.json.encode(_with(self._choices, event, now)), bound=True)
            await self._log.append(HOST, event)


def _with(known: dict[str, list[ChoiceAt]], event: SandboxChosen, time: int) -> dict[str, list[ChoiceAt]]:
    before = known.get(event.folder, [])
    others = {folder: choices for folder, choices in known.items() if folder != event.folder}
    for folder in list(others)[: max(0, len(others) - FOLDERS + 1)]:
        del others[folder]
    return {**others, event.folder: [*before, ChoiceAt(time, event.mode)][-CHOICES:]}


def normal_folder(folder: str) -> str:
    return os.path.normpath(folder)


def chosen_in(cwd: str, worktree: Json) -> str:
    """Return the folder that a session was started in: of a worktree, the one of its repository."""
    if not worktree:
        return cwd
    inside = os.path.relpath(worktree["folder"], worktree["path"])
    return os.path.normpath(os.path.join(worktree["repository"], inside))
