"""What `portico automations` prints, and the plan that it makes of its options."""

import json
from typing import Any

import pytest

from portico.cli.output import when
from portico.features.automations.events import AutomationPlan, PromptAction, Schedule
from portico.features.automations.listing import AutomationInfo
from portico.features.automations.state import MissedTimes, RunSummary
from tests.cli.fake_host import FakeHost

AT = 1_800_000_000_000


def automation(**fields: Any) -> AutomationInfo:
    plan = AutomationPlan(schedule=Schedule(every="1h"), prompt=PromptAction(text="look"))
    given = {"trigger": "schedule", "enabled": True, "by": "me", "source": "door", "created": AT, "modified": AT}
    return AutomationInfo(**{"id": "a-1", "name": "morning", "plan": plan, "when": "every 1h", **given, **fields})


def ran(**fields: Any) -> RunSummary:
    given = {"automation": "a-1", "name": "morning", "cause": "schedule", "due": AT, "claimed": AT, "by": "automation"}
    return RunSummary(**{"id": "run-1", **given, **fields})


@pytest.mark.parametrize(
    ("of", "row"),
    [
        (automation(), ["morning", "on", "every 1h", "", ""]),
        (automation(next=[AT, AT + 1]), ["morning", "on", "every 1h", when(AT), ""]),
        (automation(enabled=False), ["morning", "paused", "every 1h", "", ""]),
        (automation(enabled=False, reason="it failed"), ["morning", "paused: it failed", "every 1h", "", ""]),
        (automation(last=ran(status="failed")), ["morning", "on", "every 1h", "", f"failed {when(AT)}"]),
    ],
    ids=["on", "with its next time", "paused", "paused for a reason", "with its last run"],
)
def test_an_automation_in_the_list(fake: FakeHost, of: AutomationInfo, row: list[str]) -> None:
    fake.answers["GET /v1/automations"] = {"automations": [of]}
    assert fake.run("automations", "list").rows == [row]


def test_a_broken_file_of_automations_is_told_first(fake: FakeHost) -> None:
    fake.answers["GET /v1/automations"] = {"automations": [], "file_error": "line 3: no"}
    assert fake.run("automations", "list").out == "automations.toml: line 3: no\n"


def test_one_automation(fake: FakeHost) -> None:
    fake.answers["GET /v1/automations/morning"] = automation(enabled=False, reason="by hand", next=[AT])
    first, starts, due, last, written, *plan = fake.run("automations", "show", "morning").out.splitlines()
    assert (first, starts) == ("morning (a-1): paused by hand", "starts: every 1h")
    assert (due, last, written) == (f"next: {when(AT)}", "last: no run yet", "written by me (door)")
    assert json.loads("".join(plan))["prompt"]["text"] == "look"


@pytest.mark.parametrize(
    ("of", "row"),
    [
        (ran(), ["run-1", "morning", when(AT), "schedule", "pending", "", "", ""]),
        (
            ran(status="succeeded", session="session-1", input=10, output=5, cost=0.5),
            ["run-1", "morning", when(AT), "schedule", "succeeded", "session-1", "15 tokens, $0.50", ""],
        ),
        (
            ran(status="failed", job="job-1", reason="it\n  broke"),
            ["run-1", "morning", when(AT), "schedule", "failed", "job-1", "", "it broke"],
        ),
    ],
    ids=["pending", "succeeded", "failed"],
)
def test_a_run_in_the_history(fake: FakeHost, of: RunSummary, row: list[str]) -> None:
    fake.answers["GET /v1/automations/morning/runs"] = {"runs": [of]}
    assert fake.run("automations", "history", "morning").rows == [row]


def test_the_history_of_all_stands_newest_first_with_what_was_missed(fake: FakeHost) -> None:
    missed = MissedTimes(2, AT + 5, AT + 9, "the host was off")
    fake.answers["GET /v1/automations/morning/runs"] = {
        "runs": [ran(), ran(id="run-2", due=AT + 20)],
        "missed": [missed],
    }
    rows = fake.run("automations", "history", "morning", "--limit", "7").rows
    assert fake.asked[0].path == "/v1/automations/morning/runs?limit=7"
    assert [(row[0], row[4]) for row in rows] == [("run-2", "pending"), ("", "missed 2"), ("run-1", "pending")]
    fake.answers["GET /v1/runs"] = {"runs": []}
    assert fake.run("automations", "history").err == "No runs yet.\n"


