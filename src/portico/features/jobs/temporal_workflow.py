"""A job as a workflow: the same `walk` as everywhere, with an activity for each work.

Temporal replays this code from its history, so it must be deterministic: it uses no clock, iterates over no set of
tasks, and reads only the results of activities. Failures of works are handled here and never by a retry of Temporal:
each attempt is a separate activity that is tried once.
"""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    TimeoutType,
    is_cancelled_exception,
)
from temporalio.exceptions import (
    TimeoutError as TemporalTimeout,
)
from temporalio.workflow import ActivityCancellationType

import portico.features.jobs.temporal_messages as messages
from portico.features.jobs.entry import Ask, Each, Flowing, Leaf, Over, Ref
from portico.features.jobs.events import JobOutcome
from portico.features.jobs.step import FlowStep
from portico.features.jobs.task_sessions import TaskCrash, detailed
from portico.features.jobs.temporal_messages import (
    DECIDE,
    FINISH,
    FLOW,
    INTERRUPTED,
    ITEMS,
    JOB,
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
    activity_of,
    queue_of,
    unpack,
)
from portico.features.jobs.work import walk

T = TypeVar("T")

_ONCE = RetryPolicy(maximum_attempts=1)
_UNTIL_DONE = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=5))
_HEARTBEAT = timedelta(seconds=messages.HEARTBEAT_SECONDS)
_ANY_TIME = timedelta(days=3650)
"""A question may be open for months; the task applies its own timeout."""
_LOCAL = timedelta(seconds=60)


