"""What was used, by day and session: tokens and cost of every turn, as far as the agents tell them.

It is read from the sessions themselves, so it needs no books of its own; what was counted of a session is remembered
until the session moves on.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from portico.cache import Cache
from portico.events import Channel
from portico.host.host import Host
from portico.host.session import Session
from portico.host.state import SessionState, TurnState
from portico.usage.lineage import Lineages
from portico.usage.prices import TokenUse, dollars
from portico.usage.shapes import UsageRow

_SESSIONS = 20_000
"""Whose rows are remembered, for each zone that asks: more are counted again."""


class UsageIndex:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._lineages = Lineages(host)
        self._known = Cache[tuple[str, int], tuple[int, list[UsageRow]]](_SESSIONS)
        self._counting = asyncio.Lock()

    async def rows(
        self, days: int, offset_minutes: int = 0, sees: Callable[[Channel], bool] | None = None
    ) -> list[UsageRow]:
        """Of the last so many days, newest first. The offset is the asker's zone east of Greenwich; `sees` says which
        sessions they may see."""
        now = self._host.now()
        first = _day(now - (days - 1) * 86_400_000, offset_minutes)
        found: list[UsageRow] = []
        async with self._counting:  # two who ask at once load no session twice
            for session in tuple(self._host.catalogue):
                if sees is not None and not sees(session.channel):
                    continue
                if session.summary.modified >= now - (days + 1) * 86_400_000 and session.summary.turns:
                    found += [row for row in await self._of(session, offset_minutes) if row.day >= first]
        return sorted(found, key=lambda row: row.day, reverse=True)

    async def _of(self, session: Session, offset: int) -> list[UsageRow]:
        key = (session.id, offset)
        pos, rows = self._known.get(key, (-1, []))
        if pos != session.summary.pos:
            loaded = session.loaded
            await session.load()
            rows = await priced(session.state, offset)
            lineage = await self._lineages.of(session)
            for row in rows:
                row.job, row.automation, row.person = lineage.job, lineage.automation, lineage.spender
            self._known[key] = (session.summary.pos, rows)
            if not loaded:
                session.unload()
        return rows


async def priced(state: SessionState, offset_minutes: int) -> list[UsageRow]:
    untold = [(turn, turn.usage) for turn in _own(state) if turn.usage is not None and not turn.usage.cost]
    used = [TokenUse(usage.model or state.model, usage.input, usage.output, usage.cached) for _, usage in untold]
    found = await dollars(used)
    estimates = {turn.id: cost for (turn, _), cost in zip(untold, found, strict=True) if cost is not None}
    return count(state, offset_minutes, estimates)


def count(
    state: SessionState, offset_minutes: int, estimates: Mapping[str, float] = MappingProxyType({})
) -> list[UsageRow]:
    """`estimates`: dollars by turn, for those whose cost nobody told."""
    days: dict[tuple[str, str], UsageRow] = {}
    turns: dict[tuple[str, str], int] = defaultdict(int)
    for turn in _own(state):
        used = turn.usage
        key = (_day(turn.started, offset_minutes), (used.model if used else "") or state.model)
        row = days.setdefault(key, UsageRow(key[0], state.id, state.title, state.agent, key[1], state.by))
        turns[key] += 1
        row.turns = turns[key]
        if used is not None:
            row.input += used.input
            row.output += used.output
            row.cached += used.cached
            row.cost += used.cost
        if turn.id in estimates:
            row.estimated += estimates[turn.id]
        elif used is None or not used.cost:
            row.unpriced += 1
    return list(days.values())


def _own(state: SessionState) -> list[TurnState]:
    """The turns that ran in this session. Those that a copy began with are older than it, and count in the original."""
    return [turn for turn in state.turns if turn.started >= state.created]


def _day(milliseconds: int, offset_minutes: int) -> str:
    return (datetime.fromtimestamp(milliseconds / 1000, UTC) + timedelta(minutes=offset_minutes)).strftime("%Y-%m-%d")
