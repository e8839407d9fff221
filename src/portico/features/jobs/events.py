"""What happens to tasks and jobs."""

from typing import Any, Literal

from msgspec import Struct

from portico.kernel.events import Event, Json, register_events

TaskOutcome = Literal["succeeded", "failed", "stopped", "interrupted"]
WorkOutcome = Literal["succeeded", "failed", "crashed", "stopped", "interrupted"]
JobOutcome = Literal["succeeded", "failed", "canceled"]
WaitsFor = Literal["person", "label", "host"]
"""A person who resumes it; a host with a label that it needs; such a host that it is being given to."""


class TaskStarted(Event, frozen=True, tag="task.started"):
    """On `task/ID`. Its prompts are turns of ordinary sessions, sent by `task:ID`."""

    task: str
    name: str
    model: str
    by: str
    input: str = ""
    job: str | None = None
    path: str = ""  # in the tree of the job
    attempt: int = 1  # above 1: the host ended in the middle of the attempt before
    session: str | None = None  # that it borrows; None: it opens its own
    owner: str = ""  # as of the job, or of the session it borrows


class TaskSessionStarted(Event, frozen=True, tag="task.session.started"):
    session: str
    model: str
    driving: bool


class TaskSessionEnded(Event, frozen=True, tag="task.session.ended"):
    session: str
    succeeded: bool


class TaskPrompted(Event, frozen=True, tag="task.prompted"):
    """The work is about to be sent to that session, which had so many turns of this task. After a restart the turn
    shows whether the agent has done it. `retry`: of the criteria; `values`: what the agent had reported before."""

    session: str
    prompts: int
    retry: int = 0
    values: dict[str, str] = {}


class TaskDecided(Event, frozen=True, tag="task.decided"):
    reason: str
    passed: bool | None = None  # what a check or the task came to; None: neither
    exit_code: int | None = None  # of the command that was the check
    evidence: str = ""  # of a condition that an agent judged: why
    check: str = ""
    """Which of the steps after the work, with its `output`: not done again after a restart."""
    output: str = ""


class TaskEnded(Event, frozen=True, tag="task.ended"):
    task: str
    outcome: TaskOutcome
    error: str = ""  # what went wrong, when it did not simply miss its criteria


class JobStarted(Event, frozen=True, tag="job.started"):
    """On `job/ID`. Contains everything that is needed to continue: the entry may change or vanish."""

    job: str
    name: str
    entry: Json  # the validated entry, cut down to this job and the tasks it uses
    cwd: str
    by: str
    input: str = ""
    origin: str | None = None  # the job that this one repeats or resumes
    done: dict[str, bool] = {}  # the outcomes that it keeps from that job, by path
    values: dict[str, dict[str, str]] = {}  # the values that it keeps with them, by path and name
    owner: str = ""  # the person whose job this is; empty: everybody's
    inputs: dict[str, Any] = {}
    trigger: dict[str, Any] = {}  # of an automation that started it: `scheduled_at` and `payload`


class JobResumed(Event, frozen=True, tag="job.resumed"):
    by: str
    path: str = ""  # of the only work that is resumed, in its middle; empty: the whole job


class JobSuspended(Event, frozen=True, tag="job.suspended"):
    """The host was stopped. Running works did not end the job; it continues at the next start."""


class JobWaiting(Event, frozen=True, tag="job.waiting"):
    """A person resumes the job after `onInterrupt: ask`, or it continues when a host can run it."""

    reason: str
    waits_for: WaitsFor = "person"


class JobStopping(Event, frozen=True, tag="job.stopping"):
    """It is canceled; `job.ended` follows when everything has stopped, also after a crash in between."""

    by: str


class JobDecided(Event, frozen=True, tag="job.decided"):
    path: str
    reason: str


class JobValue(Event, frozen=True, tag="job.value"):
    """Something that later works use: the output of a task, an answer, the items of an Each."""

    path: str
    name: str
    value: str


class WorkStarted(Event, frozen=True, tag="work.started"):
    path: str  # branch, iteration and alternative: `r.1|0#3`
    work: int  # its id in the job
    task: str
    attempt: int = 1


class WorkEnded(Event, frozen=True, tag="work.ended"):
    path: str
    work: int
    task: str
    outcome: WorkOutcome
    error: str = ""


class Artifact(Struct, frozen=True):
    """A file that a job keeps. The log has its content."""

    path: str
    size: int
    blob: str


class JobEnded(Event, frozen=True, tag="job.ended"):
    job: str
    outcome: JobOutcome
    by: str
    error: str = ""
    reason: str = ""  # of a failed one: the step that failed and why, as text
    result: Any = None
    artifacts: list[Artifact] = []


EVENTS: tuple[type[Event], ...] = (
    TaskStarted,
    TaskSessionStarted,
    TaskSessionEnded,
    TaskPrompted,
    TaskDecided,
    TaskEnded,
    JobStarted,
    JobResumed,
    JobSuspended,
    JobWaiting,
    JobStopping,
    JobDecided,
    JobValue,
    WorkStarted,
    WorkEnded,
    JobEnded,
)
register_events(*EVENTS)
