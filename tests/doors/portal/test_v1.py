"""Jobs in the host's own words."""

from pathlib import Path
from typing import Any

import msgspec

from tests.doors.portal.conftest import Portal
from tests.jobs.playing import failing, make, ok, task, until_ended
from tests.jobs.samples import ref, seq


async def call(door: Portal, method: str, path: str, body: Any = None, status: int = 200) -> Any:
    answer = await door.client.request(method, f"/v1/jobs{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def test_a_job_with_an_entry_of_its_own(door: Portal, tmp_path: Path) -> None:
    plan = msgspec.to_builtins(make({"ok": ok(), "no": failing()}, seq(ref("ok"), ref("no"))))
    body = {"job": "main", "cwd": str(tmp_path), "entry": plan}
    job = (await call(door, "POST", "", body, 201))["job"]
    await until_ended(door.host.log, f"job/{job}")
    shown = await call(door, "GET", f"/{job}")
    assert (shown["status"], [work["status"] for work in shown["works"]]) == ("failed", ["succeeded", "failed"])
    assert list(shown["entry"]["tasks"]) == ["ok", "no"]
    again = (await call(door, "POST", f"/{job}/resume", status=202))["job"]
    await until_ended(door.host.log, f"job/{again}")
    third = (await call(door, "POST", f"/{job}/retry", status=202))["job"]
    await until_ended(door.host.log, f"job/{third}")
    listed = (await call(door, "GET", ""))["jobs"]
    assert [(each["id"], each.get("origin")) for each in listed] == [(job, None), (again, job), (third, job)]
    assert [len(each["works"]) for each in listed] == [2, 1, 2]


async def test_a_stop(door: Portal, tmp_path: Path) -> None:
    plan = msgspec.to_builtins(make({"hang": task("[[hang]]")}))
    job = (await call(door, "POST", "", {"job": "main", "cwd": str(tmp_path), "entry": plan}, 201))["job"]
    await call(door, "POST", f"/{job}/stop")
    assert (await call(door, "GET", f"/{job}"))["status"] == "canceled"
    assert (await call(door, "POST", f"/{job}/stop")) == {}


async def test_what_is_wrong_is_said(door: Portal, tmp_path: Path) -> None:
    assert (await call(door, "GET", "/job-9", status=404))["code"] == "not_found"
    wrong = {"job": "main", "cwd": str(tmp_path), "entry": {}}
    assert (await call(door, "POST", "", wrong, 400))["error"] == "entry.models.driving: Should exist."
    assert (await call(door, "POST", "", {"job": "main"}, 400))["field"] == "cwd"
    asking = msgspec.to_builtins(make({"ask": task("[[say:$user-input]]")}))
    refused = await call(door, "POST", "", {"job": "main", "cwd": str(tmp_path), "entry": asking}, 400)
    assert (refused["error"], refused["field"]) == (
        "The job 'main' needs input from its user. Give it as 'input' (--input on the command line).",
        "input",
    )


async def test_a_job_has_the_chart_of_its_own_entry_and_not_of_the_hosts(door: Portal, tmp_path: Path) -> None:
    """`portico run haiku` brings an entry that the host does not have: its page said "not found"."""
    await door.jobs.install(make({"other": ok()}))
    plan = msgspec.to_builtins(make({"alone": ok()}, ref("alone")))
    job = (await call(door, "POST", "", {"job": "main", "cwd": str(tmp_path), "entry": plan}, 201))["job"]
    shown = await call(door, "GET", f"/{job}")
    assert [node["label"] for node in shown["chart"]["nodes"]] == ["alone"]
    current = (await door.client.get("/v1/entry")).json()
    assert set(current["chart"]) == set(current["entry"]["jobs"])
    assert "alone" not in current["entry"]["tasks"]
    await until_ended(door.host.log, f"job/{job}")


async def test_an_entry_is_checked_and_drawn_before_it_runs(door: Portal) -> None:
    plan = msgspec.json.encode(make({"ask": task("[[say:$user-input]]")})).decode()

    async def check(**body: Any) -> Any:
        return (await door.client.post("/v1/entry/check", json=body)).json()

    good = await check(text=plan)
    assert (list(good["chart"]), good["inputs"]) == (["main"], ["main"])
    wrong = await check(text='{"models": {}}')
    assert (wrong["path"], wrong["mistake"]) == ("entry.models.driving", "Should exist.")
    assert "Is not valid JSON" in (await check(text="{"))["mistake"]
    assert "Is not valid YAML" in (await check(text="a: [", syntax="yaml"))["mistake"]


async def test_a_hook(door: Portal, tmp_path: Path) -> None:
    await door.jobs.install(make({"ok": ok()}, {"kind": "Wait", "hook": "ready"}))
    job = (await call(door, "POST", "", {"job": "main", "cwd": str(tmp_path)}, 201))["job"]
    assert "There are: 'ready'" in (await call(door, "POST", f"/{job}/hooks/other", {}, 404))["error"]
    await call(door, "POST", f"/{job}/hooks/ready", {})
    await door.until("job", job, "jobSucceeded")
    assert (await call(door, "POST", f"/{job}/hooks/ready", {}, 409))["code"] == "conflict"
