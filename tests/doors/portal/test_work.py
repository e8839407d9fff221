import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from portico.features.jobs import to_json
from portico.features.jobs.entry import Entry
from portico.testing.clock import FakeClock
from tests.doors.portal.conftest import Opener, Portal
from tests.jobs.playing import Data, crashing, make, ok, task
from tests.jobs.samples import par, ref, seq
from tests.jobs.test_legacy import old_entry

TASKS: dict[str, Data] = {
    "ok": ok(),
    "crash": crashing(),
    "hang": task("[[hang]]"),
    "a b/c": ok(),
    "ask": task("[[say:$user-input]]"),
}


async def install(door: Portal, tmp_path: Path, entry: Entry | bytes) -> Any:
    path = tmp_path / "test" / "entry.json"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(entry if isinstance(entry, bytes) else to_json(entry))
    return await door("copilot/test/installJobsEntry", str(path))


@pytest.fixture
async def busy(door: Portal, tmp_path: Path) -> Portal:
    """A door with an entry: `main` succeeds."""
    assert await install(door, tmp_path, make(TASKS, seq(ref("ok"), ref("ask")))) == {"result": "OK"}
    return door


async def started(door: Portal, cwd: Path, name: str = "main") -> str:
    ident: str = (await door(f"copilot/job/start/{name}", f"{cwd}\r\nsome\ninput"))["jobId"]
    return ident


# -- entries ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["task", "job", "job/start/x", "task/start/x/session/y"])
async def test_before_an_entry_is_installed(door: Portal, path: str) -> None:
    answer = await door.client.get(f"/api/copilot/{path}")
    assert (answer.status_code, answer.json()) == (500, {"error": "Error: installJobsEntry has not been called."})


async def test_where_an_entry_may_lie(door: Portal, tmp_path: Path) -> None:
    outside = tmp_path / "entry.json"
    outside.write_bytes(to_json(make(TASKS)))
    (tmp_path / "test").mkdir()
    (tmp_path / "test/link.json").symlink_to(outside)
    for body in (
        "",
        "entry.json",
        str(outside),
        f"{tmp_path}/test/../entry.json",
        f"{tmp_path}/test/link.json",
        "/x\0",
    ):
        answer = await door("copilot/test/installJobsEntry", body)
        assert answer["result"] == "InvalidatePath"
        assert answer["error"].startswith(repr(body)), "the answer says why"
    assert (await install(door, tmp_path, b"{ not json"))["result"] == "InvalidatePath"


async def test_a_wrong_entry_is_named(door: Portal, tmp_path: Path) -> None:
    assert await install(door, tmp_path, b"{}") == {
        "result": "InvalidateEntry",
        "error": "testEntryentry.models.driving: Should exist.",
    }


async def test_a_refused_entry_leaves_the_old_one(busy: Portal, tmp_path: Path) -> None:
    await busy.session(tmp_path)
    answer = await install(busy, tmp_path, make({"other": ok()}))
    assert answer == {"result": "Rejected", "error": "Cannot call installJobsEntry while sessions are running."}
    assert "ok" in [each["name"] for each in (await busy("copilot/task"))["tasks"]]


async def test_an_entry_with_an_unknown_model(door: Portal, tmp_path: Path) -> None:
    entry = to_json(make(TASKS)).replace(b'"coding": "gpt-5.2"', b'"coding": "gpt-9"')
    answer = await install(door, tmp_path, entry)
    assert answer["result"] == "Rejected"
    assert answer["error"].startswith('entry.models.coding: "gpt-9"')
    assert "Available models:\n- GPT-5 mini (gpt-5-mini)" in answer["error"]


async def test_outside_test_mode_there_is_no_install(open_portal: Opener) -> None:
    door = await open_portal(test=False)
    assert (await door.client.post("/api/copilot/test/installJobsEntry")).status_code == 404


async def test_lists(busy: Portal) -> None:
    tasks = (await busy("copilot/task"))["tasks"]
    assert tasks[0] == {"name": "ok", "requireUserInput": False}
    listing = await busy("copilot/job")
    assert sorted(listing) == ["chart", "grid", "jobs"]
    assert listing["jobs"]["main"]["requireUserInput"] is True
    assert listing["chart"]["main"]["nodes"][0]["hint"] == ["TaskNode", 0]
    old = await busy("copilot/job?level=000")
    assert [job["name"] for job in old["jobs"]] == ["main"]


