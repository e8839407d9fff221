"""Run one job: walk its tree over its journal. Works with an outcome are not repeated; others are recorded first."""

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from portico import limits
from portico.features.jobs import events as je
from portico.features.jobs.engine import Engine
from portico.features.jobs.entry import (
    ANSWER,
    ITEM,
    RETRY_SECONDS,
    Ask,
    Each,
    Flowing,
    Leaf,
    Over,
    Ref,
    Task,
    Wait,
    name_of,
)
from portico.features.jobs.events import JobOutcome, WorkOutcome
from portico.features.jobs.failure import failure, short
from portico.features.jobs.flow import FlowValues
from portico.features.jobs.items import items_of
from portico.features.jobs.models import fallback_of, model_id
from portico.features.jobs.pause import UNTIL, AskRun, HookRun, WaitRun, end_of, task_of
from portico.features.jobs.result import encode, ends_of
from portico.features.jobs.resume import Resumed, resumed
from portico.features.jobs.services import Services
from portico.features.jobs.state import HOOKS, ITEMS, RESULT, JobState, WorkAttempt, message_of
from portico.features.jobs.step import FlowStep, MergeDo, PromptDo, WaitDo
from portico.features.jobs.step_run import StepContext, StepRun
from portico.features.jobs.steps.wait import end_of as wait_end
from portico.features.jobs.task_record import close_task
from portico.features.jobs.task_run import TaskPlan, TaskResult, TaskRun
from portico.features.jobs.task_sessions import TaskCrash, detailed
from portico.features.jobs.work import walk
from portico.kernel import events as e
from portico.kernel import faults
from portico.kernel.host import Host
from portico.kernel.log.log import NOT_WRITTEN

_ROUND = re.compile(r"#\d+")


