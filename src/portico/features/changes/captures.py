"""Records the files that a session's turns change in its folder, by any means: tools, shells, sub-agents.

In a git work tree the folder is captured when a turn starts and when it ends (`workspace/changes.py`: hidden refs; the
user's files, index and branches are not touched). The first capture runs concurrently with the prompt and is awaited
before the first effect, so it does not delay the turn. A folder without git costs one check for `.git`.

The names of the refs contain the session id and its creation time, because other home folders use the same session ids.
"""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import UNSET, Struct

from portico import limits
from portico.kernel.component import FolderCaptures
from portico.kernel.errors import NotFound, PorticoError
from portico.kernel.events import Json
from portico.kernel.state import CHANGES, ChangeList, FileChange, Summary
from portico.workspace.changes import Change, Changes, Differences
from portico.workspace.git import in_work_tree, work_tree

if TYPE_CHECKING:
    from portico.kernel.session import Session

_EDITS = 100
"""Maximum files stored with the count. AHP version 1 sends the whole list each time, and lists show no more."""
OWN_TURNS = 100
"""Maximum number of turns compared to find a session's own changes: three short git processes each."""
_FILES = "files/"
"""Key prefix of the stored files of a turn, under the session's channel."""
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")


class _Span(Struct, frozen=True):
    """Two captured states of the folder. Both exist if `note` is empty."""

    changes: Changes
    old: str = ""
    new: str = ""
    note: str = ""


class OwnChanges(Struct, omit_defaults=True):
    """The changes that a session made itself, if other sessions work in the same folder."""

    shared: bool = False
    """Other sessions have worked in this folder since this one started, or do so now."""
    files: list[str] | None = None
    """Files that changed during a turn of this session; absent: the folder is not shared, or this is unknown."""


class CaptureBounds(Protocol):
    """Settings and limits shared by all sessions of a host."""

    enabled: bool
    slots: asyncio.Semaphore