async def test_the_level_is_an_option(open_portal: Opener, tmp_path: Path) -> None:
    door = await open_portal(api_level="000")
    await install(door, tmp_path, make(TASKS))
    assert isinstance((await door("copilot/job"))["jobs"], list)
    assert isinstance((await door("copilot/job?level=latest"))["jobs"], dict)
    wrong = await door.client.get("/api/copilot/job?level=002")
    assert (wrong.status_code, wrong.json()["error"]) == (400, "'level' is '000' or 'latest', not '002'.")


# -- entries and calls of stage 000 ----------------------------------------------------------------------------


async def test_the_printed_names_of_an_old_entry_are_there_at_level_000(open_portal: Opener, tmp_path: Path) -> None:
    door = await open_portal(api_level="000")
    old = old_entry(models={"driving": "gpt-5-mini", "coding": "gpt-5.2", "reviewers": []}, colour="red")
    assert await install(door, tmp_path, msgspec.json.encode(old)) == {"result": "OK"}
    (job,) = (await door("copilot/job"))["jobs"]
    assert (job["name"], job["printedName"]) == ("main", "Main")
    assert await install(door, tmp_path, make(TASKS)) == {"result": "OK"}
    (job,) = (await door("copilot/job"))["jobs"]
    assert (job["name"], job["printedName"]) == ("main", "main"), "an entry of today names its jobs once"


async def test_unknown_keys_are_refused_at_the_latest_level_only(open_portal: Opener, tmp_path: Path) -> None:
    entry = {**msgspec.json.decode(to_json(make(TASKS))), "colour": "red"}
    for level, result in (("latest", "InvalidateEntry"), ("000", "OK")):
        door = await open_portal(api_level=level)
        assert (await install(door, tmp_path, msgspec.json.encode(entry)))["result"] == result


async def test_a_finished_borrowed_task_is_gone_at_level_000(open_portal: Opener, tmp_path: Path) -> None:
    for level, error in (("latest", "TaskCannotClose"), ("000", "TaskNotFound")):
        door = await open_portal(api_level=level)
        assert (await install(door, tmp_path, make(TASKS)))["result"] == "OK"
        session = await door.session(tmp_path)
        task = (await door(f"copilot/task/start/ok/session/{session}"))["taskId"]
        await door.until("task", task, "taskSucceeded")
        assert await door(f"copilot/task/{task}/stop") == {"error": error}
        hanging = (await door(f"copilot/task/start/hang/session/{session}"))["taskId"]
        assert await door(f"copilot/task/{hanging}/stop") == {"error": "TaskCannotClose"}
        await door(f"copilot/session/{session}/stop")


# -- tasks in a busy session -----------------------------------------------------------------------------------


async def test_a_task_keeps_its_place_before_a_later_query(busy: Portal, tmp_path: Path) -> None:
    """It waited for an idle session, so everything that was sent after it went first."""
    session = await busy.session(tmp_path)
    await busy(f"copilot/session/{session}/query", "[[hang]]")
    task = (await busy(f"copilot/task/start/ok/session/{session}"))["taskId"]
    await busy(f"copilot/session/{session}/query", "[[say:late]]")
    found = await busy.host.get(session)
    assert [each.by for each in found.state.queue] == [f"task:{task}", "token:owner"]
    await found.cancel(by="test")
    await found.queue.release(by="test")
    await busy.until("task", task, "taskSucceeded")
    await found.wait_until(lambda state: len(state.turns) == 3 and state.active is None)
    assert [turn.by for turn in found.state.turns] == ["token:owner", f"task:{task}", "token:owner"]


async def test_a_task_that_waits_ends_with_its_session_or_its_prompt(busy: Portal, tmp_path: Path) -> None:
    session = await busy.session(tmp_path)
    await busy(f"copilot/session/{session}/query", "[[hang]]")
    task = (await busy(f"copilot/task/start/ok/session/{session}"))["taskId"]
    found = await busy.host.get(session)
    await found.queue.remove(found.state.queue[0].id, by="a person")
    elements = await busy.until("task", task, "taskFailed")
    assert "was removed" in str(elements)
    waiting = (await busy(f"copilot/task/start/ok/session/{session}"))["taskId"]
    await busy.jobs.stop_task(waiting)
    assert found.state.queue == []


async def test_a_restart_withdraws_the_prompt_of_a_task_that_waited(open_portal: Opener, tmp_path: Path) -> None:
    door = await open_portal()
    assert (await install(door, tmp_path, make(TASKS)))["result"] == "OK"
    session = await door.session(tmp_path)
    await door(f"copilot/session/{session}/query", "[[hang]]")
    task = (await door(f"copilot/task/start/ok/session/{session}"))["taskId"]
    door = await open_portal()
    await door.jobs.recover()
    assert (await door.host.get(session)).state.queue == []
    assert (await door.jobs.task(task)).ended is not None


