"""Enforces the budgets of turns: before they start, before each model call and tool that an agent asks about, and when
usage is reported.

At 80 % the turn gets one remark. At 100 % a person is asked, and no turn that counts toward the budget starts. The
options are: raise it by the same amount, let the turn finish, or stop. No process is killed. The question belongs to
the budget (`question.py`): it is asked once, outlives the turn that reached the budget, and its answer applies to every
waiting turn. Open questions, amounts that a person added, and the answer about a job or a run are stored and survive a
restart. A turn that waits to start waits again after a restart.
"""

import asyncio
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from portico.features.budgets.budget import WARN_AT, Use, most_used, raised
from portico.features.budgets.commands import AnswerBudget, UnansweredBudget
from portico.features.budgets.ledger import SHARED, AppliedBudget, Ledger, is_current, read_budget, rules_of
from portico.features.budgets.question import FINISH, RAISE, STOP, AskedBudget, BudgetQuestion, chosen
from portico.features.budgets.question import is_budget_question as is_budget_question
from portico.features.budgets.questions import BudgetQuestions
from portico.features.usage.lineage import ORIGINS
from portico.features.usage.usage_index import UsageIndex
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.autonomy import BUDGET
from portico.kernel.component import Spending
from portico.kernel.errors import BadRequest, BudgetSpent
from portico.kernel.events import HOST, Budget, Record
from portico.kernel.feature import Feature, guard, handle, receive
from portico.kernel.host import Host
from portico.kernel.question import Answer
from portico.kernel.session import Session
from portico.kernel.state import QuestionPart
from portico.kernel.turn import Turn
from portico.server.settings import BudgetSettings

STORED = "budget/"
HELD = "held"
"""Key of the stored turn of a session that waits to start (`HeldTurn`)."""
WARNED = "budget.warned"
"""Its name in the audit record."""
STARTS_LATER = "The agent starts when it is answered."
WAITS = "The agent waits."
WORKS_ON = "The agent works on meanwhile: it waits only before a tool that it asks about."
"""For an agent that does not ask the host before each model call: it cannot be paused there."""
_LOOK_SECONDS, _NAP_SECONDS = 1.0, 60.0
"""Minimum and maximum interval between two checks of a turn's minutes: 80 % are noticed within a minute."""
_GRACE_SECONDS = 5.0
"""Time for an agent that asks before each call to end the turn before it is canceled."""
_SHARED_WORDS = "This budget is for a day or a month, and more than this conversation depends on it"
_PERIOD_OVER = "budget"
"""The name under which a question about a past day or month is withdrawn."""


_GUARDED = frozenset({c.StartSession, c.ChangeSession, c.ConfigureSession, c.AnswerQuestion})


class HeldTurn(Struct, frozen=True):
    turn: str
    resumed: bool


