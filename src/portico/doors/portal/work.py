"""Tasks and jobs: list, start, stop, status; and installing an entry in tests."""

from pathlib import Path
from typing import Any, get_args

import msgspec
from starlette.requests import Request

from portico import limits
from portico.doors.portal.answer import (
    Endpoints,
    Level,
    PortalContext,
    Refused,
    api,
    moment,
    text_of,
    working_directory,
)
from portico.doors.portal.shapes import (
    Closed,
    EntryInstalled,
    JobError,
    JobProgress,
    JobRefused,
    JobShown,
    JobStartedReply,
    OldJobs,
    RunningJobs,
    Status,
    TaskError,
    TaskOfJob,
    Tasks,
    TaskShown,
    TaskStartedReply,
    TaskStatus,
)
from portico.features.jobs import EntryError, Job, JobListing, JobSummary, WorkSummary, job_listing
from portico.features.jobs.commands import JobNamed, StartJob, StartTask, StopJob, StopTask, TaskNamed
from portico.features.jobs.legacy import import_entry
from portico.features.jobs.load import EntrySyntaxError, parse
from portico.features.jobs.task_sessions import detailed
from portico.kernel.errors import BadRequest, NotFound, PorticoError, SessionIsClosed
from portico.kernel.events import Json
from portico.server.route import Param, caller

_STATUSES: dict[str, Status] = {
    "running": "Running",
    "waiting": "Running",
    "succeeded": "Succeeded",
    "failed": "Failed",
    "canceled": "Canceled",
}
_TASK_STATUSES: dict[str, TaskStatus] = {
    "running": "Running",
    "succeeded": "Succeeded",
    "failed": "Failed",
    "stopped": "Failed",
}


class Work(Endpoints):
    def __init__(self, room: PortalContext) -> None:
        self._room = room
        self._jobs = room.jobs

    # -- tasks -------------------------------------------------------------------------------------------------

    @api("copilot/task", scope="read", summary="All tasks.")
    async def tasks(self, request: Request) -> Tasks:
        tasks = self._jobs.entry.tasks
        return Tasks([TaskShown(name, task.require_user_input) for name, task in tasks.items()])

    @api(
        "copilot/task/start/{task:path}/session/{session}",
        scope="jobs",
        summary="Run a task inside a session; the body is the user's input.",
        body=str,
        errors=["SessionNotFound"],
    )
    async def start_task(self, request: Request) -> TaskStartedReply | TaskError:
        name, session = request.path_params["task"], request.path_params["session"]
        body = await text_of(request)
        try:
            command = StartTask(session=session, name=name, input=body)
            named: TaskNamed = await self._jobs.host.do(command, caller(request))
        except SessionIsClosed:
            raise Refused("SessionNotFound") from None
        except NotFound as error:
            if error.what == "session":
                raise Refused("SessionNotFound") from None
            return TaskError(detailed("Error", error.message))
        return TaskStartedReply(named.task)

    @api(
        "copilot/task/{task}/stop",
        scope="jobs",
        summary="Stop a task.",
        errors=["TaskNotFound", "TaskCannotClose"],
    )
    async def stop_task(self, request: Request) -> Closed:
        ident = request.path_params["task"]
        try:
            task = await self._jobs.task(ident)
        except NotFound:
            raise Refused("TaskNotFound") from None
        seen = await self._room.app.view(request).open(f"task/{ident}")
        if not seen or self._room.live.expired(f"task/{ident}", task.ended):
            raise Refused("TaskNotFound")
        if task.borrowing:
            gone = self._room.level == "000" and task.ended is not None  # in 000 a finished task disappears immediately
            raise Refused("TaskNotFound" if gone else "TaskCannotClose")
        await self._jobs.host.do(StopTask(task=ident), caller(request))
        return Closed("Closed")

    # -- jobs --------------------------------------------------------------------------------------------------

    @api(
        "copilot/job",
        scope="read",
        summary="The grid, the jobs and their charts.",
        query={"level": Param("`000`: a list", Level)},
    )
    async def list(self, request: Request) -> JobListing | OldJobs:
        level = request.query_params.get("level", self._room.level)
        if level not in get_args(Level):
            raise BadRequest(f"'level' is '000' or 'latest', not {level!r}.", field="level")
        entry = self._jobs.entry
        if level == "000":
            return OldJobs([self._old_job(name, job) for name, job in entry.jobs.items()])
        return job_listing(entry)

    def _old_job(self, name: str, job: Job) -> Json:
        return {"name": name, "printedName": self._jobs.printed_names.get(name, name), **msgspec.to_builtins(job)}

    @api("copilot/job/running", scope="read", summary="Jobs that run or ended within the last hour.")
    async def running(self, request: Request) -> RunningJobs:
        return RunningJobs(
            [JobShown(**_shown(summary)) for summary in self._room.app.view(request).jobs(self._jobs.running())]
        )

    @api(
        "copilot/job/start/{job:path}",
        scope="jobs",
        summary="Start a job; the body is the working directory, then the user's input from the second line on.",
        body=str,
        errors=["JobNotFound", "WorkingDirectoryNotAbsolutePath", "WorkingDirectoryNotExists"],
    )
    async def start(self, request: Request) -> JobStartedReply | JobRefused | JobError:
        name = request.path_params["job"]
        first, _, rest = (await text_of(request)).partition("\n")
        if name not in self._jobs.entry.jobs:
            raise Refused("JobNotFound")
        folder = working_directory(first.strip(), self._room.app.test)
        try:
            command = StartJob(job=name, cwd=str(folder), input=rest, strict=False)
            named: JobNamed = await self._jobs.host.do(command, caller(request))
        except EntryError as error:
            return JobRefused(error.message)  # it names the missing model and the available ones
        except PorticoError as error:
            return JobError(detailed(type(error).__name__, error.message))
        return JobStartedReply(named.job)

    @api("copilot/job/{job}/status", scope="read", summary="What has become of a job.", errors=["JobNotFound"])
    async def status(self, request: Request) -> JobProgress:
        summary = self._find(request)
        return JobProgress(**_shown(summary), tasks=[_progress(work) for work in summary.works])

    @api("copilot/job/{job}/stop", scope="jobs", summary="Cancel a job.", errors=["JobNotFound"])
    async def stop(self, request: Request) -> Closed:
        await self._jobs.host.do(StopJob(job=self._find(request).id), caller(request))
        return Closed("Closed")

    def _find(self, request: Request) -> JobSummary:
        try:
            summary = self._room.app.view(request).job(self._jobs.job(request.path_params["job"]))
        except NotFound:
            raise Refused("JobNotFound") from None
        if not self._jobs.listed(summary):
            raise Refused("JobNotFound")
        return summary


