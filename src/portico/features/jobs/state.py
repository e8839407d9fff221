"""The state of a job: a fold over its channel. Lists show the summary; a restart needs the journal."""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec
from msgspec import Struct

from portico.features.jobs import events as je
from portico.features.jobs.entry import ANSWER, ITEM, Ask, Entry, Job, Leaf, Ref, leaves_of, name_of, refs_of
from portico.features.jobs.events import WaitsFor, WorkOutcome
from portico.features.jobs.step import FlowStep
from portico.features.jobs.work import steps_of
from portico.features.jobs.workflow.inputs import secrets_of
from portico.kernel import events as e
from portico.kernel.events import Json, Record

JobStatus = Literal["running", "waiting", "succeeded", "failed", "canceled"]
WorkStatus = Literal["running", "succeeded", "failed", "stopped"]
STATUSES: dict[WorkOutcome, WorkStatus] = {
    "succeeded": "succeeded",
    "failed": "failed",
    "crashed": "failed",
    "stopped": "stopped",
    "interrupted": "stopped",
}


HOOKS = "^"
"""The path under which hook calls are stored. No work has this path."""
ITEMS = "items"
"""The name of the value that contains the items of an Each, as a JSON array; of an Over, their number."""
LANE = "lane"
"""The name of the value with the item of a lane of an Over."""
RESULT = "@"
"""Before the id of a step: the name of the value with its result."""
BRANCH = "branch"
"""The name of the value of the root: the branch of the run's worktree."""
SESSION = "&"
"""Before the id of a step: the name of the value with the session that later steps continue."""
LAST = "@"
"""The name under which `latest` has the last result of any step."""


class WorkSummary(Struct, omit_defaults=True):
    work: int
    name: str
    """Of the task."""
    task: str
    """The id of its latest run."""
    status: WorkStatus
    started: int
    ended: int | None = None
    runs: int = 1


class JobSummary(Struct, omit_defaults=True):
    """Kept for every job for ever, stored beside its channel. Times are milliseconds since the epoch."""

    id: str
    name: str
    status: JobStatus
    started: int
    cwd: str
    by: str
    ended: int | None = None
    error: str = ""
    """Of a failed one: the step that failed and why, as text."""
    reason: str = ""
    """Why it waits, or the last decision."""
    waits_for: WaitsFor = "person"
    """What a waiting job waits for. Unless it is a person, the job resumes automatically."""
    origin: str | None = None
    works: list[WorkSummary] = []
    """Every work that has started, in the order of first starts; a later run takes the place of an earlier one."""
    pos: int = 0
    owner: str = ""
    """The person whose job this is. Empty: everybody's."""
    result: Any = None
    """Of a workflow that has ended: what its file declares."""
    artifacts: list[je.Artifact] = []
    branch: str = ""
    """Of a run in a worktree: the branch that it leaves."""

    @property
    def done(self) -> bool:
        return self.ended is not None


class WorkAttempt(Struct):
    """The latest attempt of the work at one path."""

    work: int
    task: str
    attempt: int
    outcome: WorkOutcome | None = None
    error: str = ""
    crashes: int = 0
    """Attempts during which the host crashed."""
    resumes: int = 0
    """How often this attempt was resumed in its middle, on Temporal."""
    started: int = 0
    ended: int | None = None


class JobState(Struct):
    summary: JobSummary
    entry: Entry
    input: str = ""
    inputs: dict[str, Any] = {}
    trigger: dict[str, Any] = {}
    """Of a workflow that an automation started: `scheduled_at` and `payload`."""
    runs: dict[str, WorkAttempt] = {}
    values: dict[str, dict[str, str]] = {}
    """Values that works provide for later works, by path and name."""
    latest: dict[str, dict[str, str]] = {}
    """The latest value of each name at or below a path: a job of 10,000 works would search all of them for each."""
    calls: dict[str, int] = {}
    """How often each hook was called."""
    works: dict[int, WorkSummary] = {}
    """The works of the summary by number."""
    leaves: dict[int, Leaf] = {}
    """The works of the tree by number; filled on first use."""
    stopping: str | None = None
    """Who cancels it."""
    suspended: bool = False
    """The host was stopped and has not resumed the job yet."""

    @property
    def job(self) -> Job:
        return self.entry.jobs[self.summary.name]

    def leaf(self, work: int) -> Leaf:
        if not self.leaves:
            self.leaves = {leaf.work_id_in_job: leaf for leaf in leaves_of(self.job.work)}
        return self.leaves[work]

    def keep(self, path: str, name: str, value: str) -> None:
        self.values.setdefault(path, {})[name] = value
        if path == HOOKS:
            self.calls[name] = self.calls.get(name, 0) + 1
        for place in up_from(path) if path != HOOKS and name != LANE else ():
            found = self.latest.setdefault(place, {})
            found[name] = value
            if name.startswith(RESULT):
                found[LAST] = value

    def nearest(self, path: str, name: str) -> str | None:
        """The value of that name that the work at this path sees."""
        places = (self.latest.get(place, {}) for place in up_from(path))
        return next((found[name] for found in places if name in found), None)

    def seen_from(self, path: str) -> dict[str, str]:
        """The values that the work at this path sees. Of several with one name the nearest counts, so that the lanes of
        an Each never see each other's; of equally near ones the latest."""
        found: dict[str, str] = {}
        for place in up_from(path):
            for name, value in self.latest.get(place, {}).items():
                if name not in (ITEM, ITEMS):
                    found.setdefault(name, value)
            if ITEM in self.values.get(place, {}):
                found.setdefault(ITEM, self.values[place][ITEM])
        return found

    def complete(self, path: str, leaf: Leaf) -> bool:
        """Whether the values are here that the work at this path leaves when it succeeds."""
        if isinstance(leaf, FlowStep):
            return RESULT + leaf.id in self.values.get(path, {})
        output = self.entry.tasks[leaf.task_id].output if isinstance(leaf, Ref) else None
        name = ANSWER if isinstance(leaf, Ask) else output.name if output is not None else None
        return name is None or name in self.values.get(path, {})

    @property
    def open(self) -> dict[str, WorkAttempt]:
        """Works in flight."""
        return {path: run for path, run in self.runs.items() if run.outcome is None}


