"""Holds turns to their budgets: before each model call and tool that an agent lets us see, and when usage arrives.

At 80 % a remark, once. At 100 % a person is asked, and the turn waits where its agent lets us hold it: raise it by as
much again, let it finish, or stop. Nothing dies by itself. One question for each budget, however many turns wait for
its answer. What a person added is stored, and so is what they said about a job or a run: it holds over a restart.
"""

import asyncio
from collections.abc import Sequence
from weakref import WeakValueDictionary

import msgspec

from portico import commands as c
from portico import events as e
from portico.budgets.budget import WARN_AT, Use, most_used, raised
from portico.budgets.ledger import SHARED, AppliedBudget, Ledger, read_budget
from portico.errors import BudgetSpent
from portico.events import HOST, Budget, Json, Record
from portico.host.autonomy import BUDGET
from portico.host.component import Component
from portico.host.host import Host
from portico.host.question import Answer
from portico.host.session import Session
from portico.host.state import QuestionPart
from portico.host.turn import Turn
from portico.usage.lineage import ORIGINS

STORED = "budget/"
WARNED = "budget.warned"
"""What the audit record calls it."""
RAISE, FINISH, STOP = "raise", "finish", "stop"
WAITS = "The agent waits."
WORKS_ON = "The agent works on meanwhile: it waits only before a tool that it asks about."
"""Of an agent that does not ask us before each call of its model: nobody can hold it there."""
_LOOK_SECONDS, _NAP_SECONDS = 1.0, 60.0
"""Between two looks at the minutes of a turn, at least and at most: 80 % are noticed within a minute."""
_GRACE_SECONDS = 5.0
"""In which an agent that asks us before each call ends by itself."""


_GUARDED = frozenset({c.StartSession, c.ChangeSession, c.ConfigureSession, c.AnswerQuestion})
_HEARD = frozenset({e.UsageReported, e.ToolStarted, e.TurnStarted, e.TurnResumed, e.TurnEnded})


