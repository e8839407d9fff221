"""The activities of a job workflow. They check the log first: a work with an outcome there is never run again."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from portico.features.jobs.entry import ANSWER, Ask, Each, Flowing, Over, Wait, labels_of
from portico.features.jobs.run import JobRun
from portico.features.jobs.state import JobState
from portico.features.jobs.step import AskDo, FlowStep, WaitDo
from portico.features.jobs.task_sessions import TaskCrash, detailed
from portico.features.jobs.temporal_messages import (
    DECIDE,
    FINISH,
    FLOW,
    INTERRUPTED,
    ITEMS,
    LOAD,
    SETTLE,
    WORK,
    End,
    FlowOrder,
    FoundItems,
    KnownPath,
    Order,
    Result,
    WorkDecision,
    WorkPlan,
    pack,
)
from portico.features.jobs.work import work_at
from portico.kernel.log.log import NOT_WRITTEN

if TYPE_CHECKING:
    from portico.features.jobs.temporal import TemporalJobs

T = TypeVar("T")

OWNER_SECONDS, OWNER_TRIES = 0.3, 20
"""A lost work is settled by the owner of its task, which can resume it in its middle. After so many tries any host
settles it, and the work begins again."""
OTHER_SECONDS = 3.0
"""So long another host waits for the owner before the owner is asked again: one that was away for longer than those
tries keeps a task that it can resume, and would wait for this attempt."""
BEAT_SECONDS = 0.4
"""Between two heartbeats. Their answers carry a cancel, and are throttled to half a second."""
WAITING_BEAT_SECONDS = 1.5
"""The same for works that only wait, for a person or a time: many may wait for days. A stop of the job reaches them
through the log."""


class NotEnded(Exception):
    """The owner of a lost task has not ended it in time: it may be back, and resume the task in its middle."""


def interrupted(*, orderly: bool) -> ApplicationError:
    details = ["orderly"] if orderly else []
    benign = ApplicationErrorCategory.BENIGN  # expected: no traceback in the host log
    return ApplicationError("interrupted", *details, type=INTERRUPTED, non_retryable=True, category=benign)


class Activities:
    def __init__(self, jobs: "TemporalJobs") -> None:
        self._jobs = jobs

    def all(self) -> list[Callable[..., Any]]:
        return [self.work, self.settle, self.load, self.items, self.flow, self.decide, self.finish]

    # -- works -------------------------------------------------------------------------------------------------

    @activity.defn(name=WORK)
    async def work(self, order: Order) -> Result:
        """Run one attempt of the work at this path. A second delivery joins the first."""
        jobs = self._jobs
        run = await jobs.run_of(order.job)
        going = jobs.works.get((order.job, order.path))
        if going is None:
            if (known := await self._before(run.state, order.path)) is not None:
                return known
            going = jobs.works.get((order.job, order.path))
        if going is None:
            going = jobs.begin(run, order.path)
        leaf = work_at(run.state.job.work, order.path)
        waits = isinstance(leaf, Ask | Wait) or (isinstance(leaf, FlowStep) and isinstance(leaf.do, AskDo | WaitDo))
        try:
            await _beat(going, WAITING_BEAT_SECONDS if waits else BEAT_SECONDS)
        except asyncio.CancelledError:
            await self._end(run, order, going)
            raise
        if not going.cancelled() and (bug := _bug_of(going)) is not None:
            return Result("crashed", bug)
        if (known := _recorded(run.state, order.path)) is not None:
            return known
        await self._beating(jobs.close_left(run, order.path), f"end {order.job} {order.path}")
        raise interrupted(orderly=jobs.closing)

    async def _before(self, state: JobState, path: str) -> Result | None:
        """The result that is known before the start; None: run the work, or resume it."""
        if (known := _recorded(state, path)) is not None:
            return known
        if state.stopping is not None or state.summary.done:
            return Result("stopped")
        begun = state.runs.get(path)
        going = begun is not None and begun.outcome is None and not await self._jobs.can_resume(state, path)
        if self._jobs.closing or state.summary.status == "waiting" or going:
            # It must not start here or now, or another host has started it; `settle` resolves this.
            raise interrupted(orderly=self._jobs.closing)
        return None

    async def _end(self, run: JobRun, order: Order, going: "asyncio.Task[None]") -> None:
        """End a work that Temporal cancelled. It is recorded as stopped only if a cancel was requested; otherwise
        another host has it, and this host writes nothing more about it."""
        details = activity.cancellation_details()
        if details is None or not details.cancel_requested:
            self._jobs.silence(run, order.path)
        going.cancel()
        await asyncio.wait({going})
        await self._jobs.close_left(run, order.path)
        if details is not None and details.worker_shutdown:
            raise interrupted(orderly=True)

    @activity.defn(name=SETTLE)
    async def settle(self, order: Order) -> Result:
        """Resolve a lost attempt: return its outcome if there is one, or request another attempt."""
        if self._jobs.closing:
            raise ApplicationError("this host stops; ask another")
        run = await self._jobs.run_of(order.job)
        known = run.state.runs.get(order.path)
        members = self._jobs.host.members
        lost = known is not None and known.outcome is None and not members.owns(f"task/{known.task}")
        if known is not None and lost and not order.orderly:
            await members.suspect(f"task/{known.task}")
            lost = not members.owns(f"task/{known.task}")
        if lost and activity.info().attempt <= OWNER_TRIES:
            words = "only the owner of the task can resume it; ask another host"
            raise ApplicationError(words, next_retry_delay=timedelta(seconds=OWNER_SECONDS))
        since = int(activity.info().scheduled_time.timestamp() * 1000)
        settling = self._jobs.settle(run.state, order.path, order.orderly, since, OTHER_SECONDS if lost else None)
        try:
            resumes = await self._beating(settling, f"settle {order.job} {order.path}")
        except NotEnded:
            words = "the owner of the task has not ended it; ask it again"
            raise ApplicationError(words, next_retry_delay=timedelta(seconds=OWNER_SECONDS)) from None
        if (recorded := _recorded(run.state, order.path)) is not None:
            return recorded
        known = run.state.runs.get(order.path)
        if known is not None and resumes:
            return Result("again", attempt=known.attempt, resumes=known.resumes)
        return Result("again", attempt=known.attempt + 1 if known else 1)

    async def _beating(self, doing: Coroutine[Any, Any, T], name: str) -> T:
        going = self._jobs.host.own(doing, name)
        try:
            await _beat(going)
        finally:
            going.cancel()
        return going.result()

    # -- the journal -------------------------------------------------------------------------------------------

    @activity.defn(name=LOAD)
    async def load(self, job: str) -> bytes:
        state = (await self._jobs.run_of(job)).state
        answers = {path: values.get(ANSWER) for path, values in state.values.items()}
        known = {
            path: KnownPath(run.outcome, run.error, answers.get(path), run.attempt + (run.outcome == "interrupted"))
            for path, run in state.runs.items()
            if run.outcome is not None
        }
        labels = labels_of(state.entry, state.summary.name)
        return pack(WorkPlan(state.job.work, state.summary.started, state.job.timeout, known, labels))

    @activity.defn(name=ITEMS)
    async def items(self, order: Order) -> FoundItems:
        run = await self._jobs.run_of(order.job)
        each = work_at(run.state.job.work, order.path)
        assert isinstance(each, Each)
        try:
            return FoundItems(len(await run.items(order.path, each)))
        except TaskCrash as crash:
            return FoundItems(crash=crash.detail)

    @activity.defn(name=FLOW)
    async def flow(self, order: FlowOrder) -> FoundItems:
        """The number of items, a condition, or the end of a group of a workflow."""
        run = await self._jobs.run_of(order.job)
        work = work_at(run.state.job.work, order.path)
        try:
            if order.what == "lanes" and isinstance(work, Over):
                return FoundItems(await run.lanes(order.path, work))
            assert isinstance(work, Flowing)
            if order.what == "holds":
                return FoundItems(int(await run.holds(order.path, work, order.place)))
            await run.close(order.path, work, order.lanes, order.merged)
            return FoundItems()
        except TaskCrash as crash:
            return FoundItems(crash=crash.detail)

    @activity.defn(name=DECIDE)
    async def decide(self, decision: WorkDecision) -> bool:
        run = await self._jobs.run_of(decision.job)
        hosts = [
            f"{each.name!r} ({', '.join((each.state, *map(repr, each.labels)))})"
            for each in (await self._jobs.host.members.all() if decision.label else ())
        ]
        await run.decide(decision.path, " ".join((decision.reason, *hosts)))
        return True

    @activity.defn(name=FINISH)
    async def finish(self, end: End) -> str:
        """Record the end of the job together with the end of its open works."""
        run = await self._jobs.run_of(end.job)
        state = run.state
        if state.summary.done:
            return state.summary.status
        stopped = state.stopping is not None and end.outcome != "succeeded"
        outcome = "canceled" if stopped else end.outcome
        by = state.stopping or "temporal" if outcome == "canceled" else "host"
        await run.end(outcome, by=by, error="" if stopped else end.error)
        return outcome


def _recorded(state: JobState, path: str) -> Result | None:
    known = state.runs.get(path)
    if known is None or known.outcome is None or known.outcome == "interrupted":
        return None
    return Result(known.outcome, known.error, state.values.get(path, {}).get(ANSWER))


def _bug_of(going: "asyncio.Task[None]") -> str | None:
    error = going.exception()
    return None if error is None or isinstance(error, NOT_WRITTEN) else detailed(type(error).__name__, str(error))


async def _beat(going: "asyncio.Task[T]", seconds: float = BEAT_SECONDS) -> None:
    """Send heartbeats until the work is done. A cancellation of the activity is raised here; the work keeps running."""
    while not going.done():
        activity.heartbeat()
        await asyncio.wait({going}, timeout=seconds)