def up_from(path: str) -> Iterator[str]:
    """The path itself, and what it lies in, up to the root."""
    steps = steps_of(path)
    return ("".join(steps[:count]) for count in range(len(steps), 0, -1))


def begin(event: je.JobStarted, time: int) -> JobState:
    summary = e.like(JobSummary, event, id=event.job, status="running", started=time)
    state = JobState(summary, msgspec.convert(event.entry, Entry), event.input, event.inputs, event.trigger)
    for path, succeeded in event.done.items():
        state.runs[path] = WorkAttempt(-1, "", 1, "succeeded" if succeeded else "failed")
    for path, values in event.values.items():
        for name, value in values.items():
            state.keep(path, name, value)
    return state


def fold(state: JobState, event: e.Event, time: int) -> None:
    summary = state.summary
    match event:
        case je.WorkStarted():
            before = state.runs.get(event.path)
            if before is not None and event.attempt <= before.attempt:
                return  # two hosts began the same attempt: the first has it, and the other one sees this and leaves
            crashes = before.crashes if before is not None else 0
            state.runs[event.path] = WorkAttempt(event.work, event.task, event.attempt, crashes=crashes, started=time)
            _started(state, event, time)
        case je.WorkEnded():
            run = state.runs.get(event.path)
            if run is not None and run.task == event.task and run.outcome is None:
                run.outcome, run.error, run.ended = event.outcome, event.error, time
                run.crashes += event.outcome == "interrupted" and not state.suspended
            work = state.works.get(event.work)
            if work is not None and work.task == event.task:
                work.status, work.ended = STATUSES[event.outcome], time
        case je.JobValue():
            state.keep(event.path, event.name, event.value)
            if event.name == BRANCH:
                summary.branch = event.value
        case je.JobDecided():
            summary.reason = event.reason
        case je.JobWaiting():
            summary.status, summary.reason, summary.waits_for = "waiting", event.reason, event.waits_for
        case je.JobSuspended():
            state.suspended = True
        case je.JobResumed(path=path) if path:
            if (run := state.runs.get(path)) is not None and run.outcome is None:
                run.crashes += not state.suspended
                run.resumes += 1
            state.suspended = False
        case je.JobResumed():
            summary.status, summary.reason = "running", ""
            for run in state.open.values():  # they are resumed in the middle
                run.crashes += not state.suspended
            state.suspended = False
        case je.JobStopping():
            state.stopping = event.by
        case je.JobEnded():
            summary.status, summary.ended = event.outcome, time
            summary.error = event.reason or message_of(event.error)
            summary.result, summary.artifacts = event.result, event.artifacts
        case _:
            pass  # an event of a newer Portico


def _started(state: JobState, event: je.WorkStarted, time: int) -> None:
    known = state.works.get(event.work)
    if known is None:
        known = state.works[event.work] = WorkSummary(
            event.work, name_of(state.leaf(event.work)), event.task, "running", time
        )
        state.summary.works.append(known)
        return
    known.task, known.status, known.started, known.ended = event.task, "running", time, None
    known.runs += 1


class _Detail(Struct):
    message: str


def message_of(error: str) -> str:
    """The error message without the JSON that the portal protocol wraps around it."""
    try:
        return msgspec.json.decode(error, type=_Detail).message
    except msgspec.DecodeError:
        return error


def secret_references(state: JobState) -> frozenset[str]:
    """The references to the secret inputs of a job."""
    spec = state.job.flow.inputs if state.job.flow is not None else {}
    return frozenset(str(value) for name in secrets_of(spec) if (value := state.inputs.get(name)))


def replay(records: list[Record]) -> JobState | None:
    """The state after these records of one channel, from its beginning; None if the start is missing."""
    state: JobState | None = None
    for record in records:
        event = record.event
        if isinstance(event, je.JobStarted):
            state = begin(event, record.time)
        elif state is not None:
            fold(state, event, record.time)
        if state is not None:
            state.summary.pos = record.pos
    return state


def plan_of(entry: Entry, name: str) -> Json:
    """The parts of the entry that this job needs, as stored in the log."""
    job = entry.jobs[name]
    used = {ref.task_id for ref in refs_of(job.work)} if job.flow is None else entry.tasks.keys()
    tasks = {key: task for key, task in entry.tasks.items() if key in used}
    plan = msgspec.structs.replace(entry, tasks=tasks, jobs={name: job}, grid=[], prompt_variables={}, schema=None)
    data: Json = msgspec.to_builtins(plan)
    return data