# -- jobs ------------------------------------------------------------------------------------------------------


async def test_a_job(busy: Portal, tmp_path: Path) -> None:
    job = await started(busy, tmp_path)
    elements = await busy.until("job", job, "jobSucceeded")
    assert elements == [
        {"callback": "workStarted", "workId": 0, "taskId": "task-1"},
        {"callback": "workStopped", "workId": 0, "succeeded": True},
        {"callback": "workStarted", "workId": 1, "taskId": "task-2"},
        {"callback": "workStopped", "workId": 1, "succeeded": True},
        {"callback": "jobSucceeded"},
    ]
    assert await busy(f"copilot/job/{job}/live/k") == {"error": "JobsClosed"}
    assert await busy(f"copilot/job/{job}/live/k") == {"error": "JobNotFound"}
    told = await busy.until("task", "task-2", "taskSucceeded")
    assert told[0] == {"callback": "taskSessionStarted", "sessionId": "session-2", "isDriving": True}
    said = (await busy("copilot/session/session-2/live/k"))["responses"]
    assert said[0] == {"callback": "onGeneratedUserPrompt", "prompt": "[[say:some\ninput]]"}
    status = await busy(f"copilot/job/{job}/status")
    assert status["status"] == "Succeeded"
    assert status["tasks"] == [
        {"workIdInJob": 0, "status": "Succeeded"},
        {"workIdInJob": 1, "status": "Succeeded"},
    ]


async def test_a_running_job_is_stopped(door: Portal, tmp_path: Path) -> None:
    await install(door, tmp_path, make(TASKS, par(ref("hang"), ref("hang"))))
    job = await started(door, tmp_path)
    found: list[dict[str, Any]] = []
    while len(found) < 2:
        found += (await door(f"copilot/job/{job}/live/k"))["responses"]
    status = await door(f"copilot/job/{job}/status")
    assert status["tasks"] == [
        {"workIdInJob": 0, "status": "Running", "taskId": "task-1"},
        {"workIdInJob": 1, "status": "Running", "taskId": "task-2"},
    ]
    assert await door(f"copilot/job/{job}/stop") == {"result": "Closed"}
    assert await door(f"copilot/job/{job}/stop") == {"result": "Closed"}
    rest = await door.until("job", job, "jobCanceled")
    assert sorted(element.get("workId", 9) for element in rest) == [0, 1, 9]
    [listed] = (await door("copilot/job/running"))["jobs"]
    assert {**listed, "startTime": ""} == {"jobId": job, "jobName": "main", "startTime": "", "status": "Canceled"}


async def test_a_crash_is_told_after_the_failure(door: Portal, tmp_path: Path) -> None:
    await install(door, tmp_path, make(TASKS, ref("crash")))
    job = await started(door, tmp_path)
    elements = await door.until("job", job, "jobFailed")
    assert [*elements[-1]] == ["jobError"]
    assert "stub crash" in elements[-1]["jobError"]


@pytest.mark.parametrize(
    ("name", "body", "error"),
    [
        ("other", "relative", "JobNotFound"),
        ("main", "", "WorkingDirectoryNotAbsolutePath"),
        ("main", "relative\ninput", "WorkingDirectoryNotAbsolutePath"),
        ("main", "/no/such/folder", "WorkingDirectoryNotExists"),
        ("main", __file__, "WorkingDirectoryNotExists"),
        ("main", "C:\\Code", "WorkingDirectoryNotExists"),
    ],
)
async def test_a_job_that_cannot_start(busy: Portal, name: str, body: str, error: str) -> None:
    assert await busy(f"copilot/job/start/{name}", body) == {"error": error}


async def test_a_missing_model_is_named(door: Portal, tmp_path: Path) -> None:
    await install(door, tmp_path, make({"far": ok(model={"id": "gpt-9"})}))
    answer = await door("copilot/job/start/main", str(tmp_path))
    assert '"gpt-9" is not an available model id.\nAvailable models:' in answer["error"]


@pytest.mark.parametrize("path", ["status", "stop", "live/k", "live"])
async def test_an_unknown_job(busy: Portal, path: str) -> None:
    assert await busy(f"copilot/job/job-9/{path}") == {"error": "JobNotFound"}


async def test_an_hour_after_its_end_a_job_is_history(open_portal: Opener, tmp_path: Path, clock: FakeClock) -> None:
    door = await open_portal(clock=clock)
    await install(door, tmp_path, make(TASKS))
    job = await started(door, tmp_path)
    await door.until("job", job, "jobSucceeded")
    clock.advance(6)
    assert await door(f"copilot/job/{job}/live/late") == {"error": "JobNotFound"}
    clock.advance(3590)
    assert [each["jobId"] for each in (await door("copilot/job/running"))["jobs"]] == [job]
    clock.advance(10)
    assert await door("copilot/job/running") == {"jobs": []}
    assert await door(f"copilot/job/{job}/status") == {"error": "JobNotFound"}
    assert [each.id for each in door.jobs.history()] == [job]