class JobRun:
    def __init__(
        self, host: Host, engine: Engine, state: JobState, new_task: Callable[[], str], services: Services
    ) -> None:
        self.state = state
        self._services = services
        self._flow = FlowValues(host, state, services, self._record)
        self.tasks: dict[str, TaskRun] = {}
        """Active task runs, by task id."""
        self._host = host
        self._engine = engine
        self._new_task = new_task
        self._job = state.summary.id
        self.ending = False
        """The end of the job is being written; it can no longer be stopped."""
        self.stopping = False
        """The job is being stopped; `Jobs._stop` writes its end."""
        self.suspended = False
        self.ended = asyncio.Event()
        self._hooks: dict[str, asyncio.Event] = {}
        self._calls: dict[str, asyncio.Event] = {}
        """Set at each call of a hook, for steps that wait for one."""

    async def run(self) -> None:
        """Run the job to its end. A cancellation from outside writes no end: the caller decides whether there is
        one."""
        try:
            outcome, error = await self._outcome()
        except NOT_WRITTEN:
            raise
        # A bug in one job must not leave it running forever or affect other jobs.
        except Exception as bug:
            self._host.logger.error("job %s failed", self._job, exc_info=bug)
            outcome, error = "failed", detailed(type(bug).__name__, str(bug))
        if not self.stopping:
            self.ending = True
            await self.end(outcome, by="host", error=error)

    async def _outcome(self) -> tuple[JobOutcome, str]:
        timeout = self.state.job.timeout
        left = None if timeout is None else timeout - (self._host.now() - self.state.summary.started) / 1000
        try:
            async with asyncio.timeout(left):
                succeeded = await walk(self.state.job.work, self.work, self.decide, values=self)
        except TimeoutError:
            return "failed", detailed("TimeoutError", f"The job was not done within {timeout:g} seconds.")
        except TaskCrash as crash:
            return "failed", crash.detail
        return ("succeeded" if succeeded else "failed"), ""

    async def end(self, outcome: JobOutcome, *, by: str, error: str = "") -> None:
        for run in self.state.open.values():  # works that it was to resume
            await close_task(self._host, run.task)
        if ends := ends_of(self.state):
            await self._engine.put(self._job, *ends)
        faults.reach("job-before-end")
        reason = await self._failure(error) if outcome == "failed" else ""
        ended = je.JobEnded(job=self._job, outcome=outcome, by=by, error=error, reason=reason)
        if (flow := self.state.job.flow) is not None:
            left = await self._flow.leave(flow)
            ended = msgspec.structs.replace(ended, result=left.result, artifacts=left.artifacts)
        await self._engine.finish(ended)
        self.ended.set()
        faults.reach("job-after-end")

    async def _failure(self, error: str) -> str:
        if self.state.job.flow is None:
            return await failure(self._host.log, self.state.summary, error)
        return short(self._flow.failure(message_of(error) if error else ""))

    def suspend(self) -> None:
        """Suspend the works in flight because the host stops or the disk is full. They write no end and are resumed at
        the next start, or when the disk is writable again."""
        self.suspended = True
        for task in self.tasks.values():
            task.suspended = True

    # -- what the interpreter asks for -------------------------------------------------------------------------

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Suspend the other works before they are cancelled if the journal cannot be written or another host took over.
        They are resumed as after a restart, on this or the other host."""
        try:
            yield
        except NOT_WRITTEN:
            self.suspend()
            raise

    async def _record(self, *events: e.Event) -> None:
        with self._writing():
            await self._engine.put(self._job, *events)

    async def decide(self, path: str, reason: str) -> None:
        await self._record(je.JobDecided(path=path, reason=reason))

    async def lanes(self, path: str, over: Over) -> int:
        return await self._flow.lanes(path, over)

    async def holds(self, path: str, flowing: Flowing, place: str) -> bool:
        return await self._flow.holds(path, flowing, place)

    async def close(self, path: str, flowing: Flowing, lanes: list[bool], merged: bool = True) -> None:
        await self._flow.close(path, flowing, lanes, merged)

    def choice(self, path: str, ask: Ask) -> int | None:
        answer = self.state.values.get(path, {}).get(ANSWER)
        return next((i for i, choice in enumerate(ask.choices) if choice.label == answer), None)

    async def items(self, path: str, each: Each) -> list[str]:
        """The items of an Each. They are recorded once, so that a replay uses the same items even if the folder
        changed."""
        known = self.state.values.get(path, {}).get(ITEMS)
        if known is None:
            found = await items_of(each, self.state.summary.cwd, self.state.seen_from(path))
            if len(found) > limits.EACH_ITEMS:
                reason = f"An Each goes over {limits.EACH_ITEMS} items at most, and here are {len(found)}."
                raise TaskCrash(detailed("Error", reason))
            known = msgspec.json.encode(found).decode()
            lanes = [je.JobValue(path=f"{path}*{index}", name=ITEM, value=item) for index, item in enumerate(found)]
            with self._writing():
                await self._engine.put(self._job, *lanes, je.JobValue(path=path, name=ITEMS, value=known))
        return msgspec.json.decode(known, type=list[str])

    async def work(self, path: str, leaf: Leaf) -> bool:
        known = self.state.runs.get(path)
        if known is not None and known.outcome not in (None, "interrupted"):
            return _result(known)
        with self._writing():
            # A work without an outcome that can be resumed here: continue from its state in the journal.
            before = await resumed(self._host, known.task, leaf) if known and known.outcome is None else None
            return await self._attempt(path, leaf, await self._run(path, leaf, known, before))

    async def _run(self, path: str, leaf: Leaf, known: WorkAttempt | None, before: Resumed | None = None) -> TaskRun:
        match leaf:
            case Ref():
                return TaskRun(self._host, self._plan(path, leaf, known), resumed=before)
            case Ask():
                return AskRun(self._host, self._paused(path, leaf, known), leaf, before)
            case Wait(hook=str() as hook):
                return HookRun(self._host, self._paused(path, leaf, known), self.hook(hook))
            case Wait():
                until = await self._until(path, lambda: end_of(leaf, self._host.now()))
                return WaitRun(self._host, self._paused(path, leaf, known), leaf, until)
            case FlowStep():
                return await self._step(path, leaf, known, before)

    def hook(self, name: str) -> asyncio.Event:
        """The event of a hook. It is set when the hook is called, or if the journal has a call."""
        called = self._hooks.setdefault(name, asyncio.Event())
        if name in self.state.values.get(HOOKS, {}):
            called.set()
        if (waiting := self._calls.get(name)) is not None:
            waiting.set()
        return called

    async def _until_called(self, name: str, path: str) -> None:
        """Wait for a call of a hook. In a loop, each round needs a call of its own."""
        place = _ROUND.sub("#", path)
        while self.state.calls.get(name, 0) <= sum(
            run.outcome == "succeeded" and _ROUND.sub("#", each) == place for each, run in self.state.runs.items()
        ):
            waiting = self._calls.setdefault(name, asyncio.Event())
            waiting.clear()
            await waiting.wait()

    async def _step(self, path: str, step: FlowStep, known: WorkAttempt | None, before: Resumed | None) -> StepRun:
        do = step.do
        named = do.task if isinstance(do, PromptDo | MergeDo) else ""
        task = self.state.entry.tasks[named] if named else Task(prompt=[""], timeout=step.timeout)
        model = task.model.id or "" if task.model is not None else self.state.entry.models["driving"]
        fallback = [each.id or "" for each in task.fallback]
        plan = self._planned(path, self._flow.name(path, step), task, model, fallback, known)
        plan.sandbox, plan.budget = step.sandbox, step.budget
        if isinstance(do, PromptDo) and do.same:
            plan.continues = self._flow.session(path, do.session)
        if (retry := step.retry) is not None:
            plan.waits = [retry.seconds(failures + 1) for failures in range(retry.times)]
            plan.attempts = retry.times + 1 if "agent" in retry.on else 1
        context = StepContext(step, self._flow, path, self._services, self.state.summary)
        if isinstance(do, WaitDo) and do.hook is not None:
            context.called = partial(self._until_called, do.hook, path)
        elif isinstance(do, WaitDo):
            context.until = lambda values: self._until(path, lambda: wait_end(do, values, self._host.now()))
        return StepRun(self._host, plan, context, before)

    async def _until(self, path: str, end: Callable[[], int]) -> int:
        known = self.state.values.get(path, {}).get(UNTIL)
        if known is None:
            known = str(end())
            await self._engine.put(self._job, je.JobValue(path=path, name=UNTIL, value=known))
        return int(known)

    async def _attempt(self, path: str, leaf: Leaf, run: TaskRun) -> bool:
        task, work = run.plan.id, leaf.work_id_in_job
        await self._engine.heartbeat(self._job)
        if self.suspended:
            raise asyncio.CancelledError  # suspended, but not cancelled yet
        run.consequences = partial(self._consequences, path, leaf, run)
        self.tasks[task] = run
        try:
            if run.resumed is None:
                await self._begin(path, work, run)
            faults.reach("work-started")
            await run.run()
            faults.reach("work-ended")
        except (*NOT_WRITTEN, asyncio.CancelledError):
            raise  # nothing can be written now, or the task wrote the end of both
        except Exception:  # a bug: the task has no end, and must not keep the work open
            await self._engine.put(self._job, je.WorkEnded(path=path, work=work, task=task, outcome="stopped"))
            raise
        finally:
            del self.tasks[task]
        if run.silent:
            raise asyncio.CancelledError  # the host stops: nothing may depend on the result here
        return _result(self.state.runs[path])

    async def _begin(self, path: str, work: int, run: TaskRun) -> None:
        """Record the start. A cancellation waits for it, so that task and work get their end in one commit."""
        plan = run.plan
        started = je.WorkStarted(path=path, work=work, task=plan.id, attempt=plan.attempt)
        beginning = self._host.own(self._engine.begin(self._job, run.beginning(), started), f"begin {plan.id}")
        try:
            await asyncio.shield(beginning)
        except asyncio.CancelledError:
            await asyncio.wait({beginning})
            if not run.silent:
                await run.abandon("stopped")
            raise
        if self.state.runs[path].task != plan.id:  # another host was faster
            await run.abandon("interrupted")
            raise asyncio.CancelledError

    def _consequences(self, path: str, leaf: Leaf, run: TaskRun, result: TaskResult) -> list[tuple[str, e.Event]]:
        """The values and the end of the work. They are committed together with the end of its task, so that a
        work with an end always has its output and its answer."""
        known, task = self.state.runs.get(path), run.plan.id
        if known is None or known.task != task or known.outcome is not None:
            return []
        outcome: WorkOutcome = "crashed" if result.crashed else result.outcome
        ended = je.WorkEnded(path=path, work=leaf.work_id_in_job, task=task, outcome=outcome, error=result.error)
        left = [je.JobValue(path=path, name=name, value=value) for name, value in result.values.items()]
        if isinstance(run, StepRun) and isinstance(leaf, FlowStep) and result.outcome != "interrupted":
            left.append(je.JobValue(path=path, name=RESULT + leaf.id, value=encode(run.result(result))))
            left += run.kept_session()
        return [(f"job/{self._job}", event) for event in (*left, ended)]

    def _paused(self, path: str, leaf: Ask | Wait, known: WorkAttempt | None) -> TaskPlan:
        return self._planned(path, name_of(leaf), task_of(leaf), self.state.entry.models["driving"], [], known)

    def _plan(self, path: str, ref: Ref, known: WorkAttempt | None) -> TaskPlan:
        entry = self.state.entry
        task = entry.tasks[ref.task_id]
        model = ref.model_override or task.model
        ident = model_id(entry, model) if model is not None else entry.models["driving"]
        return self._planned(path, ref.task_id, task, ident, fallback_of(entry, ref.task_id), known)

    def _planned(
        self, path: str, name: str, task: Task, model: str, fallback: list[str], known: WorkAttempt | None
    ) -> TaskPlan:
        summary = self.state.summary
        goes_on = known is not None and known.outcome is None
        return TaskPlan(
            id=known.task if known is not None and goes_on else self._new_task(),
            name=name,
            task=task,
            entry=self.state.entry,
            model=model,
            fallback=fallback,
            cwd=summary.cwd,
            input=self.state.input,
            by=f"job:{self._job}",
            owner=summary.owner,
            sandbox=task.sandbox or self.state.job.sandbox or "",
            job=self._job,
            path=path,
            attempt=known.attempt + (not goes_on) if known is not None else 1,
            values=self.state.seen_from(path) if self.state.job.flow is None else {},
            waits=RETRY_SECONDS if (waits := self.state.job.retry_seconds) is None else waits,
        )


def _result(run: WorkAttempt) -> bool:
    if run.outcome == "crashed":
        raise TaskCrash(run.error)
    return run.outcome == "succeeded"
