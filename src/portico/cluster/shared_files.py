"""Synchronizes tokens, people, keys and shared settings, which are files of a home, between all hosts.

The attack: a token that was revoked at one host is restored by one that was created at another at the same time. So
changes of a file are merged into the version in the database, and written only if no other host has written since.
"""

import asyncio
import base64
import contextlib
import fcntl
import logging
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from portico.cluster.postgres.log import PostgresLog
from portico.kernel.errors import LogUnavailable
from portico.server.home import stamp, write_private
from portico.server.settings import SHARED

logger = logging.getLogger("portico.cluster")

_KEYS = ("cookie-key", "hooks.key")
_WRITTEN = (SHARED, "automations.toml")
"""Files written by people: a host that joins with a different version saves its version as a copy."""
NAMES = ("token", "tokens.json", "people.json", "logouts.json", *_KEYS, *_WRITTEN)
SECONDS = 0.25
"""Poll interval for the files of this home: a change at one host applies to all within a second."""
_QUIET_SECONDS = 1.0
"""Interval between two queries of the database without a notification."""
_PREFIX = "shared/"


class SharedFiles:
    def __init__(self, log: PostgresLog, folder: Path, changed: Callable[[], None] = lambda: None) -> None:
        self._log = log
        self._folder = folder
        self._changed = changed
        """Called when changes of other hosts were received."""
        self._stamps: dict[str, tuple[int, int] | None] = {}
        self._bases: dict[str, bytes] = {}
        """The content of each file when it was last equal here and in the database."""
        self._rung = asyncio.Event()
        self._asked = 0.0
        self._looking = asyncio.Lock()
        log.files_rung = self._rung.set

    async def begin(self) -> None:
        """Load the files from the database. Create missing keys now, else hosts would create different ones."""
        stored = await self._stored()
        for name in NAMES:
            path = self._folder / name
            if name in _KEYS and name not in stored and not path.exists():
                write_private(path, secrets.token_bytes(32))
            self._stamps[name] = stamp(path)
            if not stored.get(name) and path.exists():
                await self._push(name, stored.get(name))
        stored = await self._stored()
        for name in (each for each in NAMES if each in stored):
            if name in _WRITTEN:
                self._keep_copy(name, stored[name])
            self._pull(name, stored[name])

    def _keep_copy(self, name: str, data: bytes) -> None:
        path = self._folder / name
        if path.exists() and path.read_bytes() not in (data, b""):
            write_private(path.with_name(f"{name}.replaced"), path.read_bytes())
            logger.warning("%s is the one of the other hosts now; what was here is in %s.replaced", path, name)

    async def watch(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._rung.wait(), SECONDS)
            try:
                await self.look()
            except LogUnavailable as error:
                logger.debug("the files of all hosts: %s", error.message)
            except Exception:  # changes that come later are still to be shared
                logger.exception("the files of all hosts failed; the next look comes soon")

    async def share(self) -> None:
        """Return when earlier local changes are available to the other hosts, and their changes here. While the
        database does not answer, the local files are used."""
        self._rung.set()
        with contextlib.suppress(LogUnavailable):
            await self.look()

    async def look(self) -> None:
        async with self._looking:
            now = asyncio.get_running_loop().time()
            edited = [name for name in NAMES if stamp(self._folder / name) != self._stamps[name]]
            if edited or self._rung.is_set() or now - self._asked >= _QUIET_SECONDS:
                self._rung.clear()
                self._asked = now
                await self._exchange(edited)

    async def _exchange(self, edited: list[str]) -> None:
        stored = await self._stored()
        pulled = [self._pull(name, stored[name]) for name in NAMES if name in stored and name not in edited]
        for name in edited:
            await self._push(name, stored.get(name))
        if any(pulled):
            self._changed()

    async def _stored(self) -> dict[str, bytes]:
        sql = f"SELECT key, value FROM meta WHERE key LIKE '{_PREFIX}%'"
        rows = await self._log.run(lambda connection: connection.fetch(sql))
        return {key.removeprefix(_PREFIX): base64.b64decode(value) for key, value in rows}

    async def _push(self, name: str, theirs: bytes | None) -> None:
        path = self._folder / name
        seen, ours = stamp(path), _read(path)
        if ours is None:
            return  # a key that was taken away is made anew
        wanted = ours if theirs is None else merged(self._bases.get(name, b""), ours, theirs)
        if wanted != theirs and not await self._replace(name, theirs, wanted):
            return  # another host was faster: the next look merges with what it wrote
        self._stamps[name], self._bases[name] = seen, ours
        if wanted != ours:
            self._pull(name, wanted)

    async def _replace(self, name: str, theirs: bytes | None, data: bytes) -> bool:
        """Return False if the database has another version by now."""
        insert = "INSERT INTO meta VALUES ($1, $3) ON CONFLICT DO NOTHING RETURNING $2::text"
        update = "UPDATE meta SET value = $3 WHERE key = $1 AND value = $2 RETURNING value"
        before = None if theirs is None else base64.b64encode(theirs).decode()
        values = (_PREFIX + name, before, base64.b64encode(data).decode())
        sql = insert if before is None else update
        if not await self._log.run(lambda connection: connection.fetch(sql, *values)):
            return False
        await self._log.ring_files()
        return True

    def _pull(self, name: str, data: bytes) -> bool:
        """Replace the file and return whether it changed. The lock keeps out local editors: they would use old data."""
        path = self._folder / name
        if data == self._bases.get(name) and path.exists():
            return False
        with _editing(self._folder) as mine:
            if not mine or stamp(path) != self._stamps[name]:
                return False
            if not path.exists() or path.read_bytes() != data:
                write_private(path, data)
            self._stamps[name], self._bases[name] = stamp(path), data
        return True


@contextlib.contextmanager
def _editing(folder: Path) -> Iterator[bool]:
    """Take the lock for editing the files; yield False if it is held. Never hold it across an `await`: commands of
    this process wait for it."""
    with open(folder / "tokens.lock", "a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _read(path: Path) -> bytes | None:
    """Read a file; None if a required one is missing. Other files may be missing and count as empty."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_bytes()
    return {".json": b"[]", ".toml": b""}.get(path.suffix)


def merged(base: bytes, ours: bytes, theirs: bytes) -> bytes:
    """Merge the local changes since `base` into `theirs`. Lists are merged by entry; of anything else `ours` wins."""
    if theirs in (base, ours):
        return ours
    try:
        was, now, there = (_entries(each) for each in (base or b"[]", ours or b"[]", theirs))
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError):
        return ours
    changed = {name: entry for name, entry in now.items() if was.get(name) != entry}
    both = {**there, **changed}
    return msgspec.json.encode([entry for name, entry in both.items() if name in now or name not in was])


def _entries(data: bytes) -> dict[str, dict[str, Any]]:
    """Tokens by their id, people by their name."""
    return {str(each.get("id") or each["name"]): each for each in msgspec.json.decode(data, type=list[dict[str, Any]])}
