"""Jobs whose works Temporal dispatches to the hosts of a place: `[jobs] engine = "temporal"`.

The log remains the journal, with the same events as on one host, and is authoritative. Temporal schedules the works,
detects when a host is gone, and lets another host continue the walk of the tree (`temporal_workflow`). While Temporal
does not answer, jobs wait; everything else continues.
"""

import asyncio
import contextlib
import logging
from datetime import timedelta
from functools import partial
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from portico import __version__
from portico.features.jobs import events as je
from portico.features.jobs.engine import LocalEngine
from portico.features.jobs.jobs import Jobs
from portico.features.jobs.run import JobRun
from portico.features.jobs.source import EntrySource
from portico.features.jobs.state import HOOKS, JobState
from portico.features.jobs.task_record import events_of
from portico.features.jobs.task_sessions import TaskCrash, detailed
from portico.features.jobs.temporal_activities import Activities, NotEnded, interrupted
from portico.features.jobs.temporal_connect import check, connect
from portico.features.jobs.temporal_messages import JOB, VERSION, activity_of, queue_of
from portico.features.jobs.temporal_workflow import JobWorkflow
from portico.features.jobs.work import work_at
from portico.kernel import events as e
from portico.kernel.errors import LogUnavailable, Unreachable
from portico.kernel.host import Host
from portico.kernel.log.log import NOT_WRITTEN
from portico.server.settings import JobSettings
from portico.tasks import end_tasks

logging.getLogger("temporalio").setLevel(logging.WARNING)  # it logs each stop of a worker, with "7 days"

RETRY_SECONDS = 1.0
"""Delay between attempts to reach Temporal."""
LOOK_SECONDS = 5.0
"""Interval between health checks of Temporal."""
SILENT_LOOK_SECONDS = 0.5
"""Interval between checks whether the host of a lost work still renews its lease."""
SETTLE_SECONDS = 15.0
"""After this, a lost attempt without an end reports what it waits for. Longer than a lease: a takeover stays quiet."""
KEEP_SECONDS = 60.0
"""How long a host with others beside it keeps a task that it could resume. The next attempt arrives within seconds."""
CLOSE_SECONDS = 5.0
"""How long a host stop waits for its Temporal workers. After that, Temporal detects it by missing heartbeats."""
WORKS = 1_000
"""Maximum number of concurrent works on one host: each is at least an agent process or an open question."""
_TASK_SECONDS = 5.0
"""Timeout of a workflow task. A step of the walk takes milliseconds; after the timeout another host runs it."""
_STICKY_SECONDS = 1.0
"""How long the next steps of a workflow stay assigned to a host that is gone."""
_THROTTLE = timedelta(seconds=0.5)
"""Minimum interval between sent heartbeats. Their responses carry cancellations."""


