"""Holds turns to their budgets: before each model call and tool that an agent lets us see, and when usage arrives.

At 80 % a remark, once. At 100 % the turn waits and a person is asked: raise it by as much again, let this turn finish,
or stop. Nothing dies by itself. What a person added is stored, so it holds over a restart.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from portico import commands as c
from portico import events as e
from portico.budgets.budget import WARN_AT, Spent, Use, most_used, raised
from portico.errors import BadRequest, BudgetSpent
from portico.events import HOST, Json, Record
from portico.host.autonomy import BUDGET
from portico.host.host import Host
from portico.host.part import Part
from portico.host.session import Session
from portico.host.state import CallPart, SessionState, TurnState
from portico.host.turn import Turn
from portico.settings import Budget, BudgetSettings
from portico.usage.book import UsageBook
from portico.usage.prices import Tokens, dollars

STORED = "budget/"
RAISE, FINISH, STOP = "raise", "finish", "stop"


class Held(NamedTuple):
    """One budget that counts for a turn."""

    key: str
    """What it is remembered by: `session/ID`, `day/2026-11-16` ..."""
    about: str
    """`this session`, `today on this host`: for sentences."""
    budget: Budget


class Budgets(Part):
    def __init__(self, host: Host) -> None:
        self.host = host
        self.rules: dict[str, Budget] = {}
        """`turn`, `session`, `day`, `month`: as the settings say."""
        self._book = UsageBook(host)
        self._warned: set[tuple[str, str]] = set()
        self._excused: set[str] = set()
        """Turns that a person let finish."""
        self._stopped: dict[str, str] = {}
        """Turns that a person stopped, and the words for it."""
        self._asking: dict[str, asyncio.Task[None]] = {}
        host.spending = self
        host.log.on_commit(self._committed)
        host.commands.guard(_check_shape)

    # -- when ----------------------------------------------------------------------------------------------------

    def _committed(self, records: Sequence[Record]) -> None:
        for record in records:
            if isinstance(record.event, e.UsageReported | e.TurnEnded):
                self._hear(record)

    def _hear(self, record: Record) -> None:
        """Agents that ask us nothing are held when they report."""
        if isinstance(record.event, e.UsageReported):
            turn = self.host.turns.get(record.channel.removeprefix("session/"))
            if turn is not None and not turn.admits and self._counts(turn.session):
                self.host.own(self._look(turn), f"budget of {turn.id}")
        elif isinstance(record.event, e.TurnEnded):
            key = _key(record.channel.removeprefix("session/"), record.event.turn)
            self._excused.discard(key)
            self._stopped.pop(key, None)

    async def _look(self, turn: Turn) -> None:
        try:
            await self.admit(turn)
        except BudgetSpent as spent:
            if turn.live:
                turn.remark(spent.message)
                await turn.session.cancel(by="budget")

    async def admit(self, turn: Turn) -> None:
        """Returns when the turn may go on; BudgetSpent if a person said stop."""
        key = _key(turn.session.id, turn.id)
        if not self._counts(turn.session) or key in self._excused or not turn.live:
            return
        if key in self._stopped:
            raise BudgetSpent(self._stopped[key])
        running = self._asking.get(key)
        if running is None:
            running = self.host.own(self._check(turn), f"budget question of {turn.id}")
            self._asking[key] = running
            running.add_done_callback(lambda _: self._asking.pop(key, None))
        await asyncio.shield(running)

    def _counts(self, session: Session) -> bool:
        return bool(self.rules) or BUDGET in session.state.config

    # -- how much ------------------------------------------------------------------------------------------------

    async def _check(self, turn: Turn) -> None:
        await self.host.log.flush()  # what was reported is counted
        for held in self._held(turn):
            while (use := await self._use(held, turn)) is not None and use.share >= 1.0:
                if not await self._ask(held, use, turn):
                    return
            if use is not None and use.share >= WARN_AT:
                self._warn(held, use, turn)

    def _held(self, turn: Turn) -> list[Held]:
        state, day = turn.session.state, self._today()
        own = read_budget(state.config.get(BUDGET), "config.budget")
        found = [
            Held(f"turn/{turn.session.id}/{turn.id}", "this turn", self.rules.get("turn", Budget())),
            Held(f"session/{turn.session.id}", "this session", self.rules.get("session", Budget())),
            Held(f"own/{turn.session.id}", "this session", own),
            Held(f"day/{day}", "today on this host", self.rules.get("day", Budget())),
            Held(f"month/{day[:7]}", "this month on this host", self.rules.get("month", Budget())),
        ]
        return [each for each in found if each.budget != Budget()]

    def _today(self) -> str:
        return datetime.fromtimestamp(self.host.now() / 1000).strftime("%Y-%m-%d")

    async def _use(self, held: Held, turn: Turn) -> Use | None:
        kind = held.key.partition("/")[0]
        if kind in ("day", "month"):
            spent = await self._of_host(held.key.partition("/")[2])
        else:
            spent = await self._of_session(turn.session, turn.id if kind == "turn" else None)
        budget = raised(held.budget, await self._more(held.key))
        if spent.unpriced and budget.dollars is not None:
            self._tell(held, "unpriced", turn, f"What {turn.model} costs is unknown: the budget of {held.about} in "
                       "dollars cannot be held. Set one in tokens.")  # fmt: skip
        return most_used(budget, spent)

    async def _of_session(self, session: Session, turn: str | None) -> Spent:
        """With its sub-agents: they spend what it was given."""
        await session.load()
        turns = [each for each in session.state.turns if turn is None or each.id == turn]
        spent = await spent_in(session.state, turns, self.host.now())
        if turn is None:
            for child in session.state.children:
                found = self.host.find(child)
                if found is not None:
                    spent += await self._of_session(found, None)
        return spent

    async def _of_host(self, period: str) -> Spent:
        spent = Spent()
        offset = int(datetime.now().astimezone().utcoffset().total_seconds() // 60)  # type: ignore[union-attr]
        for row in await self._book.rows(31, offset):
            if row.day.startswith(period):
                used = row.input + row.output
                spent += Spent(row.cost + row.estimated, row.estimated > 0, row.unpriced, used, 0.0, row.turns)
        return spent

    # -- people --------------------------------------------------------------------------------------------------

    def _warn(self, held: Held, use: Use, turn: Turn) -> None:
        self._tell(held, use.bound, turn, f"{use.share:.0%} of the budget of {held.about} is spent: {use.words}.")

    def _tell(self, held: Held, what: str, turn: Turn, words: str) -> None:
        if (held.key, what) not in self._warned:
            self._warned.add((held.key, what))
            turn.remark(words)

    async def _ask(self, held: Held, use: Use, turn: Turn) -> bool:
        """Whether to look again. BudgetSpent: no."""
        size = getattr(held.budget, use.bound)
        text = f"The budget of {held.about} is spent: {use.words}. The agent waits."
        answer = await turn.ask(text, _choices(use.bound, size))
        if not turn.live or turn.withdrawn:
            return False  # it is being cancelled anyway
        choice = answer.text if answer.response == "accept" else STOP
        await self.host.audit("budget.answered", answer.by, budget=held.key, answer=choice, spent=use.words)
        if choice == RAISE:
            await self._raise(held.key, use.bound, size)
            self._warned.discard((held.key, use.bound))
            return True
        if choice == FINISH:
            self._excused.add(_key(turn.session.id, turn.id))
            return False
        words = f"The budget of {held.about} is spent: {use.words}. Stopped by {answer.by}."
        self._stopped[_key(turn.session.id, turn.id)] = words
        raise BudgetSpent(words)

    async def _raise(self, key: str, bound: str, by: float) -> None:
        more = await self._more(key)
        more[bound] = more.get(bound, 0) + by
        self.host.log.put_kv(HOST, STORED + key, msgspec.json.encode(more))
        await self.host.log.flush()

    async def _more(self, key: str) -> dict[str, float]:
        data = await self.host.log.get_kv(HOST, STORED + key)
        return msgspec.json.decode(data, type=dict[str, float]) if data is not None else {}


def _key(session: str, turn: str) -> str:
    return f"{session}/{turn}"


def _choices(bound: str, size: float) -> list[Json]:
    amount = f"${size:.2f}" if bound == "dollars" else f"{size:,g} {'tool calls' if bound == 'calls' else bound}"
    options = [
        {"id": RAISE, "label": f"Raise it by {amount}"},
        {"id": FINISH, "label": "Let this turn finish"},
        {"id": STOP, "label": "Stop"},
    ]
    return [{"id": "answer", "kind": "single-select", "message": "Go on?", "required": True, "options": options}]


def is_budget_question(fields: list[Json]) -> bool:
    return [option.get("id") for field in fields for option in field.get("options", [])] == [RAISE, FINISH, STOP]


async def spent_in(state: SessionState, turns: list[TurnState], now: int) -> Spent:
    spent = Spent(turns=len(turns))
    untold: list[Tokens] = []
    for turn in turns:
        spent.minutes += ((turn.ended or now) - turn.started) / 60_000
        spent.calls += sum(isinstance(part, CallPart) for part in turn.parts)
        if turn.usage is None:
            continue
        spent.tokens += turn.usage.input + turn.usage.output
        spent.dollars += turn.usage.cost
        if not turn.usage.cost:
            model = turn.usage.model or turn.message.model or state.model
            untold.append(Tokens(model, turn.usage.input, turn.usage.output, turn.usage.cached))
    for cost in await dollars(untold):
        spent.dollars += cost or 0.0
        spent.estimated = spent.estimated or cost is not None
        spent.unpriced += cost is None
    return spent


def _check_shape(command: c.Command, caller: c.Caller) -> None:
    if isinstance(command, c.StartSession | c.ConfigureSession):
        values = command.config if isinstance(command, c.StartSession) else command.values
        read_budget((values or {}).get(BUDGET), "config.budget")


def rules_of(settings: BudgetSettings) -> dict[str, Budget]:
    """Without those that bound nothing."""
    return {name: budget for name, budget in msgspec.structs.asdict(settings).items() if budget != Budget()}


def read_budget(value: object, field: str) -> Budget:
    try:
        return msgspec.convert(value if value is not None else {}, Budget)
    except msgspec.ValidationError as error:
        raise BadRequest(f"{field}: {error}.", field=field) from None
