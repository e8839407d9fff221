"""Commands about jobs and tasks."""

from typing import Any

from msgspec import Struct

from portico.kernel.commands import AboutJob, AboutSession, Command, Done, Http, NoLock, NoTool, register

_ONE = "/v1/jobs/{id}"


class JobNamed(Struct):
    job: str


class TaskNamed(Struct):
    task: str


class StartJob(Command, frozen=True, tag="job.run"):
    """Start a job."""

    scope = "jobs"
    lock = NoLock("Its checks read what does not change, and the start of a job has its own id.")
    about = "host"  # its `job` is a name in the entry, not the id of one
    gives = JobNamed
    http = Http("POST", "/v1/jobs", 201)
    method = "run_job"
    errors = ("not_found", "conflict", "quota_exceeded")
    private = frozenset({"strict", "by_model"})

    job: str
    cwd: str
    input: str = ""
    entry: dict[str, Any] | None = None
    """An entry for this job alone, which needs the scope terminal too; absent: a workflow of `cwd`, or the host's."""
    place: str = ""  # of several hosts: where it runs; the entry's, or its folder's, when none is named
    label: str = ""  # of the hosts that do its works, where their tasks name none
    strict: bool = True  # a job that needs input does not start without; the portal does not require it
    inputs: dict[str, Any] = {}  # of a workflow, by name
    trigger: dict[str, Any] = {}  # of a workflow that an automation starts: `scheduled_at` and `payload`
    workflow: str = ""  # the text of a workflow for this job alone, which needs the scope terminal too
    by_model: bool = False  # a model gives no secret inputs: their values would be in its session


class StopJob(AboutJob, frozen=True, tag="job.stop"):
    """Cancel a job."""

    scope = "jobs"
    lock = NoLock("It waits for the end of the job, which is written once.")
    gives = Done
    http = Http("POST", f"{_ONE}/stop")


class ResumeJob(AboutJob, frozen=True, tag="job.resume"):
    """Resume a waiting, failed or canceled job."""

    scope = "jobs"
    lock = NoLock("A waiting job is resumed under a lock of the engine; a failed one starts a new job.")
    gives = JobNamed
    http = Http("POST", f"{_ONE}/resume", 202)


class RetryJob(AboutJob, frozen=True, tag="job.retry"):
    """Run a job again: from the beginning, or a workflow from one of its steps."""

    scope = "jobs"
    lock = NoLock("Its checks read what does not change, and the start of a job has its own id.")
    gives = JobNamed
    http = Http("POST", f"{_ONE}/retry", 202)

    step: str = ""  # of a workflow: keep what succeeded before this step
    workflow: str = ""  # the changed text, which needs the scope terminal too; absent: as it was


class RetryPlanned(Struct):
    """What a retry would run."""

    text: str
    """The workflow."""
    differences: str
    """From the workflow as it ran, as a unified diff; empty, if it has not changed."""
    kept: list[str]
    """The ids of the steps whose results are kept."""


class PlanRetry(AboutJob, frozen=True, tag="job.retry.plan"):
    """Show what a retry of a workflow would run: how its file has changed, and what it keeps. Nothing starts."""

    scope = "read"
    lock = NoLock("It reads and writes nothing.")
    gives = RetryPlanned
    http = Http("POST", f"{_ONE}/retry/plan")
    as_tool = NoTool("A retry by a model runs the stored workflow.")

    step: str = ""  # keep what succeeded before this step
    workflow: str = ""  # the changed text; absent: the file of the folder as it is now


class CallHook(AboutJob, frozen=True, tag="job.hook"):
    """Call a hook that a job waits for, now or later."""

    scope = "jobs"
    lock = NoLock("Each call is one event; a step that waits counts them.")
    gives = Done
    http = Http("POST", f"{_ONE}/hooks/{{hook}}")
    errors = ("conflict",)

    hook: str


class StartTask(AboutSession, frozen=True, tag="task.start"):
    """Run a task inside a session; the session stays when the task is over."""

    scope = "jobs"
    lock = "feature"
    gives = TaskNamed

    name: str
    """Of the task in the host's entry."""
    input: str = ""


class StopTask(Command, frozen=True, tag="task.stop"):
    """Stop a task."""

    scope = "jobs"
    lock = NoLock("It waits for the end of the task, which is written once.")
    about = "task"
    gives = Done

    task: str


COMMANDS: tuple[type[Command], ...] = (
    StartJob,
    StopJob,
    ResumeJob,
    RetryJob,
    PlanRetry,
    CallHook,
    StartTask,
    StopTask,
)
register(*COMMANDS)