class Captures(FolderCaptures):
    """The captures of one session, one after another."""

    def __init__(self, session: "Session", bounds: CaptureBounds) -> None:
        self._session = session
        self._bounds = bounds
        self._order = asyncio.Lock()
        self._turn = ""
        self._starting: asyncio.Task[bool] | None = None

    # -- while a turn runs -------------------------------------------------------------------------------------

    def begin(self, turn: str, *, resumed: bool = False) -> None:
        """Start the capture for a turn and return immediately; `ready` waits for it."""
        host = self._session.host
        self._turn, self._starting = turn, None
        if resumed:
            self._put(turn, None)  # its files are stored again when it ends
        if self._bounds.enabled and work_tree(self._session.summary.cwd):
            self._starting = host.own(self._first(turn, resumed), f"capture {self._session.id}/{turn}")

    async def ready(self, turn: str) -> None:
        """Wait for the first capture, before an effect. On timeout it is canceled: it would mix before and after."""
        starting = self._starting
        if starting is not None and self._turn == turn and not starting.done():
            await asyncio.wait({starting}, timeout=limits.CAPTURE_SECONDS)
            if starting.cancel():
                self._session.host.logger.warning("%s/%s: the capture took too long", self._session.id, turn)

    async def finish(self, turn: str, *, effects: bool) -> None:
        """Capture the end of a turn. After effects this waits briefly, so that an edit that a person makes right after
        the end is not attributed to the agent."""
        if self._starting is not None and self._turn == turn:
            ending = self._session.host.own(self._last(turn, effects), f"capture {self._session.id}/{turn} end")
            if effects:
                await asyncio.wait({ending}, timeout=limits.CAPTURE_END_SECONDS)

    def recover(self, turn: str) -> None:
        """Capture the changes of a turn that a crash of the host interrupted, before anything else runs."""
        if self._bounds.enabled and in_work_tree(self._folder):
            self._session.host.own(self._last(turn, effects=True), f"capture {self._session.id}/{turn} end")

    async def _first(self, turn: str, resumed: bool) -> bool:
        start, before = self._name("start"), self._name(turn, "before")
        # Existing captures are kept: the session, or the resumed turn, started earlier.
        return await self._capture([] if resumed else [before], once=[start, before] if resumed else [start])

    async def _last(self, turn: str, effects: bool) -> None:
        names = [self._name("end"), self._name(turn, "after")]
        if await self._capture(names, needs=self._name(turn, "before")) and effects:
            # The end of the turn does not wait for this.
            self._session.host.own(self._count(turn), f"capture {self._session.id} count")

    async def _count(self, turn: str) -> None:
        """Store the files of the turn, and the totals of the session (shown in lists) if they changed."""
        session = self._session
        await session.load()
        try:
            async with self._order:
                changes = await Changes.open(self._folder)
                whole = await self._trees(changes, self._name("start"), self._name("end"))
                part = await self._trees(changes, self._name(turn, "before"), self._name(turn, "after"))
                if whole is None or part is None or session.host.find(session.id) is not session:
                    return
                of_session, of_turn = await changes.all_between(whole, part)
                self._store(turn, of_turn)
                files = of_session.files
                value: Json = {
                    "additions": sum(each.added for each in files),
                    "deletions": sum(each.removed for each in files),
                    "files": len(files),
                    "edits": [msgspec.to_builtins(each) for each in files[:_EDITS]],
                }
                if value != session.state.client_data.get(CHANGES) and (files or CHANGES in session.state.client_data):
                    await session.keep(CHANGES, value, by="host")
        except (PorticoError, OSError) as error:  # the turn does not fail because of this
            session.host.logger.info("the changes of %s are not known: %s", session.id, error)

    @staticmethod
    async def _trees(changes: Changes, old: str, new: str) -> tuple[str, str] | None:
        found = await changes.find(old), await changes.find(new)
        return None if found[0] is None or found[1] is None else (found[0], found[1])

    def _store(self, turn: str, found: Differences) -> None:
        """Store the files of a finished turn. Its two trees never change, so they are computed once. A resumed turn
        stores them again when it ends."""
        self._put(turn, msgspec.json.encode(found))

    def _put(self, turn: str, data: bytes | None) -> None:
        host, channel = self._session.host, self._session.channel
        if host.members.owns(channel):
            host.log.put_kv(channel, _FILES + turn, data, lazy=True)

    async def _capture(self, names: list[str], *, once: Sequence[str] = (), needs: str = "") -> bool:
        host, folder = self._session.host, self._folder
        try:
            async with self._order, self._bounds.slots:
                changes = await Changes.open(folder)
                if needs and await changes.find(needs) is None:
                    return False
                taken = await changes.capture()
                await changes.keep(taken.tree, *names, once=once)
        except (PorticoError, OSError) as error:  # a broken repository, a full disk: the turn continues
            host.logger.debug("no capture of %s: %s", self._session.id, error)
            return False
        return True

    # -- results -----------------------------------------------------------------------------------------------

    async def list(self, turn: str | None) -> ChangeList:
        found = await self._known(turn)
        if found is not None:
            return ChangeList(True, [change_of(each) for each in found.files], found.cut)
        span = await self._span(turn)
        if span is None:
            return ChangeList(git=False)
        if span.note:
            return ChangeList(git=True, note=span.note)
        found = await span.changes.between(span.old, span.new)
        return ChangeList(True, [change_of(each) for each in found.files], found.cut)

    async def own(self) -> OwnChanges:
        """Exclude changes that others made between two turns. Changes made during a turn cannot be distinguished."""
        span = await self._span(None) if self._is_shared() else None
        turns = self._session.state.turns
        if span is None or span.note or len(turns) > OWN_TURNS:
            return OwnChanges(shared=self._is_shared())
        found: set[str] = set()
        for turn in turns:
            old = await span.changes.find(self._name(turn.id, "before"))
            new = span.new if turn.outcome is None else await span.changes.find(self._name(turn.id, "after"))
            if old is not None and new is not None and old != new:
                for each in (await span.changes.between(old, new)).files:
                    found |= {each.path, each.old_path or each.path}
        return OwnChanges(shared=True, files=sorted(found))

    def _is_shared(self) -> bool:
        others = self._session.host.summaries()
        return any(self._shares(each) and _overlap(Path(each.cwd), self._folder) for each in others)

    def _shares(self, other: Summary) -> bool:
        """Return whether another session ran a turn since this one started. Its own sub-agents do not count."""
        own = self._session.summary
        helper = other.parent == own.id and other.origin is not None and other.origin.kind == "agent"
        return other.id != own.id and not helper and bool(other.turns) and other.last_turn_at >= own.created

    async def differences(self, turn: str | None) -> Differences | None:
        """Return the changes with the ids of the contents; None if they are unknown."""
        found = await self._known(turn)
        if found is not None:
            return found
        span = await self._span(turn)
        if span is None or span.note:
            return None
        found = await span.changes.between(span.old, span.new)
        if turn is not None and self._is_over(turn):
            self._store(turn, found)  # a turn of an older version, or one without effects
        return found

    async def _known(self, turn: str | None) -> Differences | None:
        """Return the stored files of a finished turn, after the capture of its end."""
        if turn is None or not self._is_over(turn) or not in_work_tree(self._folder):
            return None
        async with self._order:
            pass
        data = await self._session.host.log.get_kv(self._session.channel, _FILES + turn)
        return msgspec.json.decode(data, type=Differences) if data else None

    def _is_over(self, turn: str) -> bool:
        found = self._session.state.turn(turn)
        return found is not None and found.outcome is not None

    async def between(self, original: str, modified: str) -> Differences | None:
        """Compare the end of one turn with the end of another."""
        first, last = await self._span(original), await self._span(modified)
        if first is None or last is None or first.note or last.note:
            return None
        return await last.changes.between(first.new, last.new)

    async def diff(self, path: str | None, turn: str | None) -> str:
        """Return the unified diff of one file, or of all, truncated at `limits.DIFF_BYTES`."""
        span = await self._span(turn)
        if span is None:
            raise NotFound("git repository", str(self._folder), "Run 'git init' there to see what changes.")
        if span.note:
            raise NotFound("capture", turn or self._session.id, span.note)
        paths: list[str] = []
        if path is not None:
            found = await span.changes.between(span.old, span.new)
            paths = next(([each.old_path or path, path] for each in found.files if each.path == path), [])
            if not paths:
                raise NotFound("changed file", path)
        text = await span.changes.patch(span.old, span.new, *paths, cut=limits.DIFF_BYTES + 1)
        if len(text.encode()) <= limits.DIFF_BYTES:
            return text
        kept = text.encode()[: limits.DIFF_BYTES].decode("utf-8", "ignore")
        return f"{kept[: kept.rfind(chr(10)) + 1]}[... cut after {limits.DIFF_BYTES} bytes ...]\n"

    async def _span(self, turn: str | None) -> _Span | None:
        """Return the states before and after a turn or the session; None without git."""
        session = self._session
        if turn is not None and session.state.turn(turn) is None:
            raise NotFound("turn", turn)
        if not in_work_tree(self._folder):
            return None
        async with self._order:  # wait for captures that were started before this call
            pass
        try:
            changes = await Changes.open(self._folder)
        except NotFound:
            return None
        old = await changes.find(self._name("start") if turn is None else self._name(turn, "before"))
        if old is None:
            return _Span(changes, note=f"The beginning of this {'turn' if turn else 'session'} was not captured.")
        running = session.state.active  # possibly on another host that can access these files
        if running is not None and turn in (None, running.id):
            return _Span(changes, old, (await changes.capture()).tree)
        new = await changes.find(self._name("end") if turn is None else self._name(turn, "after"))
        if new is None:
            return _Span(changes, note=f"The end of this {'turn' if turn else 'session'} was not captured.")
        return _Span(changes, old, new)

    async def forget(self) -> None:
        """Delete the captures of a deleted session."""
        if in_work_tree(self._folder):
            try:
                async with self._order:
                    await (await Changes.open(self._folder)).forget(self._base)
            except (PorticoError, OSError) as error:  # the session is deleted in any case
                self._session.host.logger.warning("captures of %s stay: %s", self._session.id, error)

    # -- names -------------------------------------------------------------------------------------------------

    @property
    def _folder(self) -> Path:
        return Path(self._session.summary.cwd)

    @property
    def _base(self) -> str:
        return f"{self._session.id}-{self._session.summary.created}"

    def _name(self, *parts: str) -> str:
        """Return a ref name for `start`, `end`, or a turn (whose id may come from a client) and its side."""
        if len(parts) == 1:
            return f"{self._base}/{parts[0]}"
        turn, side = parts
        shown = turn if _PLAIN.fullmatch(turn) else hashlib.sha256(turn.encode()).hexdigest()
        return f"{self._base}/turns/{shown}/{side}"


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def change_of(of: Change) -> FileChange:
    return FileChange(of.path, of.kind, of.added, of.removed, of.binary, of.old_path or UNSET)