class TemporalJobs(Jobs):
    journal: LocalEngine
    spread = True

    def __init__(self, host: Host, journal: LocalEngine, source: EntrySource | None, settings: JobSettings) -> None:
        super().__init__(host, journal, source)
        self.journal = journal
        self.settings = settings
        self.works: dict[tuple[str, str], asyncio.Task[None]] = {}
        """Works that run on this host, by job and path."""
        self.closing = False
        self.version, self.package = VERSION, __version__
        self._client: Client | None = None
        self._workers: dict[str, Worker] = {}
        """Workers by label. The empty label is the worker of the place."""
        self._pending: dict[str, None] = {}
        """Jobs whose workflow has to be started or cancelled in Temporal."""
        self._other: dict[str, None] = {}
        """Jobs of this host whose workflow has another version and still runs on hosts of that version."""
        self._lost: list[tuple[str, str]] = []
        """Activities whose host is gone, as pairs of job and activity id."""
        self._kept_since: dict[str, int] = {}
        """Tasks that are resumed in their middle, since when (in milliseconds)."""
        self._told = asyncio.Event()
        self._settling = asyncio.Lock()
        self._serving: list[asyncio.Task[None]] = []
        host.commits.on("jobs", self._follow, je.JobStopping, je.JobEnded, je.JobValue)

    @classmethod
    async def connect(cls, host: Host, source: EntrySource | None, settings: JobSettings) -> "TemporalJobs":
        """Connect to Temporal. Raises `BadRequest` for invalid settings; retries while the server does not answer."""
        check(settings)
        jobs = cls(host, await LocalEngine.open(host.log, host.commits), source, settings)
        try:
            jobs._client = await connect(settings)
        except Unreachable as error:
            jobs._away(error.message)
        jobs._serving = [
            *(host.own(jobs._serve(label), f"temporal worker {label}") for label in ("", *host.members.labels)),
            host.own(jobs._tell(), "temporal client"),
        ]
        return jobs

    @property
    def queue(self) -> str:
        """The task queue of the hosts with the same place, log and workflow version. The name contains the epoch of the
        log because a namespace may serve several logs."""
        return f"portico-{self.host.members.place or 'here'}-{self.host.log.epoch}-v{self.version}"

    def workflow_id(self, job: str) -> str:
        return f"portico-{self.host.log.epoch}-{job}"

    async def close(self) -> None:
        """Interrupt the works on this host. They are resumed on another host or after the next start."""
        self.closing = True
        for run in self._runs.values():
            run.suspend()
        works = list(self.works.values())
        await end_tasks(*works)
        if running := [worker for worker in self._workers.values() if worker.is_running]:
            stopping = asyncio.gather(*(worker.shutdown() for worker in running))
            await asyncio.wait({stopping}, timeout=CLOSE_SECONDS)
            stopping.cancel()
        await end_tasks(*self._serving)
        self._runs.clear()
        await super().close()

    # -- Temporal ----------------------------------------------------------------------------------------------

    def _away(self, why: str | None) -> None:
        if why is not None and self.down is None:
            self.host.logger.warning("jobs wait: %s", why)
        elif why is None and self.down is not None:
            self.host.logger.warning("Temporal answers again; jobs go on")
        self.down = why

    async def _serve(self, label: str) -> None:
        """Run the worker for a label until the host stops. The worker of the place also runs workflow steps."""
        while not self.closing:
            try:
                client = self._client = self._client or await connect(self.settings)
                self._away(None)
                self._told.set()
                worker = self._workers[label] = self._new_worker(client, label)
                await worker.run()
                return
            except Exception as error:  # noqa: BLE001 - any error: sessions continue, and the worker is restarted
                self._away(f"The worker for Temporal at {self.settings.address} has stopped: {error}")
            await asyncio.sleep(RETRY_SECONDS)

    def _new_worker(self, client: Client, label: str) -> Worker:
        activities = Activities(self)
        return Worker(
            client,
            task_queue=queue_of(self.queue, label),
            workflows=[] if label else [JobWorkflow],
            activities=[activities.work] if label else activities.all(),
            # The workflow uses only our own pure code; tests replay real histories.
            workflow_runner=UnsandboxedWorkflowRunner(),
            max_concurrent_activities=WORKS,
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=_STICKY_SECONDS),
            max_heartbeat_throttle_interval=_THROTTLE,
            default_heartbeat_throttle_interval=_THROTTLE,
            # A draining host lets its works finish; a stopping host has already ended them.
            graceful_shutdown_timeout=timedelta(days=7),
        )

    async def _tell(self) -> None:
        """Send starts, cancellations and lost activities to Temporal, and retry until it accepts them."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RETRY_SECONDS if self.down else LOOK_SECONDS):
                    await self._told.wait()
            self._told.clear()
            if self._client is None:
                continue
            try:
                await self._client.service_client.check_health(timeout=timedelta(seconds=3))
                for job in (*self._pending, *self._other):
                    await self._ensure(self._client, job)
                    self._pending.pop(job, None)
                while self._lost:
                    await self._report_lost(self._client, *self._lost[0])
                    self._lost.pop(0)
                self._away(None)
            except RPCError as error:
                self._away(f"Temporal at {self.settings.address} does not answer ({error.message}).")
            with contextlib.suppress(LogUnavailable):
                await self._close_left_open()
            await self._drain()

    async def _drain(self) -> None:
        for label in tuple(self._workers) if self.host.members.draining else ():
            if self._workers[label].is_running:
                self._serving.append(self.host.own(self._workers.pop(label).shutdown(), "temporal drain"))

    def _soon(self, job: str) -> None:
        self._pending[job] = None
        self._told.set()

    async def _ensure(self, client: Client, job: str) -> None:
        """Start the workflow of a job if it does not run; cancel it if the job was stopped."""
        self._other.pop(job, None)
        if self.job(job).done:
            return
        ident = self.workflow_id(job)
        try:
            await self._start(client, job, id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE)
        except WorkflowAlreadyStartedError:
            await self._check_runs(client, job)
        state = await self.journal.load(job)
        if state.stopping is not None and not state.summary.done:
            with contextlib.suppress(RPCError):  # it has just ended
                await client.get_workflow_handle(ident).cancel()

    async def _check_runs(self, client: Client, job: str) -> None:
        """End the job if its workflow was ended in Temporal. Restart a workflow of another version that no host runs
        any more with our version: the log contains what is done."""
        described = await client.get_workflow_handle(self.workflow_id(job)).describe()
        if described.status in (WorkflowExecutionStatus.RUNNING, WorkflowExecutionStatus.CONTINUED_AS_NEW):
            if described.task_queue != self.queue and self.host.members.owns(f"job/{job}"):
                await self._start_again(client, job)
            return
        run = await self.run_of(job)
        if not run.state.summary.done:
            name = described.status.name.lower() if described.status is not None else "gone"
            await run.end("failed", by="temporal", error=detailed("Error", f"Its workflow was {name} in Temporal."))

    async def _start(self, client: Client, job: str, **policy: Any) -> None:
        await client.start_workflow(
            JOB,
            job,
            id=self.workflow_id(job),
            task_queue=self.queue,
            task_timeout=timedelta(seconds=_TASK_SECONDS),
            static_summary=self.job(job).name,
            **policy,
        )

    async def _start_again(self, client: Client, job: str) -> None:
        members = self.host.members
        here = [
            each for each in await members.all() if each.state in ("up", "draining") and each.place == members.place
        ]
        if {each.version for each in here} - {self.package}:
            self._other[job] = None  # those hosts run it; checked again at the next poll
            return
        self.host.logger.warning("the job %s continues with another version of its workflow", job)
        conflict = WorkflowIDConflictPolicy.TERMINATE_EXISTING
        reuse = WorkflowIDReusePolicy.ALLOW_DUPLICATE
        await self._start(client, job, id_reuse_policy=reuse, id_conflict_policy=conflict)

    async def _report_lost(self, client: Client, job: str, ident: str) -> None:
        """Fail a lost activity, so that the workflow does not wait for the heartbeat timeout."""
        handle = client.get_async_activity_handle(workflow_id=self.workflow_id(job), run_id=None, activity_id=ident)
        try:
            await handle.fail(interrupted(orderly=False))
        except RPCError as error:
            if error.status not in (RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT):
                raise

    # -- jobs --------------------------------------------------------------------------------------------------

    @property
    def _busy(self) -> bool:
        return any(not summary.done for summary in self.journal.summaries.values())

    def _launch(self, state: JobState) -> None:
        self._soon(state.summary.id)

    async def _left_open(self) -> list[str]:
        """Without tasks that are resumed here: their questions stay open."""
        return [task for task in await super()._left_open() if not await self._keeps(task)]

    async def _kept(self, job: str) -> list[str]:
        """Return no tasks: `_left_open` has left out those that are resumed."""
        return []

    async def _keeps(self, task: str) -> bool:
        """Whether the next attempt resumes the task here. If other hosts take that attempt, it is ended after a while,
        so that they can begin another one."""
        started = next((each.event for each in await events_of(self.host, task)), None)
        if not isinstance(started, je.TaskStarted) or started.job is None:
            return False
        state = await self.journal.load(started.job)
        known = state.runs.get(started.path)
        if state.summary.done or known is None or known.task != task or not await self.can_resume(state, started.path):
            return False
        if task not in self._kept_since:
            self._kept_since[task] = self.host.now()
            self._report_later(started.job, activity_of(started.path, known.attempt, known.resumes))
        alone = not self.host.members.several or self.down is not None
        return alone or self.host.now() - self._kept_since[task] < KEEP_SECONDS * 1000

    async def can_resume(self, state: JobState, path: str, orderly: bool = False) -> bool:
        known = state.runs[path]
        return known.outcome is None and await self._resumable(state, known, orderly)

    def _report_later(self, job: str, ident: str) -> None:
        self._lost.append((job, ident))
        self._told.set()

    async def recover(self) -> int:
        await super().recover()
        owns = self.host.members.owns
        return sum(not each.done and owns(f"job/{each.id}") for each in self.journal.summaries.values())

    async def _take_up(self, job: str, by: str = "host") -> None:
        if self.job(job).status == "waiting":
            await self.journal.put(job, je.JobResumed(by=by))
        self._soon(job)

    async def stop_job(self, job: str, *, by: str) -> None:
        if self.job(job).done:
            return
        async with self._settling:
            if (await self.journal.load(job)).stopping is None:
                await self.journal.put(job, je.JobStopping(by=by))
        self._soon(job)
        async for records in self.host.log.follow(f"job/{job}"):
            if any(isinstance(record.event, je.JobEnded) for record in records):
                return
            if self.down is not None:
                raise Unreachable(f"The job {job!r} ends as soon as it can: {self.down}")

    async def _close_task(self, task: str) -> None:
        await super()._close_task(task)
        started = next(iter(await events_of(self.host, task)), None)
        if started is not None and isinstance(started.event, je.TaskStarted) and started.event.job is not None:
            event = started.event
            known = (await self.journal.load(started.event.job)).runs.get(event.path)
            resumes = known.resumes if known is not None and known.task == task else 0
            self._report_later(started.event.job, activity_of(event.path, event.attempt, resumes))

    def _follow(self, record: e.Record) -> None:
        """Apply job events of all hosts to the works on this host."""
        job = record.channel.removeprefix("job/")
        match record.event:
            case je.JobStopping():
                for (of, _), work in self.works.items():
                    if of == job:
                        work.cancel()
            case je.JobEnded():
                self._forget(job)
            case je.JobValue(path=path, name=name) if path == HOOKS and job in self._runs:
                self._runs[job].hook(name)
            case _:
                pass

    # -- works, for the activities -----------------------------------------------------------------------------

    async def run_of(self, job: str) -> JobRun:
        await self.host.members.catch_up()
        run = self._runs.get(job)
        if run is None:
            state = await self.journal.load(job)
            run = self._runs.get(job) or self._new_run(state)
            if not state.summary.done:
                self._runs[job] = run
        return run

    def begin(self, run: JobRun, path: str) -> "asyncio.Task[None]":
        key = (run.state.summary.id, path)
        if (known := run.state.runs.get(path)) is not None:
            self._kept_since.pop(known.task, None)
        work = self.works[key] = self.host.own(self._play(run, path), f"work {key[0]} {path}")
        work.add_done_callback(lambda _: self.works.pop(key, None))
        return work

    async def _play(self, run: JobRun, path: str) -> None:
        leaf = work_at(run.state.job.work, path)
        with contextlib.suppress(TaskCrash):  # already recorded
            await run.work(path, leaf)  # type: ignore[arg-type]

    def silence(self, run: JobRun, path: str) -> None:
        for task in run.tasks.values():
            if task.plan.path == path:
                task.suspended = True

    async def close_left(self, run: JobRun, path: str) -> None:
        """Record the end of a task that this host dropped without one."""
        job = run.state.summary.id
        if run.suspended and self._runs.get(job) is run:  # the log could not be written
            del self._runs[job]
            for (of, _), work in self.works.items():
                if of == job:
                    work.cancel()
        known = run.state.runs.get(path)
        if self.closing or known is None or known.outcome is not None or await self.can_resume(run.state, path):
            return
        if self.host.members.owns(f"task/{known.task}"):
            await self._once_writable(partial(self._close_task, known.task))

    async def settle(
        self, state: JobState, path: str, orderly: bool, since: int | None = None, seconds: float | None = None
    ) -> bool:
        """Wait until the lost attempt has an end and the job may continue; returns whether it is resumed instead. The
        owner of the task writes the end: the host that ran it, or the one that took over. Until then, the task might
        still be running. `since`: when the attempt was lost. NotEnded: there is no end after `seconds`."""
        job = state.summary.id
        known = state.runs.get(path)
        resumes = await self._resumes(state, path, orderly)
        if known is not None and known.outcome is None and not resumes:
            await self._ended(state, path, known.task, since or self.host.now(), seconds)
            async with self._settling:
                if state.runs[path].outcome is None and state.stopping is None:
                    if orderly:
                        await self.journal.put(job, je.JobSuspended())
                    if await self._close_works(state, {path: state.runs[path]}):
                        await self.journal.put(job, je.JobResumed(by="host"))
        async for _ in self.host.log.follow(f"job/{job}"):
            if state.summary.status != "waiting" or state.stopping is not None:
                break
        return resumes

    async def _resumes(self, state: JobState, path: str, orderly: bool) -> bool:
        """Record that the lost attempt continues in its middle, if it can."""
        job = state.summary.id
        if (work := self.works.get((job, path))) is not None:  # it ends when its activity learns that it was lost
            await asyncio.wait({work})
        async with self._settling:
            if path not in state.runs or state.stopping is not None or not await self.can_resume(state, path, orderly):
                return False
            suspended: list[e.Event] = [je.JobSuspended()] if orderly else []
            await self.journal.put(job, *suspended, je.JobResumed(by="host", path=path))
            return True

    async def _ended(self, state: JobState, path: str, task: str, since: int, seconds: float | None) -> None:
        """Wait until the task has an end. Its owner writes it, at the latest in its next poll (`_close_left_open`). If
        that takes long, record in the job what it waits for."""
        job, began, reported = state.summary.id, self.host.now(), ""
        async for records in self.host.log.follow(f"task/{task}", timeout=SILENT_LOOK_SECONDS):
            if any(isinstance(record.event, je.TaskEnded) for record in records):
                return
            await self.host.members.suspect(f"task/{task}")
            self._told.set()
            if not reported and self.host.now() - since > SETTLE_SECONDS * 1000:
                reported = await self._waits_for(task)
                if state.summary.reason != reported:
                    await self.journal.put(job, je.JobDecided(path=path, reason=reported))
            if seconds is not None and self.host.now() - began > seconds * 1000:
                raise NotEnded

    async def _waits_for(self, task: str) -> str:
        members = self.host.members
        number, place = await members.owner(f"task/{task}")
        host = next((each for each in await members.all() if each.id == number), None)
        name = f"the host {host.name!r} ({host.state})" if host is not None else "its host"
        return f"It waits until {name} of the place {place!r} has ended the task {task!r}, which was interrupted there."

    async def _close_left_open(self) -> None:
        """Record the end of every started task that this host owns and does not run. An earlier attempt to write the
        end may have failed."""
        for task in [] if self.closing or self.host.log.down is not None else await self._left_open():
            with contextlib.suppress(*NOT_WRITTEN):
                await self._close_task(task)
