"""The budgets that apply to a turn, and the amount spent of each.

Budgets nest: a sub-agent spends from the budgets of its parents, a task from that of its job, a job from that of the
run of an automation, and all of them from the daily and monthly budgets of the person and the host.
"""

from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from functools import partial
from typing import NamedTuple

import msgspec

from portico.features.budgets.budget import Spent
from portico.features.usage.lineage import Lineages
from portico.features.usage.prices import TokenUse, dollars
from portico.features.usage.usage_index import UsageIndex
from portico.kernel.autonomy import BUDGET
from portico.kernel.cache import Cache
from portico.kernel.errors import BadRequest
from portico.kernel.events import Budget
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import CallPart, SessionState, TurnState
from portico.kernel.turn import Turn
from portico.server.settings import BudgetSettings

SHARED = ("day/", "month/")
"""Key prefixes of budgets that several conversations share."""
_HELD = 10_000
"""Cache size: waiting times of turns, a hundred bytes each."""


class AppliedBudget(NamedTuple):
    """One budget that applies to a turn."""

    key: str
    """Its key in storage: `session/ID`, `day/2026-11-16` ..."""
    about: str
    """Description for messages: `this session`, `today on this host`."""
    budget: Budget
    spent: Callable[[], Awaitable[Spent]]
    whole: str = ""
    """What the answer stops or lets finish (`job`, `run`); empty: the turn."""


