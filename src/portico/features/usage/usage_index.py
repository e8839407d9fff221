"""Usage by day and session: tokens and cost of every turn, as far as the agents report them.

The totals of each session are stored with it, by minute and model, and are recomputed only when the session changes. So
the cost of a request is proportional to its rows, and the sums of a day need no session to be read.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

import msgspec
from msgspec import Struct

from portico.features.usage.lineage import Lineages
from portico.features.usage.prices import TokenUse, dollars, source
from portico.features.usage.shapes import UsageCounts, UsageRow
from portico.kernel.events import Channel
from portico.kernel.feature import Feature
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import SessionState, Summary, TurnState

_KEY = "usage"
_MINUTE = 60_000
_DAY = 86_400_000


class UsageBucket(UsageCounts, omit_defaults=True):
    """Usage of one model in one minute. The days of any time zone are computed from these."""

    at: int
    """Start of the minute, in milliseconds since the epoch."""
    model: str = ""


class SessionUsage(Struct, omit_defaults=True):
    """The totals of one session."""

    pos: int
    """Position of the session when it was counted."""
    prices: str = ""
    """The price list of its estimates."""
    buckets: list[UsageBucket] = []
    job: str = ""
    automation: str = ""
    person: str = ""


class UsageIndex(Feature):
    """The usage of all sessions."""

    name = "usage"

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._host = host
        self._lineages = Lineages(host)
        self._known: dict[str, SessionUsage] = {}
        self._loaded = False
        self._counting = asyncio.Lock()
        self._offset = 0
        self._days: dict[tuple[str, str], UsageCounts] = {}
        """Sums by day and person, for one time zone."""

    async def rows(
        self, days: int, offset_minutes: int = 0, sees: Callable[[Channel], bool] | None = None
    ) -> list[UsageRow]:
        """Return the rows of the last `days` days, newest first. The offset is the caller's UTC offset; `sees` decides
        which sessions the caller may see."""
        now = self._host.now()
        first = _day(now - (days - 1) * _DAY, offset_minutes)
        found: list[UsageRow] = []
        for session in await self._refresh(now - (days + 1) * _DAY):
            if sees is not None and not sees(f"session/{session.id}"):
                continue
            used = self._known[session.id]
            for row in by_day(used.buckets, session, offset_minutes):
                if row.day >= first:
                    row.job, row.automation, row.person = used.job, used.automation, used.person
                    found.append(row)
        return sorted(found, key=lambda row: row.day, reverse=True)

    async def sum(self, period: str, offset_minutes: int, person: str | None = None) -> UsageCounts:
        """Return the usage of a day (`2026-11-16`) or a month (`2026-11`) until now, of one person or of all."""
        if offset_minutes != self._offset:
            self._offset, self._days = offset_minutes, {}
            for used in self._known.values():
                self._add(used, 1)
        await self._refresh(self._host.now() - 32 * _DAY)
        found = UsageCounts()
        for (day, whose), counts in self._days.items():
            if day.startswith(period) and person in (None, whose):
                _plus(found, counts, 1)
        return found

    async def _refresh(self, since: int) -> list[Summary]:
        """Count the sessions that have changed since then, and return them."""
        async with self._counting:  # so that two callers do not load a session twice
            if not self._loaded:
                await self._load()
            wanted = [each for each in self._host.summaries() if each.modified >= since and each.turns]
            for each in wanted:
                used = self._known.get(each.id)
                if used is None or used.pos != each.pos or used.prices != source():
                    session = self._host.find(each.id)
                    if session is not None:
                        await self._count(session)
            for gone in [ident for ident in self._known if self._host.catalogue.summary(ident) is None]:
                self._add(self._known.pop(gone), -1)
            return [each for each in wanted if each.id in self._known]

    async def _load(self) -> None:
        for channel, data in (await self._host.log.list_kv(_KEY)).items():
            used = msgspec.json.decode(data, type=SessionUsage)
            self._known[channel.removeprefix("session/")] = used
            self._add(used, 1)
        self._loaded = True

    async def _count(self, session: Session) -> None:
        was_loaded = session.loaded
        while not session.loaded:  # another reader may unload it before this task continues
            await session.load()
        state, pos = session.state, session.summary.pos
        buckets = _bucketed(state, await _estimates(state))
        lineage = await self._lineages.of(session)
        used = SessionUsage(pos, source(), buckets, lineage.job, lineage.automation, lineage.spender)
        if (before := self._known.get(session.id)) is not None:
            self._add(before, -1)
        self._known[session.id] = used
        self._add(used, 1)
        if state.active is None:
            self._host.log.put_kv(session.channel, _KEY, msgspec.json.encode(used), lazy=True)
        if not was_loaded:
            session.unload()

    def _add(self, used: SessionUsage, sign: int) -> None:
        for bucket in used.buckets:
            sums = self._days.setdefault((_day(bucket.at, self._offset), used.person), UsageCounts())
            _plus(sums, bucket, sign)


def _plus(sums: UsageCounts, more: UsageCounts, sign: int) -> None:
    sums.turns += sign * more.turns
    sums.input += sign * more.input
    sums.output += sign * more.output
    sums.cached += sign * more.cached
    sums.cost += sign * more.cost
    sums.estimated += sign * more.estimated
    sums.unpriced += sign * more.unpriced


async def priced(state: SessionState, offset_minutes: int) -> list[UsageRow]:
    return count(state, offset_minutes, await _estimates(state))


async def _estimates(state: SessionState) -> dict[str, float]:
    untold = [(turn, turn.usage) for turn in _own(state) if turn.usage is not None and not turn.usage.cost]
    used = [TokenUse(usage.model or state.model, usage.input, usage.output, usage.cached) for _, usage in untold]
    found = await dollars(used)
    return {turn.id: cost for (turn, _), cost in zip(untold, found, strict=True) if cost is not None}


def count(
    state: SessionState, offset_minutes: int, estimates: Mapping[str, float] = MappingProxyType({})
) -> list[UsageRow]:
    """`estimates`: dollars by turn, for turns whose cost was not reported."""
    return by_day(_bucketed(state, estimates), state, offset_minutes)


def by_day(buckets: Iterable[UsageBucket], session: Summary | SessionState, offset_minutes: int) -> list[UsageRow]:
    days: dict[tuple[str, str], UsageRow] = {}
    for bucket in buckets:
        key = (_day(bucket.at, offset_minutes), bucket.model)
        row = days.get(key)
        if row is None:
            row = days[key] = UsageRow(key[0], session.id, session.title, session.agent, key[1], session.by)
        _plus(row, bucket, 1)
    return list(days.values())


def _bucketed(state: SessionState, estimates: Mapping[str, float]) -> list[UsageBucket]:
    found: dict[tuple[int, str], UsageBucket] = {}
    for turn in _own(state):
        used = turn.usage
        key = (turn.started // _MINUTE * _MINUTE, (used.model if used else "") or state.model)
        bucket = found.setdefault(key, UsageBucket(*key))
        bucket.turns += 1
        if used is not None:
            bucket.input += used.input
            bucket.output += used.output
            bucket.cached += used.cached
            bucket.cost += used.cost
        if turn.id in estimates:
            bucket.estimated += estimates[turn.id]
        elif used is None or not used.cost:
            bucket.unpriced += 1
    return list(found.values())


def _own(state: SessionState) -> list[TurnState]:
    """Return the turns that ran in this session. Turns copied from another session are older and count there."""
    return [turn for turn in state.turns if turn.started >= state.created]


def _day(milliseconds: int, offset_minutes: int) -> str:
    return (datetime.fromtimestamp(milliseconds / 1000, UTC) + timedelta(minutes=offset_minutes)).strftime("%Y-%m-%d")