@workflow.defn(name=JOB)
class JobWorkflow:
    def __init__(self) -> None:
        self._job = ""
        self._known: dict[str, KnownPath] = {}
        self._labels: dict[str, str] = {}
        self._slots = asyncio.Semaphore(messages.OPEN_WORKS)
        self._open = 0
        self._cutting = False

    @workflow.run
    async def run(self, job: str) -> str:
        self._job = job
        try:
            outcome, error = await self._outcome()
        except asyncio.CancelledError:
            outcome, error = "canceled", ""
        except Exception as bug:  # noqa: BLE001 - a bug in one job must not leave it running for ever
            outcome, error = "failed", detailed(type(bug).__name__, str(bug))
        await self._local(FINISH, End(job, outcome, error), str)
        return outcome

    async def _outcome(self) -> tuple[JobOutcome, str]:
        plan = unpack(await self._local(LOAD, self._job, bytes))
        self._known, self._labels = plan.known, plan.labels
        left = None if plan.timeout is None else plan.timeout - (workflow.now().timestamp() - plan.started / 1000)
        try:
            async with asyncio.timeout(left):
                succeeded = await self._walk(plan)
        except TimeoutError:
            return "failed", detailed("TimeoutError", f"The job was not done within {plan.timeout:g} seconds.")
        except TaskCrash as crash:
            return "failed", crash.detail
        return ("succeeded" if succeeded else "failed"), ""

    async def _walk(self, plan: WorkPlan) -> bool:
        """Walk to the end, or until the history is too long: then the next run continues from the log."""
        walking = asyncio.create_task(walk(plan.work, self._work, self._decide, values=self))
        try:
            await workflow.wait_condition(lambda: walking.done() or (self._cutting and not self._open))
        except asyncio.CancelledError:
            walking.cancel()
            return await walking
        if not walking.done():
            workflow.continue_as_new(self._job)
        return walking.result()

    # -- what the interpreter asks for -------------------------------------------------------------------------

    def choice(self, path: str, ask: Ask) -> int | None:
        answer = self._known[path].answer
        return next((index for index, choice in enumerate(ask.choices) if choice.label == answer), None)

    async def items(self, path: str, each: Each) -> list[str]:
        found = await self._local(ITEMS, Order(self._job, path), FoundItems)
        if found.crash:
            raise TaskCrash(found.crash)
        return [""] * found.count  # the walk only counts them; works read them from the log

    async def lanes(self, path: str, over: Over) -> int:
        return await self._asked(FlowOrder(self._job, path, "lanes"))

    async def holds(self, path: str, flowing: Flowing, place: str) -> bool:
        return bool(await self._asked(FlowOrder(self._job, path, "holds", place)))

    async def close(self, path: str, flowing: Flowing, lanes: list[bool], merged: bool = True) -> None:
        await self._asked(FlowOrder(self._job, path, "close", "", lanes, merged))

    async def _asked(self, order: FlowOrder) -> int:
        found = await self._local(FLOW, order, FoundItems)
        if found.crash:
            raise TaskCrash(found.crash)
        return found.count

    async def _decide(self, path: str, reason: str) -> None:
        await self._local(DECIDE, WorkDecision(self._job, path, reason), bool)

    async def _work(self, path: str, leaf: Leaf) -> bool:
        known = self._known.get(path)
        attempt = 1 if known is None else known.attempt
        if known is None or known.outcome == "interrupted":
            async with self._slots:
                key = leaf.task_id if isinstance(leaf, Ref) else leaf.id if isinstance(leaf, FlowStep) else ""
                label = self._labels.get(key, "")
                result = await self._attempts(Order(self._job, path), attempt, label)
            assert result.outcome != "again"
            known = self._known[path] = KnownPath(result.outcome, result.error, result.answer)
        if known.outcome == "crashed":
            raise TaskCrash(known.error)
        return known.outcome == "succeeded"

    async def _attempts(self, order: Order, attempt: int, label: str) -> Result:
        resumes = 0
        while True:
            await self._room()
            self._open += 1
            try:
                result = await self._attempt(order, activity_of(order.path, attempt, resumes), label)
            finally:
                self._open -= 1
            if result.outcome != "again":
                return result
            attempt, resumes = result.attempt, result.resumes

    async def _attempt(self, order: Order, ident: str, label: str) -> Result:
        try:
            return await self._labelled(order, ident, label) if label else await self._begun(order, ident)
        except ActivityError as lost:
            order = Order(order.job, order.path, _orderly(lost))
        return await self._reached(
            workflow.execute_activity(
                SETTLE,
                order,
                result_type=Result,
                start_to_close_timeout=_ANY_TIME,
                heartbeat_timeout=_HEARTBEAT,
                retry_policy=_UNTIL_DONE,
                cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            )
        )

    async def _labelled(self, order: Order, ident: str, label: str) -> Result:
        """Run a work on a host with that label. While there is none, the work waits and the job records the reason."""
        try:
            return await self._begun(order, ident, label, timedelta(seconds=messages.LABEL_SECONDS))
        except ActivityError as error:
            cause = error.cause
            if not isinstance(cause, TemporalTimeout) or cause.type is not TimeoutType.SCHEDULE_TO_START:
                raise
        reason = f"It waits for a host with the label {label!r}. The hosts:"
        await self._local(DECIDE, WorkDecision(order.job, order.path, reason, label), bool)
        return await self._begun(order, ident, label)

    async def _begun(self, order: Order, ident: str, label: str = "", take_within: timedelta | None = None) -> Result:
        """Run one attempt on the host that takes it."""
        return await self._reached(
            workflow.execute_activity(
                WORK,
                order,
                result_type=Result,
                activity_id=ident,
                task_queue=queue_of(workflow.info().task_queue, label) if label else None,
                schedule_to_start_timeout=take_within,
                start_to_close_timeout=_ANY_TIME,
                heartbeat_timeout=_HEARTBEAT,
                retry_policy=_ONCE,
                cancellation_type=ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
            )
        )

    async def _room(self) -> None:
        """Block new works if the history is so long that this run has to end first. Works in flight would be lost: the
        run ends when none is open after Temporal suggests it; above a hard limit, no work starts until none is open."""
        length = workflow.info().get_current_history_length()
        suggested = workflow.info().is_continue_as_new_suggested() or length > messages.HISTORY_QUIET
        if length > messages.HISTORY_EVENTS or (suggested and not self._open):
            self._cutting = True
        await workflow.wait_condition(lambda: not self._cutting)

    async def _local(self, name: str, argument: object, result: type[T]) -> T:
        found: T = await self._reached(
            workflow.execute_local_activity(
                name, argument, result_type=result, start_to_close_timeout=_LOCAL, retry_policy=_UNTIL_DONE
            )
        )
        return found

    async def _reached(self, doing: Awaitable[T]) -> T:
        """Convert a cancellation, which arrives as an activity failure, for `asyncio.timeout` and the lanes."""
        try:
            return await doing
        except ActivityError as error:
            task = asyncio.current_task()
            if is_cancelled_exception(error) or (task is not None and task.cancelling()):
                raise asyncio.CancelledError from None
            raise


def _orderly(error: ActivityError) -> bool:
    cause = error.cause
    return isinstance(cause, ApplicationError) and cause.type == INTERRUPTED and bool(cause.details)