class Ledger:
    def __init__(self, host: Host, usage: UsageIndex) -> None:
        self._host = host
        self._book = usage
        self.lineages = Lineages(host)
        self.unstarted: set[tuple[str, str]] = set()
        """Turns that wait to start, by session and turn. They have spent nothing."""
        self._held = Cache[tuple[str, str], int](_HELD)
        """Milliseconds that a turn waited for a question shown in another turn. They do not count as work."""

    def note_held(self, turn: Turn, milliseconds: int) -> None:
        key, state = (turn.session.id, turn.id), turn.session.state.turn(turn.id)
        if state is not None and not state.waited:  # otherwise the state already includes it
            self._held[key] = self._held.get(key, 0) + milliseconds

    async def held(self, turn: Turn, rules: dict[str, Budget]) -> list[AppliedBudget]:
        """Return the budgets that have a bound, the narrowest first."""
        found = [*self._of_family(turn, rules), *await self._of_origin(turn, rules)]
        return [each for each in found if each.budget != Budget()]

    def _of_family(self, turn: Turn, rules: dict[str, Budget]) -> Iterable[AppliedBudget]:
        session: Session | None = turn.session
        ident, words = turn.id, "this"
        while session is not None:
            whole = partial(self._of_session, session, None, turn)
            key, of_turn = f"turn/{session.id}/{ident}", partial(self._of_session, session, ident, turn)
            yield AppliedBudget(key, f"{words} turn", rules.get("turn", Budget()), of_turn)
            yield AppliedBudget(f"session/{session.id}", f"{words} session", rules.get("session", Budget()), whole)
            own = read_budget(session.state.config.get(BUDGET), "config.budget") if session.loaded else Budget()
            yield AppliedBudget(f"own/{session.id}", f"{words} session", own, whole)
            origin = session.summary.origin
            if origin is None or origin.kind != "agent" or origin.turn is None:
                return
            session, ident, words = self._host.find(origin.session), origin.turn, "the parent's"

    async def _of_origin(self, turn: Turn, rules: dict[str, Budget]) -> list[AppliedBudget]:
        lineage = await self.lineages.of(turn.session)
        found: list[AppliedBudget] = []
        if lineage.job:
            spent = partial(self._of_sessions, partial(self.lineages.sessions_of, lineage, whole_run=False), turn)
            found.append(AppliedBudget(f"job/{lineage.job}", "this job", rules.get("job", Budget()), spent, "job"))
            found.append(AppliedBudget(f"entry/{lineage.job}", "this job", lineage.job_budget, spent, "job"))
        if lineage.run:
            spent = partial(self._of_sessions, partial(self.lineages.sessions_of, lineage, whole_run=True), turn)
            about = f"this run of {lineage.automation or 'an automation'}"
            found.append(AppliedBudget(f"run/{lineage.run}", about, rules.get("automation", Budget()), spent, "run"))
            found.append(AppliedBudget(f"plan/{lineage.run}", about, lineage.run_budget, spent, "run"))
        return [*found, *(self._of_days(lineage.spender, rules, turn) if rules else ())]

    def _of_days(self, spender: str, rules: dict[str, Budget], turn: Turn) -> Iterable[AppliedBudget]:
        today = _today(self._host.now())
        for kind, period, words in (("day", today, "today"), ("month", today[:7], "this month")):
            budget = rules.get(f"{kind}/{spender}", rules.get(f"person_{kind}", Budget()))
            if spender:
                key, spent = f"{kind}/{period}/{spender}", partial(self._of_host, period, turn, spender)
                yield AppliedBudget(key, f"{spender} {words}", budget, spent)
            spent = partial(self._of_host, period, turn)
            yield AppliedBudget(f"{kind}/{period}", f"{words} on this host", rules.get(kind, Budget()), spent)

    # -- what was spent ------------------------------------------------------------------------------------------

    async def _of_sessions(self, sessions: Callable[[], Awaitable[list[Session]]], asking: Turn) -> Spent:
        spent = Spent()
        for session in await sessions():
            spent += await self._of_session(session, None, asking)
        return spent

    async def _of_session(self, session: Session, turn: str | None, asking: Turn) -> Spent:
        """Return the amount spent, including sub-agents. `asking` counts as a turn even before it starts."""
        await session.load()
        state = session.state
        turns = [each for each in state.turns if turn is None or each.id == turn]
        started = [each for each in turns if (state.id, each.id) not in self.unstarted]
        spent = await spent_in(state, started, self._host.now())
        spent.minutes -= sum(self._held.get((state.id, each.id), 0) for each in started) / 60_000
        spent.turns += asking.session is session and (state.id, asking.id) in self.unstarted
        for child in state.children:
            found = self._host.find(child)
            origin = found.summary.origin if found is not None else None
            if found is not None and (turn is None or (origin is not None and origin.turn == turn)):
                spent += await self._of_session(found, None, asking)
        return spent

    def _unstarted(self, asking: Turn) -> set[tuple[str, str]]:
        """Return the other turns that wait to start."""
        return self.unstarted - {(asking.session.id, asking.id)}

    async def _of_host(self, period: str, asking: Turn, spender: str | None = None) -> Spent:
        offset = int(datetime.now().astimezone().utcoffset().total_seconds() // 60)  # type: ignore[union-attr]
        used = await self._book.sum(period, offset, spender)
        tokens = used.input + used.output
        # Round the sum: repeated additions and subtractions of fractions of a cent leave float errors.
        cost = round(used.cost + used.estimated, 9)
        spent = Spent(cost, used.estimated > 1e-9, used.unpriced, tokens, 0.0, used.turns)
        for session, _ in self._unstarted(asking):
            found = self._host.find(session)
            if found is not None and spender in (None, (await self.lineages.of(found)).spender):
                spent.turns -= 1
        return spent


def is_current(key: str, now: int) -> bool:
    """Return False for a budget of a past day or month."""
    return not key.startswith(SHARED) or _today(now).startswith(key.split("/")[1])


def _today(now: int) -> str:
    return datetime.fromtimestamp(now / 1000).strftime("%Y-%m-%d")


async def spent_in(state: SessionState, turns: list[TurnState], now: int) -> Spent:
    spent = Spent(turns=len(turns))
    untold: list[TokenUse] = []
    for turn in turns:
        spent.minutes += turn.worked(now) / 60_000
        spent.calls += sum(isinstance(part, CallPart) for part in turn.parts)
        if turn.usage is None:
            continue
        spent.tokens += turn.usage.input + turn.usage.output
        spent.dollars += turn.usage.cost
        if not turn.usage.cost:
            model = turn.usage.model or turn.message.model or state.model
            untold.append(TokenUse(model, turn.usage.input, turn.usage.output, turn.usage.cached))
    for cost in await dollars(untold):
        spent.dollars += cost or 0.0
        spent.estimated = spent.estimated or cost is not None
        spent.unpriced += cost is None
    return spent


def rules_of(settings: BudgetSettings) -> dict[str, Budget]:
    """Return the budgets by name (`session`, `day`; `day/NAME` for one person), without those that have no bound."""
    found = {name: budget for name, budget in msgspec.structs.asdict(settings).items() if name != "people"}
    for person, own in settings.people.items():
        found |= {f"day/{person}": own.day, f"month/{person}": own.month}
    return {name: budget for name, budget in found.items() if budget != Budget() or "/" in name}


def read_budget(value: object, field: str) -> Budget:
    try:
        return msgspec.convert(value if value is not None else {}, Budget)
    except msgspec.ValidationError as error:
        raise BadRequest(f"{field}: {error}.", field=field) from None
