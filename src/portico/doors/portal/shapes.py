"""Response types of this API, used by the endpoints and the OpenAPI document."""

from typing import Any, Literal

from msgspec import Struct

from portico.doors.portal.callbacks import Element


class Shape(Struct, omit_defaults=True, rename="camel"):
    """camelCase keys; what is absent is left out."""


class Hello(Shape):
    message: str


class Config(Shape):
    repo_root: str


class Token(Shape):
    token: str


class PortalDone(Shape):
    """It was done."""


class ModelShown(Shape):
    name: str
    id: str
    multiplier: float


class Models(Shape):
    models: list[ModelShown]


class SessionStartedReply(Shape):
    session_id: str


class Closed(Shape):
    result: Literal["Closed"]


class TaskShown(Shape):
    name: str
    require_user_input: bool


class Tasks(Shape):
    tasks: list[TaskShown]


class TaskStartedReply(Shape):
    task_id: str


class TaskError(Shape):
    """There is no such task: the detailed error as JSON in a string."""

    task_error: str


class OldJobs(Shape):
    """With `?level=000`: each job with its name."""

    jobs: list[dict[str, Any]]


Status = Literal["Running", "Succeeded", "Failed", "Canceled"]
TaskStatus = Literal["Running", "Succeeded", "Failed"]


class JobShown(Shape):
    job_id: str
    job_name: str
    start_time: str
    status: Status


class RunningJobs(Shape):
    jobs: list[JobShown]


class TaskOfJob(Shape):
    work_id_in_job: int
    status: TaskStatus
    task_id: str | None = None
    """Only while it runs."""


class JobProgress(JobShown, kw_only=True):
    tasks: list[TaskOfJob]


class JobStartedReply(Shape):
    job_id: str


class JobRefused(Shape):
    """The entry asks for a model that is not there; the words name it and those that are."""

    error: str


class JobError(Shape):
    job_error: str


class EntryInstalled(Shape):
    result: Literal["OK", "InvalidatePath", "InvalidateEntry", "Rejected"]
    error: str | None = None


class Responses(Shape):
    """Elements in their order; each has a `callback`, or is a `sessionError`, `taskError` or `jobError`."""

    responses: list[Element]
