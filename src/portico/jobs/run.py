"""One job: its tree walked over its journal. What has an outcome is not run again; what is run is recorded first."""

import asyncio
from collections.abc import Callable

from portico import events as e
from portico import faults
from portico.errors import LogUnavailable
from portico.events import JobOutcome, WorkOutcome
from portico.host.host import Host
from portico.jobs.engine import Engine
from portico.jobs.entry import Ref
from portico.jobs.models import fallback_of, model_id
from portico.jobs.state import JobState, Run
from portico.jobs.task import TaskPlan, TaskRun
from portico.jobs.task_sessions import TaskCrash, detailed
from portico.jobs.work import walk


class JobRun:
    def __init__(self, host: Host, engine: Engine, state: JobState, new_task: Callable[[], str]) -> None:
        self.state = state
        self.tasks: dict[str, TaskRun] = {}
        """The runs that are under way, by the id of the task."""
        self._host = host
        self._engine = engine
        self._new_task = new_task
        self._job = state.summary.id
        self.ending = False
        """Its own end is being written; a stop comes too late."""
        self.stopping = False
        """Somebody stops it, and writes its end."""
        self._suspended = False
        self.ended = asyncio.Event()

    async def run(self) -> None:
        """To the job's end. A cancel from outside writes no end: whoever cancels knows whether there is one."""
        try:
            outcome, error = await self._outcome()
        except LogUnavailable:
            raise
        # A bug in one job must not leave it running for ever, nor touch the others.
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
                succeeded = await walk(self.state.job.work, self._work, self._decide)
        except TimeoutError:
            return "failed", detailed("TimeoutError", f"The job was not done within {timeout:g} seconds.")
        except TaskCrash as crash:
            return "failed", crash.detail
        return ("succeeded" if succeeded else "failed"), ""

    async def end(self, outcome: JobOutcome, *, by: str, error: str = "") -> None:
        faults.reach("job-before-end")
        await self._engine.finish(e.JobEnded(job=self._job, outcome=outcome, by=by, error=error))
        self.ended.set()
        faults.reach("job-after-end")

    def suspend(self) -> None:
        """The host stops: what is in flight goes silent and is taken up at the next start."""
        self._suspended = True
        for task in self.tasks.values():
            task.suspended = True

    # -- what the interpreter asks for -------------------------------------------------------------------------

    async def _decide(self, path: str, reason: str) -> None:
        await self._engine.put(self._job, e.JobDecided(path=path, reason=reason))

    async def _work(self, path: str, ref: Ref) -> bool:
        known = self.state.runs.get(path)
        if known is not None and known.outcome not in (None, "interrupted"):
            return _result(known)
        run = TaskRun(self._host, self._plan(path, ref, known))
        return await self._attempt(path, ref, run)

    async def _attempt(self, path: str, ref: Ref, run: TaskRun) -> bool:
        task, work, attempt = run.plan.id, ref.work_id_in_job, run.plan.attempt
        await self._engine.heartbeat(self._job)
        if self._suspended:
            raise asyncio.CancelledError  # between the word to stop and the cancel that follows it
        # The task is in the log before the work that names it, so a task's id is never given twice.
        run.announce()
        self.tasks[task] = run
        ended: e.WorkEnded | None = e.WorkEnded(path=path, work=work, task=task, outcome="stopped")
        try:
            await self._engine.put(self._job, e.WorkStarted(path=path, work=work, task=task, attempt=attempt))
            faults.reach("work-started")
            result = await run.run()
            outcome: WorkOutcome = "crashed" if result.crashed else result.outcome
            ended = e.WorkEnded(path=path, work=work, task=task, outcome=outcome, error=result.error)
        except LogUnavailable:
            ended = None  # nothing can be written now; when it can, the work is taken up as after a restart
            raise
        finally:
            del self.tasks[task]
            if ended is not None and not run.silent:
                faults.reach("work-before-end")
                await self._engine.put(self._job, ended)
                faults.reach("work-ended")
        if run.silent:
            raise asyncio.CancelledError  # its end is not in the journal, so nothing may follow from it
        return _result(self.state.runs[path])

    def _plan(self, path: str, ref: Ref, known: Run | None) -> TaskPlan:
        entry, summary = self.state.entry, self.state.summary
        task = entry.tasks[ref.task_id]
        model = ref.model_override or task.model
        return TaskPlan(
            id=self._new_task(),
            name=ref.task_id,
            task=task,
            model=model_id(entry, model) if model is not None else entry.models["driving"],
            fallback=fallback_of(entry, ref.task_id),
            driving_model=entry.models["driving"],
            retries=entry.driving_session_retries,
            cwd=summary.cwd,
            input=self.state.input,
            by=f"job:{self._job}",
            job=self._job,
            path=path,
            attempt=known.attempt + 1 if known is not None else 1,
        )


def _result(run: Run) -> bool:
    if run.outcome == "crashed":
        raise TaskCrash(run.error)
    return run.outcome == "succeeded"
