"""The interface for doors and the command line: entries, tasks and jobs of one host, and their recovery at its start.

`await Jobs.open(host, source)` registers the four job tools and loads the summaries of jobs. `recover` resumes the
jobs that a crash or a stop interrupted. `close` suspends running jobs without recording an end.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Container
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from portico import limits
from portico.features.jobs import commands as jc
from portico.features.jobs import events as je
from portico.features.jobs.call import call_job
from portico.features.jobs.choice import check_offered
from portico.features.jobs.commands import JobNamed, RetryPlanned
from portico.features.jobs.engine import OPEN, Engine, LocalEngine
from portico.features.jobs.entry import Entry, labels_of, name_of, sandboxes_of
from portico.features.jobs.handlers import install
from portico.features.jobs.interruption import hooks_of, may_crash, on_interrupt
from portico.features.jobs.models import model_id, models_of_job, models_used
from portico.features.jobs.result import lost_result
from portico.features.jobs.resume import resumed
from portico.features.jobs.retry import kept_results, planned_again, planned_retry
from portico.features.jobs.rows import JobRow, RowFilter, rows_of
from portico.features.jobs.run import JobRun
from portico.features.jobs.services import Services
from portico.features.jobs.source import EntrySource
from portico.features.jobs.state import HOOKS, JobState, JobSummary, WorkAttempt, plan_of, secret_references
from portico.features.jobs.task_record import TaskInfo, close_task, end_of_work, info_of
from portico.features.jobs.task_run import TaskPlan, TaskRun
from portico.features.jobs.tools import job_tools, lend_tools
from portico.features.jobs.work import in_condition
from portico.features.jobs.workflow.inputs import shown_inputs
from portico.features.sandboxes.feature import check_modes
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import faults
from portico.kernel.decide.decision import check_open
from portico.kernel.do import note_answer
from portico.kernel.errors import BadRequest, Conflict, LogUnavailable, NotFound, PlaceAway
from portico.kernel.events import Event, number_of
from portico.kernel.folders import check_folder
from portico.kernel.host import Host
from portico.kernel.log.log import NOT_WRITTEN, NotOwner
from portico.kernel.members import Forward
from portico.kernel.ownership import Access
from portico.tasks import end_tasks

LISTED_SECONDS = 3600.0
"""Finished jobs stay in the running list this long after their end."""


class NoEntry(Conflict):
    """Raised while no entry is installed (`--test` starts without one)."""

    def __init__(self) -> None:
        super().__init__("installJobsEntry has not been called.")


_INTERRUPTED = "The host ended in the middle of this step, and it must not run twice (on_interrupt: fail)."
_PASSED_ON = "It goes to a host with the label that it needs."


def check_job(entry: Entry, name: str, where: str) -> None:
    if name not in entry.jobs:
        known = ", ".join(map(repr, entry.jobs)) or "none"
        raise NotFound("job", name, f"The jobs of {where}: {known}.")


class Jobs:
    down: str | None = None
    """Why works cannot be dispatched now; jobs wait. None: they can."""
    spread = False
    """Whether the hosts of a place share the works of one job."""

    def __init__(self, host: Host, engine: Engine, source: EntrySource | None) -> None:
        self.host = host
        self._engine = engine
        self._source = source
        self._installed: Entry | None = None
        self._printed_names: dict[str, str] = {}
        self._opened_at = host.now()
        self._runs: dict[str, JobRun] = {}
        self._mains: dict[str, asyncio.Task[None]] = {}
        self._lent: dict[str, TaskRun] = {}
        self.services = Services(host, partial(call_job, self))
        self._taking = asyncio.Lock()
        self._closing = WeakValueDictionary[str, asyncio.Lock]()
        """Locks by task, held while the end of a task that does not run here is written."""
        lost = host.log.identity.lost  # ids of lost records are not reused
        after = host.members.number_after
        self._next_job = after(lost + max(map(number_of, host.log.channels("job/")), default=0))
        self._next_task = after(lost + max(map(number_of, host.log.channels("task/")), default=0))
        host.ownership.finders["job"] = self._access
        host.ownership.on_start(je.TaskStarted, lambda event: event.session or Access(event.owner))
        host.tools.update(job_tools())
        install(self)
        if self.services.store is not None:
            self.services.store.inputs_in_use.append(self.secrets_in_use)

    @classmethod
    async def open(cls, host: Host, source: EntrySource | None = None, engine: Engine | None = None) -> "Jobs":
        return cls(host, engine or await LocalEngine.open(host.log, host.commits), source)

    async def close(self) -> None:
        """Suspend all jobs; called before the host closes. Running jobs get no end: the next start resumes them."""
        mains, jobs = list(self._mains.values()), list(self._runs)
        for run in self._runs.values():
            run.suspend()
        for task in self._lent.values():
            task.suspended = True
        await end_tasks(*mains)
        with contextlib.suppress(*NOT_WRITTEN):  # full disk or another owner: it counts as a crash
            for job in jobs:
                if not self.job(job).done:
                    await self._engine.put(job, je.JobSuspended())

    # -- the entry ---------------------------------------------------------------------------------------------

    @property
    def entry(self) -> Entry:
        """The current entry. A changed file is read again unless a job is running."""
        if self._installed is not None:
            return self._installed
        if self._source is None:
            raise NoEntry
        return self._source.current(reload=not self._busy)

    @property
    def entry_name(self) -> str:
        """Where the current entry comes from."""
        return "the installed entry" if self._installed is not None or self._source is None else self._source.name

    @property
    def printed_names(self) -> dict[str, str]:
        """Display names of jobs in an entry of the 000 format, by job name."""
        if self._installed is not None or self._source is None:
            return self._printed_names
        return self._source.printed_names

    @property
    def _busy(self) -> bool:
        """Whether the log has an unfinished job. A job with a recorded end does not count, even during its cleanup."""
        return any(not self.job(job).done for job in self._runs)

    async def install(self, entry: Entry, printed_names: dict[str, str] | None = None) -> None:
        """Replace the entry with a validated one, if nothing is running and all models that it names are available."""
        open_ones = (each for each in self.host.list() if not each.closed and each.created >= self._opened_at)
        if self._busy or any(open_ones):
            raise Conflict("Cannot call installJobsEntry while sessions are running.")
        await check_offered(self.host, models_used(entry))
        self._installed, self._printed_names = entry, printed_names or {}

    # -- jobs --------------------------------------------------------------------------------------------------

    async def start_job(
        self,
        name: str,
        *,
        cwd: str,
        input: str = "",
        by: str,
        entry: Entry | None = None,
        owner: str = "",
        inputs: dict[str, Any] | None = None,
        trigger: dict[str, Any] | None = None,
        known: Container[str] = (),
    ) -> str:
        """Start a job in the background and return its id. `entry` applies only to this job. `inputs` are checked.
        `known`: references to secret inputs that the caller has."""
        where = "its entry" if entry is not None else self.entry_name
        entry = entry or self.entry
        check_job(entry, name, where)
        folder = check_folder(cwd)
        await check_offered(self.host, models_of_job(entry, name))
        check_modes(self.host, sandboxes_of(entry, name))
        plan = plan_of(entry, name)
        return await self._create(
            name, plan, folder, input, by, owner=owner, inputs=inputs, trigger=trigger, known=known
        )

    async def elsewhere(
        self, entry: Entry, name: str, command: c.Command, by: c.Caller, place: str = "", channel: str = ""
    ) -> Forward | None:
        """Return how to forward a command about a job of that entry; None: the job runs on this host."""
        place, labels = place or entry.jobs[name].place, set(labels_of(entry, name).values())
        members = self.host.members
        if members.several:
            return await members.pass_on(command, by, place, labels, self.spread, channel)
        if place:
            raise BadRequest("This host is alone on its log: leave 'place' out.", field="place")
        for label in sorted(labels.difference(members.labels)):
            known = ", ".join(map(repr, members.labels)) or "none"
            raise NotFound("host with the label", label, f"This one is alone; its cluster.labels: {known}.")
        return None

    async def _create(
        self,
        name: str,
        plan: e.Json,
        cwd: str,
        input: str,
        by: str,
        origin: str | None = None,
        done: dict[str, bool] | None = None,
        values: dict[str, dict[str, str]] | None = None,
        owner: str = "",
        inputs: dict[str, Any] | None = None,
        trigger: dict[str, Any] | None = None,
        known: Container[str] = (),
    ) -> str:
        if self.host.stopping:
            raise LogUnavailable("The host is stopping.")
        if inputs and (flow := msgspec.convert(plan, Entry).jobs[name].flow) is not None:
            shared = self.spread and self.host.members.several
            inputs = await self.services.keep_inputs(flow.inputs, inputs, known, shared)
        job = f"job-{self._next_job}"
        self._next_job = self.host.members.number_after(self._next_job)
        started = je.JobStarted(
            job=job,
            name=name,
            entry=plan,
            cwd=cwd,
            by=by,
            input=input,
            origin=origin,
            done=done or {},
            values=values or {},
            owner=owner,
            inputs=inputs or {},
            trigger=trigger or {},
        )
        note_answer(JobNamed(job))
        self._launch(await self._engine.create(started))
        return job

    def _launch(self, state: JobState) -> None:
        job = state.summary.id
        run = self._new_run(state)
        self._runs[job] = run
        self._mains[job] = self.host.own(self._main(job, run), f"job {job}")

    def _new_run(self, state: JobState) -> JobRun:
        return JobRun(self.host, self._engine, state, self._new_task, self.services)

    async def _main(self, job: str, run: JobRun) -> None:
        try:
            await run.run()
        except NOT_WRITTEN:
            # The disk is full or gone, or another host took over after a missed lease. The owner resumes the job later.
            self.host.own(self._take_up_later(job), f"take up {job}")
        finally:
            if not run.stopping:
                self._forget(job)

    def _forget(self, job: str) -> None:
        if (run := self._runs.pop(job, None)) is not None:
            run.ended.set()
        self._mains.pop(job, None)

    async def _take_up_later(self, job: str) -> None:
        async def take_up() -> None:
            if self.host.members.owns(f"job/{job}"):
                await self._take_up(job)

        await self._once_writable(take_up)

    async def _once_writable(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` when the log is writable. Retry if the disk fills up again during it."""
        while True:
            await self.host.log.available()
            with contextlib.suppress(LogUnavailable):
                with contextlib.suppress(NotOwner):  # its owner does it
                    await work()
                return

    async def stop_job(self, job: str, *, by: str) -> None:
        """Cancel a job and return when everything in it has stopped. No effect on a finished job."""
        while not self.job(job).done:
            run = self._runs.get(job)
            if run is None:
                await self._stop_stored(job, by)
            elif run.stopping or run.ending:
                await run.ended.wait()
            else:
                run.stopping = True
                # Shielded: a started stop completes even if the caller disconnects.
                await asyncio.shield(self.host.own(self._stop(job, run, by), f"stop {job}"))

    async def _stop_stored(self, job: str, by: str) -> None:
        async with self._taking:
            if job not in self._runs and not self.job(job).done:
                await self._cancel(await self._engine.load(job), by)

    async def _stop(self, job: str, run: JobRun, by: str) -> None:
        main = self._mains[job]
        try:
            await self._engine.put(job, je.JobStopping(by=by))
            faults.reach("job-stopping")
            main.cancel()
            await asyncio.wait({main})
            if run.suspended:  # a full disk prevented its works from ending
                self._forget(job)
                await self._take_up_later(job)
            else:
                await run.end("canceled", by=by)
        except LogUnavailable:
            run.stopping = False  # the stop was not recorded: the job continues
            if main.done():  # its run was cancelled: it ends when the disk is writable again
                self.host.own(self._take_up_later(job), f"take up {job}")
                self._forget(job)
            raise
        self._forget(job)

    async def signal(self, job: str, hook: str, *, by: str) -> None:
        """Record a call of a hook that the job waits for or will wait for. It is durable before the job continues."""
        summary = self.job(job)
        if summary.done:
            raise Conflict(f"The job {job!r} has ended.")
        state = await self.load(job)
        hooks = hooks_of(state.job.work)
        if hook not in hooks:
            raise NotFound("hook", hook, f"There are: {', '.join(map(repr, hooks)) or 'none'}.")
        await self._engine.put(job, je.JobValue(path=HOOKS, name=hook, value=by))
        if (run := self._runs.get(job)) is not None:
            run.hook(hook)

    async def resume(self, job: str, *, by: str) -> str:
        """Resume a job and return its id. A failed or canceled job is resumed as a new job, which reuses the successful
        works and the results of all conditions."""
        summary = self.job(job)
        if summary.status == "waiting":
            await self._take_up(job, by=by)
            if not self.host.members.owns(f"job/{job}") or self.job(job).status != "waiting":
                return job
            raise PlaceAway(self.job(job).reason)
        if summary.status in ("running", "succeeded"):
            raise Conflict(f"The job {job!r} has {summary.status}." if summary.done else f"The job {job!r} is running.")
        state = await self._engine.load(job)
        if state.job.flow is not None:
            left = kept_results(state)
            return await self._again(state, by, left.done, left.values)
        done = {
            path: run.outcome == "succeeded"
            for path, run in state.runs.items()
            if run.outcome == "succeeded" or (run.outcome == "failed" and in_condition(path))
        }
        kept = {path: values for path, values in state.values.items() if path in done or path not in state.runs}
        return await self._again(state, by, done, kept)

    async def retry(self, job: str, *, by: str, step: str = "", workflow: str = "") -> str:
        """Start the stored job again and return the id of the new job. `step`: a workflow keeps what succeeded before
        it. `workflow`: the changed text."""
        state = await self.load(job)
        if not step and not workflow:
            return await self._again(state, by, {})
        again = planned_again(state, step, workflow)
        old = state.summary
        return await self._create(
            old.name,
            plan_of(again.entry, old.name),
            check_folder(old.cwd),
            state.input,
            by,
            old.id,
            again.kept.done,
            again.kept.values,
            old.owner,
            inputs=again.inputs,
            trigger=state.trigger,
            known=secret_references(state),
        )

    async def plan_retry(self, job: str, step: str, workflow: str) -> RetryPlanned:
        """What `retry` would run."""
        return await asyncio.to_thread(planned_retry, await self.load(job), step, workflow)

    async def _again(
        self, state: JobState, by: str, done: dict[str, bool], values: dict[str, dict[str, str]] | None = None
    ) -> str:
        old = state.summary
        command = jc.ResumeJob(job=old.id) if done else jc.RetryJob(job=old.id)
        forward = await self.elsewhere(state.entry, old.name, command, _caller(by), self.host.members.place)
        if forward is not None:
            named: JobNamed = await forward()
            return named.job
        plan = msgspec.to_builtins(state.entry)
        folder = check_folder(old.cwd)
        more: dict[str, Any] = {"inputs": state.inputs, "trigger": state.trigger, "known": secret_references(state)}
        return await self._create(old.name, plan, folder, state.input, by, old.id, done, values, old.owner, **more)

    def is_suspended(self, job: str) -> bool:
        """Whether a job continues later: the disk is full, or another host has it."""
        return (run := self._runs.get(job)) is not None and run.suspended

    async def load(self, job: str) -> JobState:
        run = self._runs.get(job)
        return run.state if run is not None else await self._engine.load(job)

    def job(self, job: str) -> JobSummary:
        summary = self._engine.summaries.get(job)
        if summary is None:
            older = f"Only the last {limits.JOB_SUMMARIES} jobs are listed; {job!r} is in the log, as 'job/{job}'."
            raise NotFound("job", job, older if self.host.log.head(f"job/{job}") else "")
        return summary

    def _access(self, job: str) -> Access | None:
        summary = self._engine.summaries.get(job)
        return Access(summary.owner) if summary is not None else None

    def history(self) -> list[JobSummary]:
        """The most recent jobs, in start order."""
        return list(self._engine.summaries.values())

    def running(self) -> list[JobSummary]:
        """Running and waiting jobs, and those that ended within the last hour."""
        return [summary for summary in self._engine.summaries.values() if self.listed(summary)]

    def listed(self, summary: JobSummary) -> bool:
        return summary.ended is None or self.host.now() - summary.ended < LISTED_SECONDS * 1000

    async def entry_of(self, job: str) -> Entry:
        """The entry of the job, as it was when the job started."""
        return (await self.load(job)).entry

    async def inputs_of(self, job: str) -> dict[str, Any]:
        """The inputs as people see them: secrets are hidden."""
        state = await self.load(job)
        return shown_inputs(state.job.flow.inputs, state.inputs) if state.job.flow is not None else state.inputs

    async def secrets_in_use(self) -> set[str]:
        """References to the secret inputs of unfinished jobs."""
        found: set[str] = set()
        for job in [each.id for each in self._engine.summaries.values() if not each.done]:
            found |= secret_references(await self.load(job))
        return found

    async def rows(self, job: str, status: RowFilter = "") -> list[JobRow]:
        return rows_of(await self.load(job), status)

    # -- tasks -------------------------------------------------------------------------------------------------

    def _new_task(self) -> str:
        task, self._next_task = self._next_task, self.host.members.number_after(self._next_task)
        return f"task-{task}"

    async def start_task(self, name: str, *, session: str, input: str = "", by: str) -> str:
        """Run a task in an existing session and return its id when its first prompt is sent or queued there. The
        session stays open after the task."""
        entry = self.entry
        borrowed = await self.host.get(session)
        check_open(borrowed.state)
        task = entry.tasks.get(name)
        if task is None:
            raise NotFound("task", name, f"There are: {', '.join(map(repr, entry.tasks)) or 'none'}.")
        plan = TaskPlan(
            id=self._new_task(),
            name=name,
            task=task,
            entry=entry,
            model=model_id(entry, task.model) if task.model is not None else "",
            cwd=borrowed.state.cwd,
            input=input,
            by=by,
            owner=self.host.ownership.owner_of(borrowed),
        )
        run = TaskRun(self.host, plan, borrowed)
        await lend_tools(borrowed, by)
        self._lent[plan.id] = run  # before `begin`: a task in the log that does not run here counts as interrupted
        try:
            await run.begin()
        except BaseException:  # also a cancel: the task did not begin
            self._lent.pop(plan.id, None)
            raise
        self._mains[plan.id] = self.host.own(self._borrow(run), f"task {plan.id}")
        await run.placed()  # later messages to the session are queued after it
        return plan.id

    async def _borrow(self, run: TaskRun) -> None:
        try:
            await run.run()
        except NOT_WRITTEN:
            # The task is recorded as interrupted when the log is writable again.
            self.host.own(self._once_writable(partial(self._close_task, run.plan.id)), f"end {run.plan.id}")
        finally:
            run.ended.set()
            self._lent.pop(run.plan.id, None)
            self._mains.pop(run.plan.id, None)

    async def stop_task(self, task: str) -> None:
        """Stop a task and return when it has ended. In a job, its work then counts as failed."""
        run = self._lent.get(task) or next((r.tasks[task] for r in self._runs.values() if task in r.tasks), None)
        if run is not None:
            run.stop()
            await run.ended.wait()

    async def task(self, task: str) -> TaskInfo:
        return await info_of(self.host, task)

    # -- after a crash -----------------------------------------------------------------------------------------

    async def recover(self) -> int:
        """Record the end of every interrupted task, resume the jobs, and return how many are running. Also called after
        a takeover from another host; jobs that already run here are not affected."""
        owns = self.host.members.owns
        unfinished = [each.id for each in self._engine.summaries.values() if not each.done and owns(f"job/{each.id}")]
        kept = {task for job in unfinished for task in await self._kept(job)}
        for task in await self._left_open():
            if task not in kept:
                await self._close_task(task)
        for job in unfinished:
            if self._goes_on(self._engine.summaries[job]) and job not in self._runs:
                await self._take_up(job)
        return len(self._runs)

    async def _left_open(self) -> list[str]:
        """Tasks that this host owns, that have no recorded end and do not run here."""
        found = [each.removeprefix("task/") for each in await self.host.log.list_kv(OPEN) if each.startswith("task/")]
        for job in [each.id for each in self._engine.summaries.values() if not each.done]:
            found += [run.task for run in (await self._engine.load(job)).open.values()]
        owns = self.host.members.owns
        return [task for task in dict.fromkeys(found) if owns(f"task/{task}") and not self._runs_here(task)]

    async def _kept(self, job: str) -> list[str]:
        """Tasks of this job that are not closed before it is resumed: it may continue in the middle of them."""
        return [run.task for run in (await self._engine.load(job)).open.values()]

    @staticmethod
    def _goes_on(job: JobSummary) -> bool:
        """Whether the job resumes automatically. Other jobs wait for a person."""
        return job.status == "running" or (job.status == "waiting" and job.waits_for != "person")

    def _runs_here(self, task: str) -> bool:
        return task in self._lent or any(task in run.tasks for run in self._runs.values())

    async def _close_task(self, task: str) -> None:
        async with self._closing.setdefault(task, asyncio.Lock()):  # or two calls could read before either writes
            await close_task(self.host, task)

    async def _take_up(self, job: str, by: str = "host") -> None:
        """Resume a job from the journal: record the end of lost works, then continue, wait or cancel."""
        async with self._taking:
            if job in self._runs or self.job(job).done or not self._engine.claim(job):
                return
            state = await self._engine.load(job)
            if state.stopping is not None:
                await self._cancel(state, state.stopping)
                return
            lost = await self._lost_works(state)
            for run in lost.values():
                await self._close_task(run.task)
            if await self._close_works(state, lost) and not await self._pass_on(state, by):
                await self._engine.put(job, je.JobResumed(by=by))
                self._launch(state)

    async def _lost_works(self, state: JobState) -> dict[str, WorkAttempt]:
        """Works in flight that cannot be resumed in the middle. A question cannot crash a host, so it is resumed after
        any number of crashes."""
        works = state.open.items()
        return {path: run for path, run in works if not await self._resumable(state, run, state.suspended)}

    async def _resumable(self, state: JobState, run: WorkAttempt, orderly: bool) -> bool:
        """Whether a work in flight can continue here. `orderly`: its host was stopped normally."""
        if self._lacks_label(state) or not self.host.members.owns(f"task/{run.task}"):
            return False
        before = await resumed(self.host, run.task, state.leaf(run.work))
        crashes = run.crashes + (not orderly)
        return before is not None and (before.question is not None or crashes < limits.INTERRUPTIONS)

    def _lacks_label(self, state: JobState) -> bool:
        labels = labels_of(state.entry, state.summary.name).values()
        return bool(set(labels).difference(self.host.members.labels))

    async def _pass_on(self, state: JobState, by: str) -> bool:
        """Forward a job that needs a label this host lacks, or let it wait for such a host. False: this host can run
        it."""
        job, entry, name, place = state.summary.id, state.entry, state.summary.name, self.host.members.place
        if not self._lacks_label(state):
            return False
        if state.summary.status != "waiting":
            await self._engine.put(job, je.JobWaiting(reason=_PASSED_ON, waits_for="host"))
        try:
            forward = await self.elsewhere(entry, name, jc.ResumeJob(job=job), _caller(by), place, f"job/{job}")
        except (NotFound, PlaceAway) as away:
            reason = f"{away.message} It goes on by itself when there is one."
            if state.summary.reason != reason:
                await self._engine.put(job, je.JobWaiting(reason=reason, waits_for="label"))
        else:
            if forward is not None:
                self.host.own(_passed(forward), f"pass on {job}")
        return True

    async def _close_works(self, state: JobState, works: dict[str, WorkAttempt]) -> bool:
        """Record the end of works in flight. False: the job waits for a person to resume or stop it."""
        ends: list[Event] = []
        asking: list[str] = []
        for path, run in works.items():
            leaf = state.leaf(run.work)
            ended = await end_of_work(self.host, path, run, state.complete(path, leaf))
            name = name_of(leaf)
            choice = on_interrupt(state.entry, leaf)
            crashes = run.crashes + (not state.suspended) if may_crash(leaf) else 0
            if ended.outcome == "interrupted" and choice == "fail":
                ended = msgspec.structs.replace(ended, outcome="failed")
            elif ended.outcome == "interrupted" and choice == "ask":
                asking.append(repr(name))
            elif ended.outcome == "interrupted" and crashes >= limits.INTERRUPTIONS:
                asking.append(f"{name!r} ({crashes} times)")
            ends += [*lost_result(state, ended, _INTERRUPTED), ended]
        if asking:
            names = ", ".join(asking)
            ends.append(je.JobWaiting(reason=f"The host ended in the middle of {names}; resume or stop the job."))
        if ends:
            await self._engine.put(state.summary.id, *ends)
        return not asking

    async def _cancel(self, state: JobState, by: str) -> None:
        """Record the end of a job that does not run in this process."""
        for run in state.open.values():
            await self._close_task(run.task)
        await self._new_run(state).end("canceled", by=by)


def _caller(by: str) -> c.Caller:
    """The caller of a forwarded command. This host has already authorized it."""
    return c.Caller("", by, frozenset(), label=by)


async def _passed(forward: Forward) -> None:
    with contextlib.suppress(Conflict):  # it was already resumed there
        await forward()