class Budgets(Feature, Spending):
    name = "budgets"
    commands = (AnswerBudget,)
    needs = (UsageIndex,)
    settings = BudgetSettings

    def __init__(self, host: Host, usage: UsageIndex) -> None:
        super().__init__(host)
        self._rules: dict[str, Budget] = {}
        self._ledger = Ledger(host, usage)
        self._evaluating = asyncio.Lock()
        """Turns that are about to start are counted one after another."""
        self._questions = BudgetQuestions(host)
        self._answers = 0
        self._starting: dict[str, bool] = {}
        """Turns that are about to start, and whether they are resumed."""
        self._stored: set[str] = set()
        """Those of `_starting` that are stored as waiting."""
        self._recovered: set[str] = set()
        """Turns that were waiting to start when the host stopped."""
        self._configured = asyncio.Event()
        self._warned: set[tuple[str, str]] = set()
        self._excused: set[str] = set()
        """Turns that a person allowed to finish."""
        self._stopped: dict[str, str] = {}
        """Turns that a person stopped, and the message."""
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}
        host.spending = self

    @property
    def rules(self) -> dict[str, Budget]:
        """The budgets in the settings: `turn`, `session`, `day`, `month`, ..."""
        return self._rules

    @rules.setter
    def rules(self, rules: dict[str, Budget]) -> None:
        if self._configured.is_set() and rules != self._rules:
            self._questions.drop()  # they are asked again if the new budgets are exhausted, too
        self._rules = rules
        self._configured.set()

    # -- when ----------------------------------------------------------------------------------------------------

    def configure(self, settings: BudgetSettings) -> None:
        self.rules = rules_of(settings)

    @receive(*ORIGINS)
    def _started(self, record: Record) -> None:
        self._ledger.lineages.note_begun(record)

    @receive(e.UsageReported, e.ToolStarted, e.TurnStarted, e.TurnResumed, e.TurnEnded)
    def _follow(self, record: Record) -> None:
        """Check the budget when an agent reports usage or a call, and watch the time of every turn."""
        ident = record.channel.removeprefix("session/")
        if isinstance(record.event, e.TurnEnded):
            key = _key(ident, record.event.turn)
            self._excused.discard(key)
            self._stopped.pop(key, None)
            self._ledger.unstarted.discard((ident, record.event.turn))
            for question in self._questions.open.values():
                question.left(key)
            if (watch := self._watches.pop(key, None)) is not None:
                watch.cancel()
            return
        if isinstance(record.event, e.TurnStarted | e.TurnResumed):
            asyncio.get_running_loop().call_soon(self._begin, ident)  # after all subscribers have received it
            return
        turn = self.host.turns.get(ident)
        if turn is not None and not turn.admits and self._counts(turn.session):
            self.host.own(self._look(turn), f"budget of {turn.id}")

    def _begin(self, session: str) -> None:
        turn = self.host.turns.get(session)
        if turn is not None and turn.live and self._counts(turn.session):
            self._watches[_key(session, turn.id)] = self.host.own(self._watch(turn), f"minutes of {turn.id}")

    async def _watch(self, turn: Turn) -> None:
        """Check the minutes of a turn periodically: an agent may report nothing for an hour."""
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
        """Return the minutes left in the budget that ends first; None: no budget is in minutes."""
        found: list[float] = []
        for held in await self._ledger.held(turn, self.rules):
            said = await self._said(held.key) if held.budget.minutes is not None else {FINISH: 1.0}
            bound = raised(held.budget, said).minutes
            if bound is not None and not said.get(FINISH):
                found.append(bound - (await held.spent()).minutes)
        return min(found, default=None)

    async def _look(self, turn: Turn) -> bool:
        """Check the budgets of a turn; return whether it may continue."""
        try:
            await self.admit(turn)
            return True
        except BudgetSpent as spent:
            if turn.live:
                turn.remark(spent.message)
                if turn.admits or turn.held:  # it waits for the host and fails there
                    ended = self.host.own(turn.session.wait(turn.id), f"end of {turn.id} after its budget")
                    await asyncio.wait({ended}, timeout=_GRACE_SECONDS)
                    ended.cancel()
                if turn.live:
                    await turn.session.cancel(by="budget")
            return False

    async def start(self, turn: Turn, *, resumed: bool) -> None:
        """Return when the turn may start. Raise BudgetSpent if a person stopped it."""
        if not self._recovered and not self._counts(turn.session):
            return
        session, key = turn.session, _key(turn.session.id, turn.id)
        recovered = key in self._recovered
        if recovered:
            await self._configured.wait()  # after a restart, budgets are known once the settings are loaded
            self._begin(session.id)
        try:
            if self._counts(session):
                if not resumed:
                    self._ledger.unstarted.add((session.id, turn.id))
                self._starting[key] = resumed
                await self.admit(turn)
        finally:
            self._starting.pop(key, None)
            self._ledger.unstarted.discard((session.id, turn.id))
            if (recovered or key in self._stored) and not self.host.stopping:
                self.host.log.put_kv(session.channel, HELD, None)
                self._recovered.discard(key)
                self._stored.discard(key)

    async def held_at_start(self, session: Session, turn: str) -> bool | None:
        """Return None for jobs and automations, which resume their turns themselves."""
        if session.state.by.startswith(("task:", "run:")):
            return None
        data = await self.host.log.get_kv(session.channel, HELD)
        found = msgspec.json.decode(data, type=HeldTurn) if data is not None else None
        if found is None or found.turn != turn:
            return None
        self._recovered.add(_key(session.id, turn))
        return found.resumed

    async def _store_held(self, turn: Turn) -> None:
        key = _key(turn.session.id, turn.id)
        if key in self._starting and key not in self._stored and key not in self._recovered:
            self._stored.add(key)
            held = HeldTurn(turn.id, self._starting[key])
            self.host.log.put_kv(turn.session.channel, HELD, msgspec.json.encode(held))
            await self.host.log.flush()

    async def admit(self, turn: Turn) -> None:
        """Return when the turn may continue. Raise BudgetSpent if a person stopped it."""
        key = _key(turn.session.id, turn.id)
        if not self._counts(turn.session) or self._is_excused(turn) or not turn.live:
            return
        running = self._asking.get(key)
        if running is None:
            running = self.host.own(self._check(turn), f"budget question of {turn.id}")
            self._asking[key] = running
            running.add_done_callback(lambda _: self._asking.pop(key, None))
        await asyncio.shield(running)

    def _counts(self, session: Session) -> bool:
        """Return whether a budget may apply at all. Those of jobs and automations are in the log."""
        root = self.host.catalogue.root(session).summary
        return bool(self._rules) or root.by.startswith(("task:", "run:")) or self._has_own(session)

    def _has_own(self, session: Session | None) -> bool:
        """Whether the session, or the session whose agent started it, has a budget of its own."""
        while session is not None:
            if session.loaded and BUDGET in session.state.config:
                return True
            origin = session.summary.origin
            session = self.host.find(origin.session) if origin is not None and origin.kind == "agent" else None
        return False

    # -- how much ------------------------------------------------------------------------------------------------

    def _is_excused(self, turn: Turn) -> bool:
        """Whether a person let the turn, or the turn that started it, finish. BudgetSpent: a person stopped it."""
        for key in self._line(_key(turn.session.id, turn.id)):
            if key in self._stopped:
                raise BudgetSpent(self._stopped[key])
            if key in self._excused:
                return True
        return False

    def _line(self, key: str, owner: str = "") -> Iterator[str]:
        """The turn, the turn that started it as a sub-agent, and so on, up to the session `owner`."""
        while True:
            yield key
            ident = key.partition("/")[0]
            session = self.host.find(ident) if ident != owner else None
            origin = session.summary.origin if session is not None else None
            if origin is None or origin.kind != "agent" or origin.turn is None:
                return
            key = _key(origin.session, origin.turn)

    async def _check(self, turn: Turn) -> None:
        await self.host.log.flush()  # so that all reported usage is counted
        while not _is_over(turn) and not self._is_excused(turn):
            answers = self._answers
            async with self._evaluating:
                found = await self._first_exhausted(turn)
                if found is None:
                    self._ledger.unstarted.discard((turn.session.id, turn.id))
                    return
            await self._store_held(turn)
            if answers != self._answers:
                continue  # answered in between
            turn.waiting += 1
            since = self.host.now()
            try:
                await self._wait(*found, turn)
            finally:
                turn.waiting -= 1
                self._ledger.note_held(turn, self.host.now() - since)

    async def _first_exhausted(self, turn: Turn) -> tuple[AppliedBudget, Use] | None:
        """Return the narrowest one, unless a person let it finish. BudgetSpent: a person stopped the job or run."""
        for held in await self._ledger.held(turn, self.rules):
            said = await self._said(held.key)
            use = None if said.get(FINISH) else await self._use(held, said, turn)
            if _key(turn.session.id, turn.id) in self._starting and (use is None or use.share < 1.0):
                self._questions.settle(held.key)  # one more turn fits: the budget was raised elsewhere
            if use is None or use.share < WARN_AT:
                continue
            if use.share < 1.0:
                await self._warn(held, use, turn)
                continue
            if said.get(STOP):
                raise BudgetSpent(f"The budget of {held.about} is spent: {use.words}. A person has stopped it.")
            return held, use
        return None

    async def _use(self, held: AppliedBudget, said: dict[str, float], turn: Turn) -> Use | None:
        spent = await held.spent()
        budget = raised(held.budget, said)
        if spent.unpriced and budget.dollars is not None:
            self._tell(held, "unpriced", turn, f"What {turn.model} costs is unknown: the budget of {held.about} in "
                       "dollars cannot be held. Set one in tokens.")  # fmt: skip
        return most_used(budget, spent)

    # -- people --------------------------------------------------------------------------------------------------

    async def _warn(self, held: AppliedBudget, use: Use, turn: Turn) -> None:
        """Warn in the conversation and in the log; notices to people who are away are sent from the log."""
        words = f"{use.share:.0%} of the budget of {held.about} is spent: {use.words}."
        if self._tell(held, use.bound, turn, words):
            detail = {"budget": held.key, "session": turn.session.id, "words": words}
            await self.host.audit(WARNED, "host", **detail)

    def _tell(self, held: AppliedBudget, what: str, turn: Turn, words: str) -> bool:
        """Add a remark to the turn once; return whether it was new."""
        if (held.key, what) in self._warned:
            return False
        self._warned.add((held.key, what))
        turn.remark(words)
        return True

    async def _wait(self, held: AppliedBudget, use: Use, turn: Turn) -> None:
        """Wait until the question about this budget is answered or the turn ends."""
        question = self._questions.about(held, use, turn)
        if question.shown_in is not None:
            turn.remark(f"Waits for an answer about the budget of {held.about}, asked in {question.asked_in}.")
        try:
            await self._wait_for(question, turn)
        finally:
            self._questions.left(question)

    async def _wait_for(self, question: BudgetQuestion, turn: Turn) -> None:
        with question.waiting(turn):
            while not _is_over(turn) and not question.closed:
                if question.shown_in is not None:
                    await question.changed()
                    continue
                with question.showing(turn):
                    answer, part = await self._ask(question.asked, turn)
                    if answer.by == "turn":
                        return  # the turn ended without an answer: another turn shows the question
                    if answer.by != _PERIOD_OVER:
                        await self._apply(question, _choice(question.asked, answer), answer.by, part)
                    question.close()
                    self._answers += 1

    async def _ask(self, about: AskedBudget, turn: Turn) -> tuple[Answer, str]:
        """Return the answer and the question's id. After a restart, wait for the answer to the existing question."""
        key, words = _key(turn.session.id, turn.id), f"The budget of {about.about} is spent:"
        asked = _asked_before(turn) if key in self._recovered else None
        if key in self._recovered:
            self._recovered.discard(key)
            self._stored.add(key)
        if asked is not None and asked.done and f"answered/{asked.id}" in await self._said(about.key):
            asked = None  # it was answered, and the answer was applied
        if asked is not None and asked.text.startswith(words):
            return await _answer_to(asked, turn), asked.id
        then = STARTS_LATER if turn.held else WAITS if turn.admits else WORKS_ON
        answer = await turn.ask(f"{about.text} {then}", about.fields)
        asked = _asked_before(turn)
        return answer, asked.id if asked is not None else ""

    async def _apply(self, question: BudgetQuestion, choice: str, by: str, part: str) -> None:
        """Apply the answer to every turn that waits for it."""
        asked = question.asked
        if choice == RAISE:
            await self._store(asked.key, {asked.bound: asked.size, f"answered/{part}": 1})
            self._warned.discard((asked.key, asked.bound))
        elif asked.whole:
            await self._store(asked.key, {choice: 1})
        elif choice == FINISH:
            self._excused |= self._concerned(question)
        else:
            self._stopped |= dict.fromkeys(self._concerned(question), f"{asked.text} Stopped by {by}.")
        await self.host.audit("budget.answered", by, budget=asked.key, answer=choice, spent=asked.words)

    def _concerned(self, question: BudgetQuestion) -> set[str]:
        """The turns that wait for the answer, and the turns of their parents that count toward the same budget."""
        kind, _, rest = question.asked.key.partition("/")
        owner = rest.partition("/")[0] if kind in ("turn", "session", "own") else ""
        return {each for key in question.turns for each in self._line(key, owner)}

    async def sweep(self) -> None:
        """Withdraw questions about a past day or month: that budget no longer applies."""
        self._questions.drop_past()
        for question in list(self._questions.open.values()):
            turn = question.shown_in
            if turn is None or is_current(question.asked.key, self.host.now()):
                continue
            asked = _asked_before(turn)
            if asked is not None and not asked.done:
                await turn.session.questions.answer(asked.id, "cancel", by=_PERIOD_OVER)

    async def _store(self, key: str, added: dict[str, float]) -> None:
        said = await self._said(key)
        for name, more in added.items():
            said[name] = said.get(name, 0) + more
        self.host.log.put_kv(HOST, STORED + key, msgspec.json.encode(said))
        await self.host.log.flush()

    async def _said(self, key: str) -> dict[str, float]:
        """Return what people added, by bound, and `stop` or `finish` if they chose that for the whole job or run."""
        data = await self.host.log.get_kv(HOST, STORED + key)
        return msgspec.json.decode(data, type=dict[str, float]) if data is not None else {}

    # -- commands ------------------------------------------------------------------------------------------------

    async def recover(self) -> None:
        await self._questions.load()

    async def forget(self, session: Session, by: str) -> None:
        self._questions.forget(session)

    def unanswered(self, caller: c.Caller) -> list[UnansweredBudget]:
        return self._questions.unanswered(caller)

    @handle
    async def _answer(self, command: AnswerBudget, caller: c.Caller) -> c.Done:
        """Answer by the key of the budget. If a turn shows the question, its card is answered."""
        question = self._questions.get(command.budget)
        asked, shown = question.asked, question.shown_in
        self.host.ownership.check_session(caller, asked.session, "approve")
        choice = chosen(asked.fields, command.answer)
        if choice is None:
            raise BadRequest(f"{command.answer!r} is no option. Answer with one of {asked.labels}.", field="answer")
        if asked.key.startswith(SHARED) and caller.person and choice != STOP:
            caller.require_all(_SHARED_WORDS)
        if shown is not None and (part := _asked_before(shown)) is not None and not part.done:
            await shown.session.questions.answer(part.id, "accept", {"answer": choice}, by=caller.by)
            return c.Done()
        if choice == FINISH and not asked.whole:
            raise BadRequest("No turn waits that could finish. Raise the budget, or choose stop.", field="answer")
        await self._apply(question, choice, caller.by, "")
        question.close()
        self._answers += 1
        self._questions.left(question)
        await self.host.log.flush()
        return c.Done()

    @guard(_GUARDED.__contains__)
    def _guard(self, command: c.Command, caller: c.Caller) -> None:
        match command:
            case c.StartSession(config=values) | c.ChangeSession(config=values) | c.ConfigureSession(values=values):
                read_budget((values or {}).get(BUDGET), "config.budget")
            case c.AnswerQuestion(response="accept"):
                self._guard_answer(command, caller)

    def _guard_answer(self, command: c.AnswerQuestion, caller: c.Caller) -> None:
        """Several conversations depend on a budget of a day or a month: on a host with people, only an admin raises it.
        An answer that names no option is rejected: it counts neither as yes nor as no."""
        session = self.host.find(command.question.rpartition(".")[0])
        active = session.state.active if session is not None and session.loaded else None
        part = active.part(command.question) if active is not None else None
        if session is None or not isinstance(part, QuestionPart) or not is_budget_question(part.fields):
            return
        said = command.text or Answer("accept", {**part.answers, **command.answers}, "").text
        choice = chosen(part.fields, said)
        if choice is None:
            names = ", ".join(repr(option["label"]) for option in part.fields[0]["options"])
            raise BadRequest(f"{said!r} is no option. Answer with one of {names}.", field="answers")
        found = [each.asked for each in self._questions.open.values() if each.asked_in == session.id]
        shared = any(each.key.startswith(SHARED) for each in found)
        if shared and caller.person and choice != STOP:
            caller.require_all(_SHARED_WORDS)


def _choice(asked: AskedBudget, answer: Answer) -> str:
    """Return the chosen option. A question that is declined counts as Stop."""
    return (chosen(asked.fields, answer.text) if answer.response == "accept" else None) or STOP


def _key(session: str, turn: str) -> str:
    return f"{session}/{turn}"


def _is_over(turn: Turn) -> bool:
    """Return whether the turn has ended or is being canceled."""
    return not turn.live or turn.withdrawn


async def _answer_to(part: QuestionPart, turn: Turn) -> Answer:
    """Wait for the answer to a question that was asked before the host restarted."""
    await turn.session.wait_until(lambda _: part.done or _is_over(turn))
    return Answer(part.response or "cancel", part.answers, "turn" if _is_over(turn) else part.by)


def _asked_before(turn: Turn) -> QuestionPart | None:
    """Return the last question about a budget in this turn."""
    state = turn.session.state.turn(turn.id)
    found = [part for part in state.parts if isinstance(part, QuestionPart)] if state is not None else []
    return next((part for part in reversed(found) if is_budget_question(part.fields)), None)
