"""A plan that is wrong is refused with the field and what to do; each row is one mistake in a plan that is right."""

import re
from pathlib import Path
from typing import Any

import pytest

from portico import limits
from portico.features.automations import commands as ac
from portico.features.automations.automations import Automations
from portico.features.automations.commands import AutomationMade
from portico.kernel import limits as kernel_limits
from portico.kernel.errors import BadRequest
from portico.testing.fixtures import HostOpener
from tests.automation.playing import ME, opened, plan

PROMPT = {"text": "look", "agent": "scripted"}
FOLDER = "FOLDER"
"""Stands for a folder of the workspace."""

WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"job": {"job": "main"}, "prompt": PROMPT}, "prompt", "one of 'job', 'prompt'; here are 2"),
    ({"schedule": {"every": "1m"}, "hook": {}}, "hook", "one of 'schedule', 'hook', 'files', 'after'; here are 2"),
    ({"hook": {}, "after": {"job": "main"}}, "after", "here are 2"),
    ({"missed_limit": 0}, "missed_limit", f"from 1 to {limits.MISSED_RUNS}"),
    ({"missed_limit": limits.MISSED_RUNS + 1}, "missed_limit", f"from 1 to {limits.MISSED_RUNS}"),
    ({"parallel": 0}, "parallel", "from 1 to 100"),
    ({"parallel": 101}, "parallel", "from 1 to 100"),
    ({"stop_after_failures": -1}, "stop_after_failures", "from 0 to 1000"),
    ({"stop_after_failures": 1_001}, "stop_after_failures", "from 0 to 1000"),
    ({"stop_after_runs": -1}, "stop_after_runs", "from 0 to 1000000"),
    ({"stop_after_runs": 1_000_001}, "stop_after_runs", "from 0 to 1000000"),
    ({"keep_days": 0}, "keep_days", "from 1 to 3650"),
    ({"keep_days": 3_651}, "keep_days", "from 1 to 3650"),
    ({"keep_runs": 0}, "keep_runs", "from 1 to 10000"),
    ({"keep_runs": 10_001}, "keep_runs", "from 1 to 10000"),
    ({"title": "x" * (kernel_limits.TITLE_CHARS + 1)}, "title", f"at most {kernel_limits.TITLE_CHARS} characters"),
    ({"schedule": {}}, "schedule", "exactly one of 'cron', 'every' and 'at'"),
    ({"schedule": {"every": "1m", "cron": "@daily"}}, "schedule", "exactly one of"),
    ({"stop_at": "tomorrow"}, "stop_at", "'tomorrow' is no time such as"),
    ({"stop_at": "2027-13-01T00:00"}, "stop_at", "is no time such as"),
    ({"hook": {"per_minute": 0}}, "hook.per_minute", f"1 to {limits.HOOKS_PER_MINUTE}"),
    ({"hook": {"per_minute": limits.HOOKS_PER_MINUTE + 1}}, "hook.per_minute", f"1 to {limits.HOOKS_PER_MINUTE}"),
    ({"hook": {"filter": [{"pointer": "a", "equals": 1}]}}, "hook.filter[0].pointer", "begins with a slash"),
    ({"hook": {"filter": [{"pointer": "/a"}]}}, "hook.filter[0]", "exactly one of 'equals' and 'matches'"),
    (
        {"hook": {"filter": [{"pointer": "/a", "equals": 1}, {"pointer": "/b", "equals": 1, "matches": "x"}]}},
        "hook.filter[1]",
        "exactly one of 'equals' and 'matches'",
    ),
    ({"hook": {"filter": [{"pointer": "/a", "matches": "("}]}}, "hook.filter[0].matches", "is no regular expression"),
    ({"files": {"folder": "relative"}}, "files.folder", "relative"),
    ({"files": {"folder": "/no/such/folder"}}, "files.folder", "/no/such/folder"),
    ({"files": {"folder": FOLDER, "quiet": 0.01}}, "files.quiet", "0.05 to 3600 seconds"),
    ({"files": {"folder": FOLDER, "quiet": 3601}}, "files.quiet", "0.05 to 3600 seconds"),
    ({"files": {"folder": FOLDER, "globs": ["/etc/*"]}}, "files.globs", "relative to the folder"),
    ({"files": {"folder": FOLDER, "globs": ["*.py", "../*"]}}, "files.globs", "'../*': globs are relative"),
    ({"files": {"folder": FOLDER, "excludes": ["a/../../b"]}}, "files.excludes", "relative to the folder"),
    ({"after": {}}, "after", "exactly one of 'automation' and 'job'"),
    ({"after": {"automation": "other", "job": "main"}}, "after", "exactly one of 'automation' and 'job'"),
    ({"after": {"automation": "mine"}}, "after.automation", "cannot come after itself"),
    ({"schedule": {"every": "1m"}, "hook": {}}, "hook", "Write several triggers as the list 'on'"),
    ({"on": [{"hook": {}}], "schedule": {"every": "1m"}}, "schedule", "move it there"),
    ({"on": [{"hook": {}}, {}]}, "on[1].schedule", "Each item of 'on' needs a trigger"),
    ({"on": [{"hook": {}, "files": {"folder": FOLDER}}]}, "on[0].files", "Each item of 'on' has one of"),
    ({"on": [{"hook": {}}, {"schedule": {"cron": "61 * * * *"}}]}, "on[1].schedule.cron", "no cron expression"),
    ({"on": [{"hook": {"per_minute": 0}}]}, "on[0].hook.per_minute", "per_minute"),
    ({"on": [{"files": {"folder": "relative"}}]}, "on[0].files.folder", "relative"),
    ({"on": [{"after": {"automation": "mine"}}]}, "on[0].after.automation", "cannot come after itself"),
    ({"on": [{"hook": {}}] * (limits.TRIGGERS + 1)}, "on", f"at most {limits.TRIGGERS} triggers"),
    ({"job": {"job": "mian"}}, "job.job", "mian"),
    ({"job": {"job": "main", "cwd": "/no/such/folder"}}, "job.cwd", "/no/such/folder"),
    ({"prompt": {"text": "  \n "}}, "prompt.text", "says something"),
    (
        {"prompt": {"text": "x" * (kernel_limits.MESSAGE_BYTES + 1)}},
        "prompt.text",
        f"at most {kernel_limits.MESSAGE_BYTES} bytes",
    ),
    ({"prompt": {"text": "é" * (kernel_limits.MESSAGE_BYTES // 2 + 1)}}, "prompt.text", "bytes"),
    ({"prompt": {"text": "x", "cwd": "relative"}}, "prompt.cwd", "relative"),
    ({"prompt": {"text": "x", "place": "cellar"}}, "prompt.place", "alone on its log"),
    ({"prompt": {"text": "x", "label": "gpu"}}, "prompt.label", "alone on its log"),
    ({"job": {"job": "main", "label": "gpu"}}, "job.label", "alone on its log"),
    ({"prompt": {"text": "x", "agent": "nobody"}}, "prompt.agent", "There is no agent 'nobody'. There are: 'scripted'"),
]

RIGHT: list[dict[str, Any]] = [
    {},
    {"job": {"job": "main"}},
    {"job": {"job": "main", "cwd": FOLDER, "input": "x"}},
    {"missed_limit": 1, "parallel": 1, "stop_after_failures": 0, "stop_after_runs": 0, "keep_days": 1, "keep_runs": 1},
    {
        "missed_limit": limits.MISSED_RUNS,
        "parallel": 100,
        "stop_after_failures": 1_000,
        "stop_after_runs": 1_000_000,
        "keep_days": 3_650,
        "keep_runs": 10_000,
    },
    {"title": "x" * kernel_limits.TITLE_CHARS},
    {"stop_at": "2099-01-01T00:00"},
    {"schedule": {"cron": "@daily", "zone": "Asia/Kolkata"}, "stop_at": "2099-01-01T00:00+02:00"},
    {"hook": {"per_minute": 1}},
    {"hook": {"per_minute": limits.HOOKS_PER_MINUTE, "filter": [{"pointer": "", "matches": "x"}]}},
    {"hook": {"filter": [{"pointer": "/a", "equals": False}, {"pointer": "/b", "equals": 0}]}},
    {"files": {"folder": FOLDER, "quiet": 0.05, "globs": ["**/*.py", "..x/*"], "excludes": ["build/**"]}},
    {"files": {"folder": FOLDER, "quiet": 3600}},
    {"after": {"automation": "one-that-comes-later"}},
    {"after": {"job": "main", "outcomes": ["failed"]}},
    {"on": [{"schedule": {"cron": "@daily"}}, {"schedule": {"every": "1h"}}, {"hook": {}}, {"after": {"job": "main"}}]},
    {"prompt": {"text": "x" * kernel_limits.MESSAGE_BYTES}},
    {"prompt": {"text": "x", "cwd": FOLDER}},
]


def placed(value: Any, folder: Path) -> Any:
    if isinstance(value, dict):
        return {key: placed(each, folder) for key, each in value.items()}
    if isinstance(value, list):
        return [placed(each, folder) for each in value]
    return str(folder) if value == FOLDER else value


@pytest.fixture
async def automations(open_host: HostOpener, tmp_path: Path) -> Automations:
    return await opened(await open_host(), tmp_path, jobs=True)


async def create(automations: Automations, parts: dict[str, Any], folder: Path, name: str = "mine") -> AutomationMade:
    command = ac.CreateAutomation(name=name, plan=plan(**placed(parts, folder)))
    answer: AutomationMade = await automations.host.do(command, ME)
    return answer


async def test_a_mistake_is_named_and_changes_nothing(automations: Automations, tmp_path: Path) -> None:
    before = automations.host.log.seq
    for parts, field, words in WRONG:
        with pytest.raises(BadRequest) as caught:
            await create(automations, parts, tmp_path)
        assert (caught.value.field, words in caught.value.message) == (field, True), (parts, caught.value.message)
    assert (automations.store.automations, automations.host.log.seq) == ({}, before)


async def test_an_edit_is_judged_like_a_new_one(automations: Automations, tmp_path: Path) -> None:
    await create(automations, {"schedule": {"every": "1h"}}, tmp_path)
    was = automations.store.get("mine").plan
    for parts, field, _ in WRONG:
        edit = ac.EditAutomation(automation="mine", plan=plan(**placed(parts, tmp_path)))
        with pytest.raises(BadRequest) as caught:
            await automations.host.do(edit, ME)
        assert caught.value.field == field, parts
    assert automations.store.get("mine").plan == was


async def test_what_is_just_right_is_taken_as_it_is(automations: Automations, tmp_path: Path) -> None:
    for number, parts in enumerate(RIGHT):
        await create(automations, parts, tmp_path, f"right-{number}")
        assert automations.store.get(f"right-{number}").plan == plan(**placed(parts, tmp_path))


NAMES = [
    ("a", True),
    ("morning-review", True),
    ("7am", True),
    ("x" * 64, True),
    ("x" * 65, False),
    ("", False),
    ("-a", False),
    ("a-", False),
    ("A", False),
    ("a_b", False),
    ("a b", False),
    ("a/b", False),
    ("é", False),
    ("a\n", False),
]


async def test_names_are_what_an_address_takes(automations: Automations, tmp_path: Path) -> None:
    for name, _ in (each for each in NAMES if not each[1]):
        with pytest.raises(BadRequest, match=re.escape(repr(name))) as caught:
            await create(automations, {}, tmp_path, name)
        assert caught.value.field == "name"
    for name, _ in (each for each in NAMES if each[1]):
        await create(automations, {}, tmp_path, name)
    assert {each.name for each in automations.store.automations.values()} == {name for name, right in NAMES if right}
