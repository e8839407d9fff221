"""The sessions of one task: which session gets the next prompt, and what happens after a crash.

Borrowing: the task uses one given session, and a crash ends the task. Single: one session for everything, replaced only
after a crash. Multi: a new session for every mission. Task work is retried on the task's own model, or on the next
model of its `fallback` if it has one. Driving work (conditions) follows the entry's `drivingSessionRetries`.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Iterator
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from portico import limits
from portico.features.jobs import events as je
from portico.features.jobs.check import Changes, Checked
from portico.features.jobs.choice import choose
from portico.features.jobs.entry import ANSWER, DrivingRetry
from portico.features.jobs.evidence import evidence, named
from portico.features.jobs.result import SessionPlace
from portico.features.jobs.resume import QuestionPlace, Resumed
from portico.features.jobs.tools import Report, in_words, report_of, says_prerequisite_failed
from portico.features.sandboxes.feature import confine
from portico.kernel import events as e
from portico.kernel.commands import ReopenSession
from portico.kernel.errors import AgentUnavailable, BudgetSpent, LogUnavailable, NotFound, PorticoError, SignInRequired
from portico.kernel.events import Budget, Json, Message
from portico.kernel.host import Host
from portico.kernel.log.log import NOT_WRITTEN
from portico.kernel.question import Answer, Asking
from portico.kernel.session import Session
from portico.kernel.state import ChangeList, QuestionPart, SessionState, TurnState
from portico.sandbox.policy import Confinement

if TYPE_CHECKING:
    from portico.features.jobs.task_run import TaskPlan

Mode = Literal["borrowing", "single", "multi"]

CRASH_PREFIX = "The session crashed, please redo and here is the last request:\n"
TRY_AGAIN, GIVE_UP = "Try again", "Give up"
RETRY_JITTER = 0.2
"""Fraction of a wait, so that jobs that failed together do not all retry at the same time."""
TASK_ATTEMPTS = 5
"""Maximum attempts per prompt of task work, including the first."""


class TaskCrash(Exception):
    """A task ended with an error, not with a failed criterion. `detail` is shown to clients."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class SessionCrash(TaskCrash):
    """The agent failed during a prompt. `away`: why it cannot work until a person signs in. `retry_after`: the wait in
    seconds that its vendor requests."""

    def __init__(self, detail: str, away: str = "", retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.away = away
        self.retry_after = retry_after


class NotOpened(TaskCrash):
    """No session could be opened: no agent offers the model, or its agent is not available."""


class TurnCancelled(TaskCrash):
    """A client cancelled the turn or closed the session of the task."""


def detailed(name: str, message: str) -> str:
    """Encode an error for clients of tasks and jobs. `stack` is only its first line: no traceback leaves the host."""
    return msgspec.json.encode({"name": name, "message": message, "stack": f"{name}: {message}"}).decode()


class _Open(Struct):
    session: Session
    model: str
    driving: bool
    takes_tools: bool


class TaskSessions:
    """Runs the prompts of a task. Closes every session that it opens and records whether it succeeded."""

    def __init__(self, host: Host, plan: "TaskPlan", mode: Mode, borrowed: Session | None = None) -> None:
        self._host = host
        self._plan = plan
        self.mode = mode
        self._line = [plan.model, *plan.fallback]
        self._borrowed = borrowed
        self._current: _Open | None = None
        self._opened: list[Session] = []
        self.placed = asyncio.Event()
        """The first prompt has been sent or queued."""
        self.silent: Callable[[], bool] = lambda: False
        """Returns whether the host is stopping; questions then stay open."""
        self.masked: Callable[[Any], Any] = lambda value: value
        """Returns a text, or a value with texts, without secrets: for everything that a question shows."""
        self._before: list[Session] = []
        """Open sessions that are not used yet: from an earlier process, or for a question that is being written."""
        self.worked: tuple[str, str] | None = None
        """The session of the work, and its last turn; empty while that runs, or if it failed."""
        self._asked: QuestionPlace | None = None
        """The question that an earlier process asked."""

    # -- prompts -----------------------------------------------------------------------------------------------

    async def work(self, prompt: str, retry: int, values: dict[str, str]) -> Report:
        """Run task work. In multi mode its session is closed afterwards."""
        if self._borrowed is not None:
            return await self._send(await self._lent(self._borrowed), prompt)
        line = self._line
        turns = list(islice(cycle(line), max(self._plan.attempts, len(line))))
        intent = je.TaskPrompted(session="", prompts=0, retry=retry, values=values)
        report = await self._attempts(prompt, turns, falling=len(line) > 1, intent=intent)
        if self._current is not None:
            self._note_work(self._current.session)
        if self._current is not None and self._current.model in line:
            first = line.index(self._current.model)
            self._line = line[first:] + line[:first]  # the model that took over stays first
        if self.mode == "multi":
            await self.end(True)
        return report

    async def drive(self, prompt: str, *, availability: bool = False) -> Report:
        """Run driving work. In multi mode the caller closes its session with `judged` before it records the
        decision."""
        if self._borrowed is not None:
            return await self._send(await self._lent(self._borrowed), prompt, availability)
        first = self._plan.driving_model
        if self.mode == "single":
            first = self._current.model if self._current is not None else self._line[0]
        models = [first, *rounds(self._plan.entry.driving_session_retries)]
        try:
            return await self._attempts(prompt, models, driving=self.mode == "multi", availability=availability)
        except SessionCrash:
            await self.end(False)  # before the task is recorded as failed, unlike after a crash of task work
            raise

    async def _attempts(
        self,
        prompt: str,
        models: list[str],
        *,
        driving: bool = False,
        availability: bool = False,
        falling: bool = False,
        intent: je.TaskPrompted | None = None,
    ) -> Report:
        """Try the models in order. `falling`: the next model is also used if a session with one cannot be opened. The
        session of the last crashed attempt stays current: the caller records why the task fails, then closes it."""
        crash: TaskCrash | None = None
        text = prompt
        for number, model in enumerate(models):
            if falling and number:
                self.decide(f"[FALLBACK] {model} takes over from {models[number - 1]}")
            try:
                waits = not falling or number == len(models) - 1
                return await self._attempt(model, text, driving, availability, crash is not None, waits, intent)
            except SessionCrash as error:
                crash = error
                text = prompt if prompt.startswith(CRASH_PREFIX) else CRASH_PREFIX + prompt
                self.decide(f"[SESSION CRASHED] {error.detail}", False)
                if number < len(models) - 1:
                    await self.end(False)
                    await self._wait(models[: number + 1].count(models[number + 1]), error.retry_after)
            except NotOpened as error:
                if not falling:
                    raise
                crash = error
        assert crash is not None
        raise crash

    async def _wait(self, failures: int, asked: float | None) -> None:
        """Wait before the next attempt: as long as the vendor requests, or longer after each failure of that model."""
        waits = self._plan.waits
        if not failures or not waits:
            return
        seconds = waits[min(failures, len(waits)) - 1] * random.uniform(1 - RETRY_JITTER, 1 + RETRY_JITTER)
        seconds = seconds if asked is None else min(asked, limits.RETRY_AFTER_SECONDS)
        self.decide(f"[OPERATION] The next attempt begins in {seconds:.1f} seconds")
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self._host.clock.wait(never, seconds)

    async def _attempt(
        self,
        model: str,
        text: str,
        driving: bool,
        availability: bool,
        replacing: bool,
        waits: bool,
        intent: je.TaskPrompted | None,
    ) -> Report:
        """Send a prompt once. `waits`: if the agent is not signed in, ask a person and send the prompt again."""
        while True:
            task_sessions = await self._enter(model, driving, replacing=replacing, waits=waits)
            if intent is not None:
                await self._intend(intent, task_sessions.session)
            try:
                return await self._send(task_sessions, text, availability)
            except SessionCrash as crash:
                if not crash.away or not waits:
                    raise
                await self.end(False)
                await self._wait_for(model, crash.away)

    async def _wait_for(self, model: str, why: str) -> None:
        """Ask a person to make the agent available and return when it is. Raises `NotOpened` if they decline."""
        self.decide(f"[WAITING] {why}")
        options = [{"id": each, "label": each} for each in (TRY_AGAIN, GIVE_UP)]
        field: Json = {"id": ANSWER, "kind": "single-select", "message": "Then", "required": True, "options": options}

        async def asking() -> Asking:
            return Asking(f"The task {self._plan.name!r} needs the model {model!r}. {why}", [field])

        asked = self._host.own(self.ask_person(self._plan.name, asking, stays=False), f"ask for {model}")
        try:
            while not asked.done():
                await asyncio.wait({asked}, timeout=limits.AGENT_RECHECK_SECONDS)
                if not asked.done() and await self._is_ready(model):
                    return
            if asked.result().response != "accept" or asked.result().text == GIVE_UP:
                raise NotOpened(detailed("AgentUnavailable", why))
        finally:
            if not asked.done():
                asked.cancel()
                await asyncio.wait({asked})

    async def _is_ready(self, model: str) -> bool:
        try:
            info, _ = await choose(self._host, model)
        except (AgentUnavailable, NotFound):
            return False
        return (await self._host.readiness.check(info.id)).ok

    async def _intend(self, intent: je.TaskPrompted, session: Session) -> None:
        """Record the prompt before it is sent, so that a restart finds the turn of the work."""
        await session.load()
        self.worked = session.id, ""
        sent = sum(turn.by == self._by for turn in session.state.turns)
        self.record(msgspec.structs.replace(intent, session=session.id, prompts=sent))

    async def _send(self, task_sessions: _Open, prompt: str, availability: bool = False) -> Report:
        session = task_sessions.session
        turn = await self._start(session, prompt if task_sessions.takes_tools else in_words(prompt))

        def settled(state: SessionState) -> bool:
            found = state.turn(turn)
            return found is None or found.outcome is not None or (availability and says_prerequisite_failed(found))

        state = (await session.wait_until(settled)).turn(turn)
        if state is not None and state.outcome is None:
            return await self._leave(session, state, task_sessions.takes_tools)
        if self._host.stopping:
            # Not an agent failure: the host stop also cancels this task, and the next start resumes the work.
            await asyncio.get_running_loop().create_future()
        if state is None or state.outcome == "cancelled":
            raise TurnCancelled(detailed("TaskStopped", f"The turn in {session.id} was cancelled."))
        _check_disk(state)
        if state.error is not None and state.error.code == BudgetSpent.code:
            raise TaskCrash(detailed("BudgetSpent", state.error.message))  # a person set the limit: no retry
        if state.outcome != "completed":
            message = state.error.message if state.error else "The session crashed."
            signed_out = state.error is not None and state.error.code == SignInRequired.code
            retry_after = state.error.retry_after if state.error else None
            raise SessionCrash(detailed("Error", message), message if signed_out else "", retry_after)
        return report_of(state, task_sessions.takes_tools)

    async def _leave(self, session: Session, turn: TurnState, takes_tools: bool) -> Report:
        """Cancel the turn and return its report: a prerequisite failed."""
        report = report_of(turn, takes_tools)
        if session.running is not None and session.running.id == turn.id:
            await session.cancel(by=self._by, turn=turn.id)
        return report

    async def _start(self, session: Session, prompt: str) -> str:
        """Send a prompt and return its turn. If a borrowed session is busy, the prompt waits in its queue, before later
        messages."""
        await session.load()
        earlier = {turn.id for turn in session.state.turns}
        try:
            sent = await session.send(Message(prompt, origin="system"), by=self._by)
        except NOT_WRITTEN:
            raise
        except PorticoError as error:
            raise TaskCrash(detailed(type(error).__name__, error.message)) from error
        self.placed.set()
        while True:
            state = await session.wait_until(lambda state: state.pending(sent) is None or state.queue_held)
            if state.pending(sent) is None:
                break
            await session.queue.release(by=self._by)
        turns = (turn.id for turn in session.state.turns if turn.by == self._by and turn.id not in earlier)
        turn = next(turns, None)
        if turn is None:
            raise TurnCancelled(detailed("TaskStopped", f"The prompt in the queue of {session.id} was removed."))
        return turn

    # -- sessions ----------------------------------------------------------------------------------------------

    @property
    def _by(self) -> str:
        return f"task:{self._plan.id}"

    async def judge(self, prompt: str, model: str) -> Report:
        """Get the opinion of a judge in a separate session."""
        judge = await self._open(model, True)
        held = False
        try:
            report = await self._send(judge, prompt)
            held = report.verdict is True
            return report
        finally:
            await judge.session.load()
            await judge.session.close(by=self._by)
            self.record(je.TaskSessionEnded(session=judge.session.id, succeeded=held))

    async def asking(self, question: str, fields: list[Json], people: list[str], checks: list[Checked]) -> Asking:
        """The question whether the task is good, with the evidence that a person needs to decide."""
        sessions = [self._borrowed] if self._borrowed is not None else self._opened
        changes = await self.changes() or {}
        found = await evidence(sessions, self._plan.cwd, changes, [each for each in checks if each.output])
        return Asking(named(question, changes), fields, None, people, found)

    async def ask_person(
        self, title: str, asking: Callable[[], Awaitable[Asking]], seconds: float | None = None, stays: bool = True
    ) -> Answer:
        """Ask a person in a separate session, so that every door shows it like any other question. If it `stays`, the
        next process waits for the answer to the same question. Raises `TimeoutError` if there is no answer in time."""
        asked = self._asked if stays else None
        if asked is None:
            found = await asking()
            text, fields, shown = self.masked(found.text), self.masked(found.fields), self.masked(found.evidence)
            asked = await self._ask(
                self.masked(title), replace(found, text=text, fields=fields, evidence=shown), seconds, stays
            )
        else:
            self._asked = None
        session, turn, answered = asked.session, asked.turn, False
        self._before = [each for each in self._before if each is not session]
        try:
            await session.load()
            question = session.state.turn(turn)
            expires = question.question.expires if question is not None and question.question is not None else None
            async with asyncio.timeout(None if expires is None else (expires - self._host.now()) / 1000):
                answer = await _answered(session, turn)
            if session.running is not None:
                await session.end_turn(session.running, "completed")
            _check_disk(await session.wait(turn))
            answered = answer.response == "accept"
            return answer
        finally:
            if not (stays and self.silent()) and not asked.ended:
                await session.close(by=self._by)
                self.record(je.TaskSessionEnded(session=session.id, succeeded=answered))

    async def _ask(self, title: str, asking: Asking, seconds: float | None, stays: bool) -> QuestionPlace:
        agent, model = await self._asker()
        if self._plan.job is not None:
            title = f"{next(iter(self._plan.entry.jobs))}: {title}"  # the inbox and notices show the job's name
        session = await self._host.start(
            by=self._by, agent=agent, model=model, cwd=self._plan.cwd, title=title, owner=self._plan.owner
        )
        self.record(je.TaskSessionStarted(session=session.id, model=self._plan.driving_model, driving=True))
        self._before.append(session)
        message, turn = Message(asking.text, origin="system"), session.new_id("t")
        expires = None if seconds is None else self._host.now() + int(seconds * 1000)
        # One commit: the host writes this turn, not an agent, and it contains only the question.
        await session.append(
            e.TurnStarted(turn=turn, message=message, by="agent"),
            e.QuestionAsked(
                turn=turn,
                question=f"{session.id}.{session.new_id('q')}",
                **{**asdict(asking), "expires": expires, "stays": stays},
            ),
        )
        session.adopt(turn, message)
        return QuestionPlace(session, turn)

    async def resume(self, resumed: Resumed) -> Report | None:
        """Resume after an earlier process: return the report of the work, and keep the open question. Other open
        sessions are closed."""
        self._asked, self._opened = resumed.question, resumed.opened
        worked = resumed.worked
        self._before = [session for session, _ in resumed.open]
        for session, started in resumed.open:
            if worked is not None and session is worked.session and self.mode == "single":
                info = await self._host.described(session.state.agent)
                self._current = _Open(session, started.model, started.driving, info.capabilities.tools)
                self._before.remove(session)
            elif self._asked is None or session is not self._asked.session:
                await self._end_before(session, worked is not None and session is worked.session)
        if worked is None:
            return None
        self._note_work(worked.session)
        if worked.model in self._line:
            first = self._line.index(worked.model)
            self._line = self._line[first:] + self._line[:first]
        info = await self._host.described(worked.session.state.agent)
        return report_of(worked.turn, info.capabilities.tools)

    async def _asker(self) -> tuple[str, str | None]:
        """Choose an agent for a session in which only the host writes. The agent need not be ready."""
        try:
            info, model = await choose(self._host, self._plan.driving_model)
        except AgentUnavailable:
            return (await self._host.describe())[0].id, None
        return info.id, model

    async def _end_before(self, session: Session, succeeded: bool) -> None:
        await session.close(by=self._by, reason="interrupted")
        self._before.remove(session)
        self.record(je.TaskSessionEnded(session=session.id, succeeded=succeeded))

    async def changes(self) -> Changes | None:
        """Files that the sessions of this task changed in the working directory; None if unknown."""
        sessions = [self._borrowed] if self._borrowed is not None else self._opened
        found: Changes = {}
        for session in sessions:
            for listed in await self._changes_in(session):
                if not listed.git or isinstance(listed.note, str):
                    return None
                for each in listed.files:
                    found[each.path] = max(found.get(each.path, 0), each.added + each.removed)
        return found

    async def _changes_in(self, session: Session) -> list[ChangeList]:
        """All changes of a session; in one that earlier steps have used, those of the turns of this one."""
        if self._plan.continues is None:
            return [await session.changes()]
        await session.load()
        return [await session.changes(turn.id) for turn in session.state.turns if turn.by == self._by]

    def _note_work(self, session: Session) -> None:
        turns = [turn.id for turn in session.state.turns if turn.by == self._by]
        self.worked = session.id, turns[-1] if turns else ""

    async def _lent(self, session: Session) -> _Open:
        await session.load()
        info = await self._host.described(session.state.agent)
        return _Open(session, session.state.model, False, info.capabilities.tools)

    async def _enter(self, model: str, driving: bool, *, replacing: bool, waits: bool) -> _Open:
        """The session for a prompt: the current one if it has the model, else a new one."""
        if self._current is not None and self._current.model == model:
            return self._current
        if self._current is not None:
            await self.end(True)
        try:
            self._current = await self._continued(model) or await self._open(model, driving, waits=waits)
        except NOT_WRITTEN:
            raise
        except PorticoError as error:
            detail = detailed(type(error).__name__, error.message)
            if replacing or len(self._line) > 1:
                which = "replacement session" if replacing else "session"
                self.decide(f"[SESSION CRASHED] Failed to create {which}: {detail}", False)
            raise NotOpened(detail) from error
        return self._current

    async def _continued(self, model: str) -> _Open | None:
        """The session of the earlier step, also after a crash in it. If it is in use elsewhere, because it belongs to
        another run or host, a copy of its turns. None: there is no such session, so the prompt gets a new one."""
        place = self._plan.continues
        if place is None or not self._host.has(place.session):
            return None
        session = await self._host.get(place.session)
        await session.load()
        here = place.job == self._plan.job and session.state.cwd == self._plan.cwd
        if not here or not self._host.members.owns(session.channel):
            turns = session.finished_turns(place.turn or None)
            opened = await self._open(model, False, history=turns)
            self._plan.continues = SessionPlace(opened.session.id, "", self._plan.job or "")
            return opened
        await session.do(ReopenSession(session=session.id), self._by)
        if session not in self._opened:
            self._opened.append(session)
        info = await self._host.described(session.state.agent)
        self.record(je.TaskSessionStarted(session=session.id, model=model, driving=True))
        self.decide(f"[SESSION STARTED] the session of an earlier step continues with model {model}")
        return _Open(session, model, False, info.capabilities.tools)

    async def _open(
        self, model: str, driving: bool, *, waits: bool = True, history: list[TurnState] | None = None
    ) -> _Open:
        while True:
            try:
                info, name = await choose(self._host, model)
                break
            except AgentUnavailable as error:
                if not waits:
                    raise
                await self._wait_for(model, error.message)
        # A job runs unattended: its policy is to allow. The session config and every decision record this in the log.
        session = await self._host.start(
            by=self._by,
            agent=info.id,
            model=name,
            cwd=self._plan.cwd,
            title=self._plan.name,
            config=self._config(),
            owner=self._plan.owner,
            history=history,
        )
        self._opened.append(session)
        single = self.mode == "single"
        self.record(je.TaskSessionStarted(session=session.id, model=model, driving=single or driving))
        self.decide(f"[SESSION STARTED] {'driving' if driving else 'task'} session started with model {model}")
        return _Open(session, model, driving, info.capabilities.tools)

    def _config(self) -> Json:
        config: Json = {"approvals": "allow"}
        if self._plan.sandbox:
            config["sandbox"] = self._plan.sandbox
        if self._plan.budget != Budget():
            config["budget"] = msgspec.to_builtins(self._plan.budget)
        return config

    async def confine(self) -> Confinement:
        """Return how a command of the task is started: as in its latest session."""
        sessions = [self._borrowed] if self._borrowed is not None else self._opened
        if not sessions:
            raise TaskCrash("A command of a task needs a session whose sandbox it uses.")
        await sessions[-1].load()
        return await confine(sessions[-1])

    async def end(self, succeeded: bool) -> None:
        """Close the current session. This stops everything that still runs in it."""
        task_sessions, self._current = self._current, None
        if task_sessions is not None:
            await task_sessions.session.load()
            await task_sessions.session.close(by=self._by)
            self.record(je.TaskSessionEnded(session=task_sessions.session.id, succeeded=succeeded))

    async def judged(self, held: bool) -> None:
        """In multi mode, close the judging session. Called before its decision is recorded."""
        if self.mode == "multi":
            await self.end(held)

    async def leave(self) -> None:
        """Stop without a result. Also cancels the turn in a borrowed session, which stays open."""
        await self.end(False)
        for each in tuple(self._before):
            await self._end_before(each, False)
        session = self._borrowed
        if session is not None and session.loaded:
            await withdraw(session, self._plan.id)
            active = session.state.active
            if active is not None and active.by == self._by and session.running is not None:
                await session.cancel(by=self._by, turn=active.id)

    # -- the task's channel ------------------------------------------------------------------------------------

    def record(self, event: e.Event) -> None:
        self._host.log.post(f"task/{self._plan.id}", event)

    def decide(self, reason: str, passed: bool | None = None) -> None:
        self.record(je.TaskDecided(reason=reason, passed=passed))


async def _answered(session: Session, turn: str) -> Answer:
    """Wait for the answer to the question of that turn, from this or an earlier process."""

    def question(state: SessionState) -> QuestionPart | None:
        found = state.turn(turn)
        return next((part for part in found.parts if isinstance(part, QuestionPart)), None) if found else None

    part = question(await session.wait_until(lambda state: (part := question(state)) is None or part.done))
    if part is None or part.response is None:
        return Answer("cancel", {}, "turn")
    return Answer(part.response, part.answers, part.by)


def _check_disk(turn: TurnState) -> None:
    """Raise `LogUnavailable` if a full disk ended the turn. That is not a failure of the agent or of the person."""
    if turn.error is not None and turn.error.code == LogUnavailable.code:
        raise LogUnavailable(turn.error.message)


async def withdraw(session: Session, task: str) -> None:
    """Remove the prompts of a finished task from the queue of its borrowed session."""
    by = f"task:{task}"
    await session.load()
    for pending in [each for each in session.state.queue if each.by == by]:
        with contextlib.suppress(NotFound):  # it has just started as a turn
            await session.queue.remove(pending.id, by=by)


def rounds(retries: list[DrivingRetry]) -> Iterator[str]:
    """One retry per model and round, as long as a model has budget left."""
    for index in range(max((retry.retries for retry in retries), default=0)):
        yield from (retry.model_id for retry in retries if retry.retries > index)