class Budgets(Component):
    def __init__(self, host: Host) -> None:
        self.host = host
        self.rules: dict[str, Budget] = {}
        """`turn`, `session`, `day`, `month`, ...: as the settings say."""
        self._ledger = Ledger(host)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._asked_in: dict[str, str] = {}
        """By budget: the session in which a person is asked about it."""
        self._warned: set[tuple[str, str]] = set()
        self._excused: set[str] = set()
        """Turns that a person let finish."""
        self._stopped: dict[str, str] = {}
        """Turns that a person stopped, and the words for it."""
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}
        host.spending = self
        host.log.on_commit(self._committed)
        host.commands.guard(self._guard)

    # -- when ----------------------------------------------------------------------------------------------------

    def _committed(self, records: Sequence[Record]) -> None:
        for record in records:
            kind = type(record.event)
            if kind in _HEARD:
                self._hear(record)
            elif kind in ORIGINS:
                self._ledger.lineages.note_begun(record)

    def _hear(self, record: Record) -> None:
        """Agents that ask us nothing are held when they report usage or a call, and all of them by the time."""
        ident = record.channel.removeprefix("session/")
        if isinstance(record.event, e.TurnEnded):
            key = _key(ident, record.event.turn)
            self._excused.discard(key)
            self._stopped.pop(key, None)
            if (watch := self._watches.pop(key, None)) is not None:
                watch.cancel()
            return
        if isinstance(record.event, e.TurnStarted | e.TurnResumed):
            asyncio.get_running_loop().call_soon(self._begin, ident)  # when everybody has heard of it
            return
        turn = self.host.turns.get(ident)
        if turn is not None and not turn.admits and self._counts(turn.session):
            self.host.own(self._look(turn), f"budget of {turn.id}")

    def _begin(self, session: str) -> None:
        turn = self.host.turns.get(session)
        if turn is not None and turn.live and self._counts(turn.session):
            self._watches[_key(session, turn.id)] = self.host.own(self._watch(turn), f"minutes of {turn.id}")

    async def _watch(self, turn: Turn) -> None:
        """Agents may be silent for an hour: minutes pass all the same."""
        while turn.live and not turn.withdrawn and _key(turn.session.id, turn.id) not in self._excused:
            left = await self._minutes_left(turn)
            if left is None:
                return
            if left > 0:
                nothing = asyncio.get_running_loop().create_future()
                await self.host.clock.wait(nothing, min(max(left * 60, _LOOK_SECONDS), _NAP_SECONDS))
            if not await self._look(turn):
                return

    async def _minutes_left(self, turn: Turn) -> float | None:
        """Of the budget that ends first; None: none is in minutes."""
        found: list[float] = []
        for held in await self._ledger.held(turn, self.rules):
            said = await self._said(held.key) if held.budget.minutes is not None else {FINISH: 1.0}
            bound = raised(held.budget, said).minutes
            if bound is not None and not said.get(FINISH):
                found.append(bound - (await held.spent()).minutes)
        return min(found, default=None)

    async def _look(self, turn: Turn) -> bool:
        """Whether it may go on."""
        try:
            await self.admit(turn)
            return True
        except BudgetSpent as spent:
            if turn.live:
                turn.remark(spent.message)
                if turn.admits:  # it fails by itself where it waits for us
                    await asyncio.wait({asyncio.ensure_future(turn.session.wait(turn.id))}, timeout=_GRACE_SECONDS)
                if turn.live:
                    await turn.session.cancel(by="budget")
            return False

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
        """Whether there may be a budget at all: jobs and automations have theirs in the log."""
        root = self.host.catalogue.root(session).summary
        return bool(self.rules) or BUDGET in session.state.config or root.by.startswith(("task:", "run:"))

    # -- how much ------------------------------------------------------------------------------------------------

    async def _check(self, turn: Turn) -> None:
        await self.host.log.flush()  # what was reported is counted
        for held in await self._ledger.held(turn, self.rules):
            if not await self._hold(held, turn):
                return

    async def _hold(self, held: AppliedBudget, turn: Turn) -> bool:
        """Whether the next budget is to be looked at."""
        lock = self._locks.setdefault(held.key, asyncio.Lock())
        if held.key in self._asked_in:
            turn.remark(f"Waits for an answer about the budget of {held.about}, asked in {self._asked_in[held.key]}.")
        turn.waiting += 1
        try:
            async with lock:
                return await self._settle(held, turn)
        finally:
            turn.waiting -= 1

    async def _settle(self, held: AppliedBudget, turn: Turn) -> bool:
        while turn.live and not turn.withdrawn:
            said = await self._said(held.key)
            if said.get(FINISH):
                return True
            use = await self._use(held, said, turn)
            if use is None or use.share < 1.0:
                if use is not None and use.share >= WARN_AT:
                    await self._warn(held, use, turn)
                return True
            if said.get(STOP):
                raise BudgetSpent(f"The budget of {held.about} is spent: {use.words}. A person has stopped it.")
            if not await self._ask(held, use, turn):
                return bool(held.whole)
        return False

    async def _use(self, held: AppliedBudget, said: dict[str, float], turn: Turn) -> Use | None:
        spent = await held.spent()
        budget = raised(held.budget, said)
        if spent.unpriced and budget.dollars is not None:
            self._tell(held, "unpriced", turn, f"What {turn.model} costs is unknown: the budget of {held.about} in "
                       "dollars cannot be held. Set one in tokens.")  # fmt: skip
        return most_used(budget, spent)

    # -- people --------------------------------------------------------------------------------------------------

    async def _warn(self, held: AppliedBudget, use: Use, turn: Turn) -> None:
        """In the conversation, and in the log, from which people are told who do not look."""
        words = f"{use.share:.0%} of the budget of {held.about} is spent: {use.words}."
        if self._tell(held, use.bound, turn, words):
            detail = {"budget": held.key, "session": turn.session.id, "words": words}
            await self.host.audit(WARNED, "host", **detail)

    def _tell(self, held: AppliedBudget, what: str, turn: Turn, words: str) -> bool:
        """Whether it was new."""
        if (held.key, what) in self._warned:
            return False
        self._warned.add((held.key, what))
        turn.remark(words)
        return True

    async def _ask(self, held: AppliedBudget, use: Use, turn: Turn) -> bool:
        """Whether to look again. BudgetSpent: no."""
        size = getattr(held.budget, use.bound)
        text = f"The budget of {held.about} is spent: {use.words}. {WAITS if turn.admits else WORKS_ON}"
        self._asked_in[held.key] = turn.session.id
        try:
            answer = await turn.ask(text, _choices(use.bound, size, held))
        finally:
            del self._asked_in[held.key]
        if not turn.live or turn.withdrawn:
            return False  # it is being cancelled anyway
        choice = answer.text if answer.response == "accept" else STOP
        await self.host.audit("budget.answered", answer.by, budget=held.key, answer=choice, spent=use.words)
        if choice == RAISE:
            await self._store(held.key, use.bound, size)
            self._warned.discard((held.key, use.bound))
            return True
        if held.whole:
            await self._store(held.key, choice, 1)
        elif choice == FINISH:
            self._excused.add(_key(turn.session.id, turn.id))
        if choice == FINISH:
            return False
        words = f"The budget of {held.about} is spent: {use.words}. Stopped by {answer.by}."
        self._stopped[_key(turn.session.id, turn.id)] = words
        raise BudgetSpent(words)

    async def _store(self, key: str, name: str, more: float) -> None:
        said = await self._said(key)
        said[name] = said.get(name, 0) + more
        self.host.log.put_kv(HOST, STORED + key, msgspec.json.encode(said))
        await self.host.log.flush()

    async def _said(self, key: str) -> dict[str, float]:
        """What people added, by bound; `stop` and `finish` where they said so of the whole."""
        data = await self.host.log.get_kv(HOST, STORED + key)
        return msgspec.json.decode(data, type=dict[str, float]) if data is not None else {}

    # -- commands ------------------------------------------------------------------------------------------------

    def _guard(self, command: c.Command, caller: c.Caller) -> None:
        if type(command) not in _GUARDED:
            return
        match command:
            case c.StartSession(config=values) | c.ChangeSession(config=values) | c.ConfigureSession(values=values):
                read_budget((values or {}).get(BUDGET), "config.budget")
            case c.AnswerQuestion(response="accept") if caller.person:
                self._guard_raise(command, caller)

    def _guard_raise(self, command: c.AnswerQuestion, caller: c.Caller) -> None:
        """A budget of a day or a month is not of one conversation alone: where there are people, an admin raises it."""
        session = self.host.find(self.host.session_of(command.question))
        active = session.state.active if session is not None and session.loaded else None
        part = active.part(command.question) if active is not None else None
        if session is None or not isinstance(part, QuestionPart) or not is_budget_question(part.fields):
            return
        shared = any(where == session.id and key.startswith(SHARED) for key, where in self._asked_in.items())
        if shared and Answer("accept", {**part.answers, **command.answers}, "").text != STOP:
            caller.require_all("This budget is for a day or a month, and more than this conversation depends on it")


def _key(session: str, turn: str) -> str:
    return f"{session}/{turn}"


def _choices(bound: str, size: float, held: AppliedBudget) -> list[Json]:
    amount = f"${size:.2f}" if bound == "dollars" else f"{size:,g} {'tool calls' if bound == 'calls' else bound}"
    options = [
        {"id": RAISE, "label": f"Raise it by {amount}"},
        {"id": FINISH, "label": f"Let this {held.whole or 'turn'} finish"},
        {"id": STOP, "label": f"Stop {f'the {held.whole}' if held.whole else ''}".strip()},
    ]
    return [{"id": "answer", "kind": "single-select", "message": "Go on?", "required": True, "options": options}]


def is_budget_question(fields: list[Json]) -> bool:
    return [option.get("id") for field in fields for option in field.get("options", [])] == [RAISE, FINISH, STOP]
