"""The journal of a job. It is stored in the log, even if Temporal dispatches the works (`temporal`).

`claim` returns whether this process runs the job (False: another one does). `load` returns the recorded state. `put`
records before and after every work and returns when that is durable. `finish` records the end. `heartbeat` renews a
claim where claims can be lost.
"""

from typing import Protocol

import msgspec

from portico import limits
from portico.features.jobs import events as je
from portico.features.jobs.state import JobState, JobSummary, begin, fold, replay
from portico.kernel import events as e
from portico.kernel import limits as kernel_limits
from portico.kernel.commits import Commits
from portico.kernel.errors import NotFound
from portico.kernel.events import Record, number_of
from portico.kernel.log.log import Log

SUMMARY = "job"
OPEN = "open"
"""The key stored with a task's channel while the task has no end. A restart reads it to find open tasks."""


class Engine(Protocol):
    @property
    def summaries(self) -> dict[str, JobSummary]:
        """Summaries of the jobs, in start order."""

    def claim(self, job: str) -> bool: ...

    async def create(self, started: je.JobStarted) -> JobState: ...

    async def load(self, job: str) -> JobState: ...

    async def put(self, job: str, *events: e.Event) -> None: ...

    async def begin(self, job: str, task: je.TaskStarted, work: je.WorkStarted) -> None:
        """Record the start of a work and of its task in one commit."""

    async def finish(self, ended: je.JobEnded) -> None: ...

    async def heartbeat(self, job: str) -> None: ...


class LocalEngine:
    """One process owns all jobs of its log, so every claim is granted.

    The states of running jobs are updated from committed events before readers receive them."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._live: dict[str, JobState] = {}
        self._summaries: dict[str, JobSummary] = {}

    @classmethod
    async def open(cls, log: Log, commits: Commits | None = None) -> "LocalEngine":
        engine = cls(log)
        # Subscribe before reading: other hosts may write to their jobs during the read.
        (commits or Commits(log)).on_channel("jobs", engine._apply, "job")
        notes = await log.list_kv(SUMMARY)
        decoder = msgspec.json.Decoder(JobSummary)
        for channel in sorted(log.channels("job/"), key=number_of):
            job = channel.removeprefix("job/")
            data = notes.get(channel)
            summary = decoder.decode(data) if data is not None else None
            if summary is None or summary.pos != log.head(channel) or not summary.done:
                summary = (await engine.load(job)).summary
            engine._list(summary)
        return engine

    @property
    def summaries(self) -> dict[str, JobSummary]:
        return self._summaries

    def _list(self, summary: JobSummary) -> None:
        """Add a summary. If the list is full, drop the oldest finished job."""
        self._summaries[summary.id] = summary
        if len(self._summaries) > limits.JOB_SUMMARIES:
            ended = next((job for job, each in self._summaries.items() if each.done), None)
            self._summaries.pop(ended or "", None)

    def claim(self, job: str) -> bool:
        return True

    async def create(self, started: je.JobStarted) -> JobState:
        await self._log.append(f"job/{started.job}", started)
        return self._live[started.job]

    async def load(self, job: str) -> JobState:
        """Return the recorded state. The state of an unfinished job is kept up to date from the log."""
        if job in self._live:
            return self._live[job]
        channel = f"job/{job}"
        records: list[Record] = []
        # Another host may write during the read: read until the head of the channel, so that no event is missed.
        while not records or records[-1].pos < self._log.head(channel):
            if not (
                more := await self._log.read(channel, records[-1].pos if records else 0, kernel_limits.READ_EVENTS)
            ):
                break
            records += more
        if job in self._live:
            return self._live[job]
        state = replay(records)
        if state is None:
            raise NotFound("job", job)
        if not state.summary.done:
            self._live[job] = state
            self._list(state.summary)
        return state

    async def put(self, job: str, *events: e.Event) -> None:
        await self._log.append(f"job/{job}", *events)

    async def begin(self, job: str, task: je.TaskStarted, work: je.WorkStarted) -> None:
        # The task is first, so that a task id is never reused.
        self._log.put_kv(f"task/{task.task}", OPEN, b"1")
        await self._log.append_all((f"task/{task.task}", task), (f"job/{job}", work))

    async def finish(self, ended: je.JobEnded) -> None:
        await self._log.append(f"job/{ended.job}", ended)

    async def heartbeat(self, job: str) -> None:
        """Do nothing: no other process can claim a job of this log."""

    def _apply(self, record: Record) -> None:
        event, job = record.event, record.channel.removeprefix("job/")
        if isinstance(event, je.JobStarted):
            self._live[job] = begin(event, record.time)
            self._list(self._live[job].summary)
        elif job in self._live:
            fold(self._live[job], event, record.time)
        else:
            return
        summary = self._live[job].summary
        summary.pos = record.pos
        if isinstance(event, je.JobEnded):  # until then a start reads it from the events: of 10,000 works it has 1 MB
            del self._live[job]
            self._log.put_kv(record.channel, SUMMARY, msgspec.json.encode(summary), lazy=True)
