"""What clients of a task and of its job read, element by element, prompt by prompt: wire.json has it for every course
that a task can take. `PORTICO_GOLDEN=write` writes the file anew; read the difference before you keep it."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from portico.testing.clock import FakeClock
from tests.doors.portal.conftest import Opener, Portal
from tests.doors.portal.test_work import install
from tests.jobs.playing import NO, YES, Data, crashing, make, ok, task

GOLDEN = Path(__file__).parent / "golden/wire.json"
TOOL = "job_prepare_document"


def checked(retries: int = 1, extra: str | None = None, **more: Any) -> Data:
    prompt = {} if extra is None else {"additionalPrompt": [extra]}
    return {"criteria": {"failureAction": {"retryTimes": retries, **prompt}, **more}}


def judged(condition: str, same: bool, **more: Any) -> Data:
    return checked(condition=[f"job_boolean_true? {condition}"], runConditionInSameSession=same, **more)


TASKS: dict[str, Data] = {
    "succeeds": ok(),
    "uses its variables": task("[[say:$user-input]] by $task-model, $reported-document"),
    "misses a tool": task(**checked(toolExecuted=[TOOL], extra="Why? $reported-false-reason")),
    "fails its condition": task(**judged(NO, True, extra="You said: $reported-false-reason")),
    "passes on the second try": task(
        **judged("[[before:k|1|job_boolean_false|bad]] [[after:k|1|job_boolean_true|good]]", True, retries=3)
    ),
    "is judged by another session": task(
        f"[[tool:{TOOL}|/a/b \nmore]]",
        availability={"condition": [YES, "job_boolean_true"]},
        **judged(f"$reported-document: {YES}", False, toolExecuted=[TOOL]),
    ),
    "fails before another session": task(**judged(NO, False, toolExecuted=[TOOL], extra="$reported-false-reason")),
    "is not available": task(availability={"condition": [NO, "job_boolean_true"]}),
    "lacks a prerequisite": task(
        availability={"condition": ["[[tool:job_prerequisite_failed|no git]] [[tool:job_boolean_true|x]]"]}
    ),
    "crashes": crashing(),
    "crashes twice": task("[[crashn:k|2]] [[say:at last]]"),
    "is judged by one that crashes": task(**judged(f"[[crashn:k|2]] {YES}", False)),
    "is judged by itself and crashes": task(**judged(f"[[crash]] {YES}", True)),
    "crashes in a retry": task(**checked(toolExecuted=[TOOL], extra="[[crash]]")),
}


async def told(door: Portal, kind: str, ident: str) -> list[Data]:
    found: list[Data] = []
    while "responses" in (answer := await door(f"copilot/{kind}/{ident}/live/k")):
        found += answer["responses"]
    assert answer == {"error": {"job": "JobsClosed", "task": "TaskClosed", "session": "SessionClosed"}[kind]}
    return found


async def told_of_old(door: Portal, ident: str) -> list[Data]:
    """In the words of 000: one after the other, to the end."""
    found: list[Data] = []
    while "error" not in (element := await door(f"copilot/task/{ident}/live")):
        found.append(element)
    assert element == {"error": "TaskNotFound"}
    return found


async def managed(door: Portal, tmp_path: Path) -> Any:
    job = (await door("copilot/job/start/main", f"{tmp_path}\nsome input"))["jobId"]
    elements, tasks = await told(door, "job", job), await told(door, "task", "task-1")
    prompts = {}
    for session in [each["sessionId"] for each in tasks if each.get("callback") == "taskSessionStarted"]:
        sent = await told(door, "session", session)
        prompts[session] = [each["prompt"] for each in sent if each.get("callback") == "onGeneratedUserPrompt"]
    status = {**await door(f"copilot/job/{job}/status"), "startTime": ""}
    old = await told_of_old(door, "task-1")
    return {"job": elements, "status": status, "task": tasks, "prompts": prompts, "000": old}


async def borrowing(door: Portal, tmp_path: Path, name: str) -> Any:
    session = await door.session(tmp_path)
    ident = (await door(f"copilot/task/start/{name}/session/{session}", "some input"))["taskId"]
    elements = await told(door, "task", ident)
    sent = (await door(f"copilot/session/{session}/live/k"))["responses"]
    prompts = [each["prompt"] for each in sent if each.get("callback") == "onGeneratedUserPrompt"]
    return {"task": elements, "prompts": prompts, "000": await told_of_old(door, ident)}


@pytest.mark.parametrize("borrowed", [False, True], ids=["in a job", "in a session"])
@pytest.mark.parametrize("name", TASKS)
async def test_the_wire(open_portal: Opener, clock: FakeClock, tmp_path: Path, name: str, borrowed: bool) -> None:
    door = await open_portal(clock=clock)  # it stands still: what is closed stays readable
    assert await install(door, tmp_path, make({name: TASKS[name]})) == {"result": "OK"}
    found = await (borrowing(door, tmp_path, name) if borrowed else managed(door, tmp_path))
    place = "in a session" if borrowed else "in a job"
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if os.environ.get("PORTICO_GOLDEN") == "write":
        golden.setdefault(name, {})[place] = found
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(re.sub(r"\n {5,}|\n {4}(?=\})", " ", json.dumps(golden, indent=1)) + "\n")
    assert found == golden[name][place]