class TestEntries(Endpoints):
    """Endpoints that exist only with `--test`."""

    def __init__(self, room: PortalContext) -> None:
        self._room = room

    @api(
        "copilot/test/installJobsEntry",
        scope="admin",
        summary="Only with --test: use the entry in this file; the body is its path.",
        body=str,
    )
    async def install(self, request: Request) -> EntryInstalled:
        try:
            document = parse(_read((await text_of(request)).strip(), self._room.test_folder))
        except (BadRequest, EntrySyntaxError) as error:
            return EntryInstalled("InvalidatePath", error.message)
        try:
            imported = import_entry(document, "testEntry", old=self._room.level == "000")
        except EntryError as error:
            return EntryInstalled("InvalidateEntry", error.message)
        try:
            await self._room.jobs.install(imported.entry, imported.printed_names)
        except PorticoError as error:
            return EntryInstalled("Rejected", error.message)
        return EntryInstalled("OK")


def _shown(summary: JobSummary) -> dict[str, Any]:
    return {
        "job_id": summary.id,
        "job_name": summary.name,
        "start_time": moment(summary.started),
        "status": _STATUSES[summary.status],
    }


def _progress(work: WorkSummary) -> TaskOfJob:
    return TaskOfJob(work.work, _TASK_STATUSES[work.status], work.task if work.status == "running" else None)


def _read(name: str, folder: Path) -> bytes:
    """Read a file inside the test folder."""
    path = Path(name)
    if not path.is_absolute():
        raise BadRequest(f"{name!r} is not an absolute path.")
    try:
        if not path.resolve(strict=True).is_relative_to(folder.resolve()):
            raise BadRequest(f"{name!r} is not inside the test folder {str(folder)!r}.")
        if path.stat().st_size > limits.BODY_BYTES:
            raise BadRequest(f"{name!r} has more than {limits.BODY_BYTES} bytes.")
        return path.read_bytes()
    except OSError as error:
        raise BadRequest(f"{name!r} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # not a valid path
        raise BadRequest(f"{name!r} cannot be read: {error}.") from error