# -- tasks -----------------------------------------------------------------------------------------------------


async def test_a_borrowing_task(busy: Portal, tmp_path: Path) -> None:
    session = await busy.session(tmp_path)
    ident = (await busy(f"copilot/task/start/ask/session/{session}", "hello"))["taskId"]
    assert await busy(f"copilot/task/{ident}/stop") == {"error": "TaskCannotClose"}
    elements = await busy.until("task", ident, "taskSucceeded")
    assert elements[0] == {"callback": "taskDecision", "reason": "[TASK SUCCEEDED] Decision: task succeeded"}
    assert await busy(f"copilot/task/{ident}/live/k") == {"error": "TaskClosed"}
    assert await busy(f"copilot/task/{ident}/live/k") == {"error": "TaskNotFound"}
    said = await busy.until("session", session, "onIdle")
    assert said[0] == {"callback": "onGeneratedUserPrompt", "prompt": "[[say:hello]]"}
    assert await busy(f"copilot/session/{session}/query", "[[say:still here]]") == {}


async def test_tasks_that_cannot_start(busy: Portal, tmp_path: Path) -> None:
    assert await busy("copilot/task/start/nothing/session/session-9") == {"error": "SessionNotFound"}
    session = await busy.session(tmp_path)
    answer = await busy(f"copilot/task/start/nothing/session/{session}")
    assert "no task 'nothing'" in answer["taskError"]
    assert await busy("copilot/task/task-9/stop") == {"error": "TaskNotFound"}
    assert await busy("copilot/task/task-9/live/k") == {"error": "TaskNotFound"}


async def test_a_session_that_was_stopped_runs_no_task(busy: Portal, tmp_path: Path) -> None:
    session = await busy.session(tmp_path)
    await busy(f"copilot/session/{session}/stop")
    assert await busy(f"copilot/task/start/ok/session/{session}") == {"error": "SessionNotFound"}


async def test_names_are_decoded(busy: Portal, tmp_path: Path) -> None:
    session = await busy.session(tmp_path)
    assert "taskId" in await busy(f"copilot/task/start/a%20b%2Fc/session/{session}")


async def test_a_task_of_a_job_is_stopped(door: Portal, tmp_path: Path) -> None:
    await install(door, tmp_path, make(TASKS, ref("hang")))
    job = await started(door, tmp_path)
    await door.until("job", job, "workStarted")
    assert await door("copilot/task/task-1/stop") == {"result": "Closed"}
    rest = await door.until("job", job, "jobFailed")
    assert rest == [{"callback": "workStopped", "workId": 0, "succeeded": False}, {"callback": "jobFailed"}]


async def test_one_element_after_the_other_without_a_token(busy: Portal, tmp_path: Path) -> None:
    job = await started(busy, tmp_path)
    names = [(await busy(f"copilot/job/{job}/live"))["callback"] for _ in range(5)]
    assert names == ["workStarted", "workStopped", "workStarted", "workStopped", "jobSucceeded"]
    assert await busy(f"copilot/job/{job}/live") == {"error": "JobNotFound"}
    assert await busy("copilot/task/task-1/live") == {"callback": "taskSessionStarted"}


async def test_without_a_token_a_stop_is_the_end(door: Portal, tmp_path: Path) -> None:
    await install(door, tmp_path, make(TASKS, par(ref("hang"), ref("hang"))))
    job = await started(door, tmp_path)
    works = [await door(f"copilot/job/{job}/live") for _ in range(2)]
    assert [work["callback"] for work in works] == ["workStarted", "workStarted"]
    waiting = asyncio.ensure_future(door(f"copilot/job/{job}/live"))
    await door("copilot/task/task-1/live")
    await door(f"copilot/job/{job}/stop")
    assert await waiting == {"error": "JobNotFound"}
    assert await door(f"copilot/job/{job}/live") == {"error": "JobNotFound"}
    assert await door("copilot/task/task-1/live") == {"error": "TaskNotFound"}


async def test_many_jobs_at_once(door: Portal, tmp_path: Path) -> None:
    await install(door, tmp_path, make(TASKS))
    jobs = await asyncio.gather(*(started(door, tmp_path) for _ in range(50)))
    assert len(set(jobs)) == 50
    await asyncio.gather(*(door.until("job", job, "jobSucceeded") for job in jobs))
