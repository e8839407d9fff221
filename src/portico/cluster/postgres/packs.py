"""Commits packed for other hosts: one row for each commit instead of one for each event.

Every host reads every commit, so the cost of reading an event counts once for each host. A commit therefore also stores
its events as two byte strings, which a reader fetches and decodes as a whole: the whole events, and the deltas of
sessions. A host fetches deltas only of sessions that one of its clients follows; of the others it gets the last
position. Packs are not durable (an unlogged table) and deleted after seconds: without a pack, a reader reads the rows.
"""

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from portico.cluster.postgres.store import PostgresStore
from portico.kernel import limits
from portico.kernel.events import Channel, Record
from portico.kernel.log.page import Page

STREAMS = "session/"
"""Channels whose deltas can be left out. The deltas of others (terminals, runs) are folded by every host."""
PACKS = 64
"""Commits in one read."""
_COLUMNS = "last, first, time, shared, heads, streams, ends, whole"
_ENTRY = tuple[int, int, int, bytes]
"""The offset in the commit, the channel, the position (negative: see `shared` and `heads`) and the data."""
_decoder = msgspec.msgpack.Decoder(list[_ENTRY])
_offset = itemgetter(0)


class Pack(NamedTuple):
    last: int
    first: int
    time: int
    shared: list[int]
    """Channels whose positions the database has assigned, and `heads`: their positions before this commit."""
    heads: list[int] | None
    streams: list[int]
    """Sessions with deltas in this commit, and `ends`: the last position of those deltas."""
    ends: list[int]
    whole: bytes
    deltas: bytes | None
    """None: not fetched."""


class ReadCommits(NamedTuple):
    """Commits of other hosts, up to and including the number `upto`."""

    records: Page
    upto: int
    skipped: dict[int, int]
    """Sessions whose deltas are not in `records`, with the last position of those deltas."""


def pack_columns(channels: list[Channel], rows: list[Any]) -> list[Any]:
    """Return the columns of a pack. `rows` are the columns of the events: channel, position, delta, checksum, data."""
    numbers, positions, are_deltas, _, datas = rows[:5]
    whole: list[_ENTRY] = []
    deltas: list[_ENTRY] = []
    ends: dict[int, int] = {}
    entries = zip(channels, numbers, positions, are_deltas, datas, strict=True)
    for offset, (name, channel, pos, is_delta, data) in enumerate(entries):
        if is_delta and pos > 0 and name.startswith(STREAMS):
            deltas.append((offset, channel, pos, data))
            ends[channel] = pos
        else:
            whole.append((offset, channel, pos, data))
    encode = msgspec.msgpack.encode
    return [list(ends), list(ends.values()), encode(whole), encode(deltas) if deltas else b""]


class PackReader:
    def __init__(self, store: PostgresStore, wanted: Callable[[], Iterable[Channel] | None]) -> None:
        self._store = store
        self._followed = wanted
        """The sessions whose deltas this host needs now; None: all."""
        self._wanted: set[int] = set()
        self._all = False

    async def read(self, after: int, upto: int) -> ReadCommits:
        """Read commits after a number; at least one number, at most up to `upto`. Which deltas are wanted is checked
        after the last query, so a client that starts to follow during a query misses nothing."""
        self._look_at_wanted()
        sql = f"SELECT {_COLUMNS}, CASE WHEN $3 OR streams && $4 THEN deltas END FROM packs"
        sql += f" WHERE last > $1 AND last <= $2 ORDER BY last LIMIT {PACKS}"
        packs = _adjacent(await self._store.fetch(sql, after, upto, self._all, list(self._wanted)))
        if not packs or packs[0].first > after + 1:
            return await self._rows(after, packs[0].first - 1 if packs else upto)
        decoded = [(pack, _decoder.decode(pack.whole)) for pack in packs]
        channels = {entry[1] for _, entries in decoded for entry in entries}
        await self._store.learn(channels.union(*(pack.streams for pack in packs)))
        self._look_at_wanted()
        if any(pack.deltas is None and self._wants(pack) for pack in packs):
            return await self._rows(after, packs[-1].last)
        return self._found(after, decoded)

    def _look_at_wanted(self) -> None:
        """Update the ids of the wanted sessions. If the id of one is not known here, all deltas are fetched."""
        ids, followed = self._store.known_ids, self._followed()
        wanted = [ids.get(channel) for channel in followed or () if channel.startswith(STREAMS)]
        self._all = followed is None or None in wanted
        self._wanted = {each for each in wanted if each is not None}

    def _wants(self, pack: Pack) -> bool:
        return bool(pack.streams) and (self._all or not self._wanted.isdisjoint(pack.streams))

    async def _rows(self, after: int, upto: int) -> ReadCommits:
        """Read the rows: of a host of an earlier version, after the packs are deleted, or if more deltas are wanted
        than were fetched."""
        records = Page(await self._store.read_all((), after, upto, limits.READ_EVENTS, False))
        return ReadCommits(records, records[-1].seq if records else upto, {})  # numbers of failed commits have no rows

    def _found(self, after: int, decoded: list[tuple[Pack, list[_ENTRY]]]) -> ReadCommits:
        names, wanted = self._store.names, self._wanted
        records, skipped = Page(), dict[int, int]()
        for pack, entries in decoded:
            if self._wants(pack):
                assert pack.deltas is not None
                deltas = _decoder.decode(pack.deltas)
                chosen = deltas if self._all else [entry for entry in deltas if entry[1] in wanted]
                entries = sorted([*entries, *chosen], key=_offset)
            if not self._all:
                skipped.update(zip(pack.streams, pack.ends, strict=True))
            shared = dict(zip(pack.shared, pack.heads or [], strict=True))
            first, time = pack.first, pack.time
            records += [
                Record(first + offset, names[channel], pos if pos > 0 else shared[channel] - pos, time, data)
                for offset, channel, pos, data in entries
            ]
        for channel in wanted if skipped else ():
            skipped.pop(channel, None)
        if records and records[0].seq <= after:
            records = Page(record for record in records if record.seq > after)
        return ReadCommits(records, decoded[-1][0].last, skipped)


def _adjacent(rows: list[Any]) -> list[Pack]:
    """Return the packs up to the first gap between two."""
    packs: list[Pack] = []
    for row in rows:
        pack = Pack(*row)
        if packs and pack.first != packs[-1].last + 1:
            break
        packs.append(pack)
    return packs
