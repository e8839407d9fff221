"""What `portico automations list` and `history` say: why one does not run, why a run failed, what it cost."""

import copy
from pathlib import Path

import pytest

from portico.cli.automations import PlanOptions, _changed, _due, _is, _missed_row, _used
from portico.cli.output import when
from portico.features.automations.events import AutomationPlan, Schedule
from portico.features.automations.listing import AutomationInfo
from portico.features.automations.state import MissedTimes, RunSummary
from portico.kernel.events import Json


@pytest.mark.parametrize(
    ("enabled", "reason", "words"),
    [
        (True, "", "on"),
        (False, "", "paused"),
        (
            False,
            "2 runs failed in a row (stop_after_failures).",
            "paused: 2 runs failed in a row (stop_after_failures).",
        ),
        (False, "\x1b[31mred", "paused: [31mred"),
    ],
)
def test_a_paused_one_says_why(enabled: bool, reason: str, words: str) -> None:
    info = AutomationInfo("a-1", "x", AutomationPlan(), "none", enabled, "me", "door", 0, 0, reason=reason)
    assert _is(info) == words


@pytest.mark.parametrize(
    ("tokens", "cost", "estimated", "words"),
    [
        (0, None, False, ""),
        (480, None, False, "480 tokens, cost unknown"),
        (480, 0.25, False, "480 tokens, $0.25"),
        (480, 0.25, True, "480 tokens, about $0.25"),
    ],
)
def test_an_unknown_cost_is_said(tokens: int, cost: float | None, estimated: bool, words: str) -> None:
    run = RunSummary("run-1", "a-1", "x", "hook", 0, 0, "me", input=tokens, cost=cost, estimated=estimated)
    assert _used(run) == words


@pytest.mark.parametrize(
    ("missed", "due", "ended"),
    [
        (MissedTimes(1, 0, 0, "why"), when(0), "missed 1"),
        (MissedTimes(6, 0, 3_600_000, "why", True), f"{when(0)} to {when(3_600_000)}", "missed more than 6"),
    ],
)
def test_due_times_without_a_run_are_in_the_history(missed: MissedTimes, due: str, ended: str) -> None:
    assert _missed_row(missed, "x") == ["", "x", due, "schedule", ended, "", "", "why"]


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (Schedule(cron="0 7 * * *", zone="Europe/Berlin"), "2027-01-15 09:00 Europe/Berlin"),
        (Schedule(at="2027-01-15T08:00"), "2027-01-15 08:00 UTC"),
        (Schedule(every="2h"), when(1_800_000_000_000)),
        (None, when(1_800_000_000_000)),
    ],
)
def test_a_due_time_is_told_in_the_zone_of_its_schedule(schedule: Schedule | None, words: str) -> None:
    """Who had written 7 in Berlin was told 06:00."""
    info = AutomationInfo("a-1", "x", AutomationPlan(schedule=schedule), "schedule", True, "me", "door", 0, 0)
    assert _due(info, 1_800_000_000_000) == words


PROMPT = {"text": "look", "agent": "demo", "worktree": True}
TOKYO = {"cron": "@daily", "zone": "Asia/Tokyo"}
HOOK = {"filter": [{"pointer": "/ref", "equals": "main"}], "per_minute": 7}
FILES = {"folder": "/a", "globs": ["*.csv"], "quiet": 60.0}
AFTER = {"automation": "x", "outcomes": ["failed"]}
BOTH: Json = {"on": [{"hook": HOOK}, {"schedule": TOKYO}]}


@pytest.mark.parametrize(
    ("before", "said", "after"),
    [
        ({"prompt": PROMPT}, {"prompt": "new"}, {"prompt": {**PROMPT, "text": "new"}}),
        ({"prompt": PROMPT}, {"agent": "loop"}, {"prompt": {**PROMPT, "agent": "loop"}}),
        ({"prompt": PROMPT}, {"job": "main"}, {"job": {"job": "main"}}),
        (
            {"job": {"job": "a", "cwd": "/w", "input": "i"}},
            {"job": "b"},
            {"job": {"job": "b", "cwd": "/w", "input": "i"}},
        ),
        ({"hook": HOOK}, {"hook": True}, {"hook": HOOK}),
        ({"hook": HOOK}, {"every": "1h"}, {"schedule": {"every": "1h", "zone": "UTC"}}),
        (
            {"schedule": {"cron": "@daily", "zone": "Asia/Tokyo"}},
            {"cron": "@weekly"},
            {"schedule": {"cron": "@weekly", "zone": "Asia/Tokyo"}},
        ),
        ({"files": FILES}, {"files": Path("/b")}, {"files": {**FILES, "folder": "/b"}}),
        ({"after": AFTER}, {"after": "y"}, {"after": {**AFTER, "automation": "y"}}),
        ({"after": AFTER}, {"after_job": "j"}, {"after": {"job": "j", "outcomes": ["failed"]}}),
        ({"on": [{"hook": HOOK}, {"schedule": TOKYO}]}, {"prompt": "x"}, {"prompt": {"text": "x"}, **BOTH}),
        ({"hook": HOOK}, {"hook": True, "cron": "@daily", "zone": "Asia/Tokyo"}, {"on": BOTH["on"][::-1]}),
        (BOTH, {"hook": True, "cron": "@daily"}, {"on": BOTH["on"][::-1]}),
        (BOTH, {"zone": "UTC"}, {"on": [{"hook": HOOK}, {"schedule": {"cron": "@daily", "zone": "UTC"}}]}),
        (BOTH, {"every": "1h"}, {"schedule": {"every": "1h", "zone": "Asia/Tokyo"}}),
    ],
)
def test_what_an_edit_does_not_name_stays(before: Json, said: Json, after: Json) -> None:
    """`edit --prompt` took the agent, the folder and the model away, and `--hook` the filter."""
    assert _changed(copy.deepcopy(before), PlanOptions(**said)) == after
