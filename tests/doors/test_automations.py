"""Automations over HTTP: made, listed, changed and deleted; a mistake names its field."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.automation.playing import until
from tests.doors.standing import Standing, problem, standing

PROMPT = {"text": "[[say:ok]]", "agent": "scripted"}
PLAN = {"schedule": {"cron": "0 7 * * 1-5", "zone": "Europe/Berlin"}, "prompt": PROMPT}


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Standing]:
    async with standing(tmp_path) as here:
        yield here


async def test_a_whole_life(here: Standing) -> None:
    made = await here.http.post("/v1/automations", json={"name": "morning", "plan": PLAN})
    ident = made.json()["automation"]
    assert (made.status_code, made.json()) == (201, {"automation": ident})
    shown = (await here.http.get("/v1/automations/morning")).json()
    assert (shown["id"], shown["when"]) == (ident, "At 07:00 on Monday through Friday (Europe/Berlin)")
    assert len(shown["next"]) == 3
    (listed,) = (await here.http.get("/v1/automations")).json()["automations"]
    assert listed["next"] == shown["next"][:1]
    run = (await here.http.post("/v1/automations/morning/run", json={})).json()["run"]
    await until(here.server.automations, lambda runs: not runs[0].open)
    found = (await here.http.get(f"/v1/runs/{run}")).json()
    assert (found["status"], found["by"], found["automation"]) == ("succeeded", "token:owner", ident)
    for path in ("/v1/automations/morning/runs", "/v1/runs?limit=1"):
        assert (await here.http.get(path)).json() == {"runs": [found]}
    events = (await here.http.get("/v1/events", params={"channel": f"run/{run}"})).json()["events"]
    assert [each["event"]["type"] for each in events] == ["run.claimed", "run.started", "run.ended"]
    edited = await here.http.patch(f"/v1/automations/{ident}", json={"name": "evening"})
    assert edited.json() == {"automation": ident}
    assert (await here.http.post("/v1/automations/evening/pause", json={})).status_code == 200
    assert (await here.http.get("/v1/automations/evening")).json()["reason"] == "Paused by token:owner."
    assert (await here.http.post("/v1/automations/evening/resume", json={})).status_code == 200
    assert (await here.http.delete("/v1/automations/evening")).status_code == 204
    problem(await here.http.get("/v1/automations/evening"), 404, "not_found")


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({}, "job"),
    ({"prompt": PROMPT, "job": {"job": "x"}}, "prompt"),
    ({"prompt": PROMPT, "schedule": {"every": "1h"}, "hook": {}}, "hook"),
    ({"prompt": PROMPT, "schedule": {"cron": "x"}}, "schedule.cron"),
    ({"prompt": PROMPT, "schedule": {"cron": "0 0 31 2 *"}}, "schedule.cron"),
    ({"prompt": PROMPT, "schedule": {"cron": "@daily", "zone": "Nowhere"}}, "schedule.zone"),
    ({"prompt": PROMPT, "schedule": {"at": "2001-01-01"}}, "schedule.at"),
    ({"prompt": PROMPT, "stop_at": "soon"}, "stop_at"),
    ({"prompt": PROMPT, "parallel": 0}, "parallel"),
    ({"prompt": PROMPT, "keep_days": 100_000}, "keep_days"),
    ({"prompt": {"text": " "}}, "prompt.text"),
    ({"prompt": {"text": "x", "agent": "nosuch"}}, "prompt.agent"),
    ({"prompt": {"text": "x", "cwd": "/no/such/folder"}}, "prompt.cwd"),
    ({"job": {"job": "nosuch"}}, "job.job"),
    ({"prompt": PROMPT, "after": {}}, "after"),
    ({"prompt": PROMPT, "after": {"automation": "loop"}}, "after.automation"),
    ({"prompt": PROMPT, "files": {"folder": "/no/such"}}, "files.folder"),
    ({"prompt": PROMPT, "files": {"folder": "/tmp", "globs": ["../x"]}}, "files.globs"),
    ({"prompt": PROMPT, "files": {"folder": "/tmp", "quiet": 0}}, "files.quiet"),
    ({"prompt": PROMPT, "hook": {"per_minute": 0}}, "hook.per_minute"),
    ({"prompt": PROMPT, "hook": {"filter": [{"pointer": "x", "equals": 1}]}}, "hook.filter[0].pointer"),
    ({"prompt": PROMPT, "hook": {"filter": [{"pointer": "/x"}]}}, "hook.filter[0]"),
    ({"prompt": PROMPT, "hook": {"filter": [{"pointer": "/x", "matches": "("}]}}, "hook.filter[0].matches"),
]


async def test_a_mistake_names_its_field(here: Standing) -> None:
    for plan, field in MISTAKES:
        answer = await here.http.post("/v1/automations", json={"name": "loop", "plan": plan})
        assert (answer.status_code, answer.json().get("field")) == (400, field), (plan, answer.text)
        if plan.get("after", {}).get("automation") != "loop":
            checked = await here.http.post("/v1/automations/check", json=plan)
            assert (checked.status_code, checked.json().get("field")) == (400, field), plan
    for name in ("Big", "a b", "-a", "a" * 65, "", "a/b"):
        answer = await here.http.post("/v1/automations", json={"name": name, "plan": PLAN})
        problem(answer, 400, "bad_request", "name")
    unknown = await here.http.post("/v1/automations", json={"name": "x", "plan": {**PLAN, "corn": 1}})
    problem(unknown, 400, "bad_request", "plan.corn")
    assert (await here.http.get("/v1/automations")).json() == {"automations": []}


async def test_the_same_key_makes_one_and_shows_its_secret_once(here: Standing) -> None:
    body = {"name": "hook", "plan": {"hook": {}, "prompt": PROMPT}}
    answers = [
        (await here.http.post("/v1/automations", json=body, headers={"Idempotency-Key": "k"})).json() for _ in range(2)
    ]
    assert answers[0]["secret"].startswith("whsec_")
    assert answers[1] == {"automation": answers[0]["automation"]}
