"""Copies a log between SQLite and PostgreSQL and keeps all numbers: `portico log copy FROM TO`.

It copies in pages, each one transaction of the target, so an interrupted copy resumes where it stopped. Finally both
logs are read again and compared. The copy has the epoch of its source: cursors of clients remain valid, and the source
must not be written to any more.
"""

import contextlib
import zlib
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec import Struct

from portico.kernel.errors import BadRequest, LogDamaged

PAGE = 2_000
"""Events in one transaction."""
_BLOBS = 20
"""Blobs in one: each may have 64 MB."""
COPYING = "copying"
"""In `meta` of a target that is not done: the epoch of its source."""

Progress = Callable[[str, int, int], None]
"""Called with the current step, the number of items done, and the total."""


class CopiedRow(NamedTuple):
    seq: int
    channel: int
    pos: int
    time: int
    delta: bool
    data: bytes
    whole: bool | None
    """Does its checksum fit? None: it has none."""


class Note(NamedTuple):
    channel: int
    key: str
    data: bytes
    time: int


class Channel(NamedTuple):
    id: int
    name: str
    pos: int


class CopyReport(Struct):
    events: int = 0
    channels: int = 0
    notes: int = 0
    blobs: int = 0
    seq: int = 0
    resumed_after: int = 0
    """Events that an earlier try had copied."""
    same: bool = False


class Side(Protocol):
    """One of the two logs, as rows."""

    name: str

    async def meta(self) -> dict[str, str]: ...
    async def put_meta(self, values: dict[str, str | None]) -> None: ...
    async def seq(self) -> int: ...
    async def last(self) -> int: ...
    async def count(self) -> int: ...
    async def channels(self) -> list[Channel]: ...
    async def put_channels(self, channels: list[Channel], seq: int) -> None: ...
    async def events(self, after: int, limit: int) -> list[CopiedRow]: ...
    async def put_events(self, rows: list[CopiedRow]) -> None: ...
    async def notes(self) -> list[Note]: ...
    async def put_notes(self, notes: list[Note]) -> None: ...
    async def digests(self) -> set[str]: ...
    async def blobs(self, digests: list[str]) -> list[tuple[str, bytes]]: ...
    async def put_blobs(self, blobs: list[tuple[str, bytes]]) -> None: ...
    async def users(self) -> set[tuple[str, int]]: ...
    async def put_users(self, users: Iterable[tuple[str, int]]) -> None: ...
    async def finish(self, epoch: str, salt: int, seq: int) -> None: ...


def file_of(where: str) -> Path:
    path = Path(where).expanduser().absolute()
    return path / "log.db" if path.is_dir() or not path.suffix else path


@contextlib.asynccontextmanager
async def opened(where: str, *, new: bool) -> AsyncIterator[Side]:
    """A database by its address, or a log by its file or home folder."""
    if "://" in where:
        try:
            from portico.server.maintenance.copy_postgres import PostgresSide
        except ImportError as error:
            raise BadRequest(f"PostgreSQL needs more packages: pip install 'portico[cluster]' ({error}).") from error
        async with PostgresSide.opened(where, new=new) as side:
            yield side
        return
    from portico.server.maintenance.copy_sqlite import SqliteSide

    path = file_of(where)
    if not new and not path.exists():
        raise BadRequest(f"There is no log {where!r}.", field="from")
    if new:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with SqliteSide.opened(path) as file:
        yield file


async def copy(source: Side, target: Side, progress: Progress) -> CopyReport:
    about = await source.meta()
    epoch, salt = about.get("epoch", ""), int(about.get("salt", "0"))
    if COPYING in about:
        raise BadRequest(f"{source.name} is itself a copy that was not finished; finish it first.", field="from")
    known = await target.meta()
    if await target.seq() and known.get(COPYING) != epoch:
        raise BadRequest(f"{target.name} has a log already. Choose an empty place for the copy.", field="to")
    await target.put_meta({COPYING: epoch, "salt": str(salt), "lost": about.get("lost", "0")})
    report = CopyReport(resumed_after=await target.count(), seq=await source.seq())
    channels = await source.channels()
    await target.put_channels([each._replace(pos=0) for each in channels], 0)
    total, report.events = await source.count(), report.resumed_after
    after = await target.last()
    while rows := await source.events(after, PAGE):
        await target.put_events(rows)
        after, report.events = rows[-1].seq, report.events + len(rows)
        progress("events", report.events, total)
    await target.put_channels(channels, report.seq)
    report.notes, report.blobs = await _copy_rest(source, target, progress)
    report.channels = len(channels)
    await _compare(source, target, total, progress)
    report.same = True
    await target.finish(epoch, salt, report.seq)
    return report


async def _copy_rest(source: Side, target: Side, progress: Progress) -> tuple[int, int]:
    notes = await source.notes()
    await target.put_notes(notes)
    wanted = await source.digests()
    missing = sorted(wanted - await target.digests())
    for at in range(0, len(missing), _BLOBS):
        await target.put_blobs(await source.blobs(missing[at : at + _BLOBS]))
        progress("blobs", at, len(missing))
    await target.put_users(await source.users())
    return len(notes), len(wanted)


async def _compare(source: Side, target: Side, total: int, progress: Progress) -> None:
    """Everything is read again, from both."""
    after = done = 0
    while True:
        one, other = await source.events(after, PAGE), await target.events(after, PAGE)
        if one != other:
            here, there = zlib.crc32(repr(one).encode()), zlib.crc32(repr(other).encode())
            raise LogDamaged(
                f"The copy differs behind event {after} ({here:08x}, {there:08x}). Start with an empty target."
            )
        if not one:
            break
        after, done = one[-1].seq, done + len(one)
        progress("comparing", done, total)
    for what, mine, theirs in (
        ("channels", await source.channels(), await target.channels()),
        ("notes", sorted(await source.notes()), sorted(await target.notes())),
        ("blobs", await source.digests(), await target.digests()),
        ("references to blobs", await source.users(), await target.users()),
    ):
        if mine != theirs:
            raise LogDamaged(f"The copy has other {what} than its source. Start with an empty target.")


def fits(stored: int | None, right: int) -> bool | None:
    return None if stored is None else stored == right


def stated(whole: bool | None, right: int) -> int | None:
    """The checksum of a copied event: one that was changed stays recognisable as such."""
    return None if whole is None else right if whole else right ^ 1