ORDERS = {
    "pause": ("POST /v1/automations/morning/pause", "morning is paused"),
    "resume": ("POST /v1/automations/morning/resume", "morning goes on"),
    "delete": ("DELETE /v1/automations/morning", "morning is deleted"),
}


@pytest.mark.parametrize("verb", ORDERS)
def test_what_is_done_to_an_automation(fake: FakeHost, verb: str) -> None:
    route, words = ORDERS[verb]
    fake.answers[route] = {"automation": "a-1", "name": "morning"}
    assert fake.run("automations", verb, "morning").out == f"{words}\n"
    assert f"{fake.asked[0].method} {fake.asked[0].path}" == route


def test_a_new_hook_shows_its_address_and_its_secret_once(fake: FakeHost) -> None:
    fake.answers["POST /v1/automations"] = {"automation": "a-1", "secret": "whsec_x"}
    fake.answers["GET /v1/automations/on-push"] = automation(name="on-push", when="when called")
    done = fake.run("automations", "add", "on-push", "--hook", "--prompt", "look")
    assert done.out.splitlines() == [
        "on-push (a-1): when called",
        "address: http://host.example/hooks/on-push",
        "secret, shown this once: whsec_x",
    ]
    assert fake.asked[0].body == {"name": "on-push", "plan": {"hook": {}, "prompt": {"text": "look"}}}


PLANS: dict[str, tuple[list[str], Any]] = {
    "a schedule": (["--cron", "@daily"], {"schedule": {"cron": "@daily", "zone": "UTC"}}),
    "in a zone": (
        ["--at", "2027-01-31T09:00", "--zone", "Europe/Berlin"],
        {"schedule": {"at": "2027-01-31T09:00", "zone": "Europe/Berlin"}},
    ),
    "files": (["--files", "/w", "--glob", "*.csv"], {"files": {"folder": "/w", "globs": ["*.csv"]}}),
    "after another": (["--after", "x", "--outcome", "failed"], {"after": {"automation": "x", "outcomes": ["failed"]}}),
    "after a job": (["--after-job", "j"], {"after": {"job": "j"}}),
    "a job": (["--job", "j", "--input", "i", "--cwd", "/w"], {"job": {"job": "j", "input": "i", "cwd": "/w"}}),
    "a prompt": (
        ["--prompt", "p", "--agent", "a", "--model", "m", "--worktree"],
        {"prompt": {"text": "p", "agent": "a", "model": "m", "worktree": True}},
    ),
    "a budget": (["--budget", "0.5"], {"budget": {"dollars": 0.5}}),
    "rules": (
        ["--set", "overlap=queue", "--set", "keep_days=7", "--set", "prompt.config.mode=plan"],
        {"overlap": "queue", "keep_days": 7, "prompt": {"config": {"mode": "plan"}}},
    ),
}


@pytest.mark.parametrize(("args", "plan"), PLANS.values(), ids=PLANS)
def test_a_plan_from_options(fake: FakeHost, args: list[str], plan: Any) -> None:
    fake.answers["POST /v1/automations"] = {"automation": "a-1"}
    fake.answers["GET /v1/automations/x"] = automation(name="x")
    fake.run("automations", "add", "x", *args)
    assert fake.asked[0].body == {"name": "x", "plan": plan}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--zone", "Europe/Berlin"], "'zone' is for the trigger 'schedule'"),
        (["--glob", "*"], "'globs' is for the trigger 'files'"),
        (["--outcome", "failed"], "'outcomes' is for the trigger 'after'"),
        (["--set", "overlap"], "a rule is KEY=VALUE"),
        (["--set", "overlap=queue", "--set", "overlap.x=1"], "'overlap' has no keys of its own"),
        (["--plan", "/nonexistent.json"], "No such file"),
    ],
)
def test_what_cannot_be_a_plan_is_not_sent(fake: FakeHost, args: list[str], words: str) -> None:
    done = fake.run("automations", "add", "x", *args)
    assert words in str(done.error)
    assert fake.asked == []


def test_a_rename_keeps_the_plan(fake: FakeHost) -> None:
    fake.answers |= {f"GET /v1/automations/{name}": automation(name=name) for name in ("x", "y")}
    fake.answers["PATCH /v1/automations/x"] = {}
    assert fake.run("automations", "edit", "x", "--rename", "y").out == "y: every 1h\n"
    (sent,) = [each.body for each in fake.asked if each.method == "PATCH"]
    assert (sent["name"], sent["plan"]["schedule"]["every"]) == ("y", "1h")
