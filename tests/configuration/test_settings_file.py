"""Settings changed over REST: checked, applied, and written without changing anything else in the file."""

import asyncio
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from portico.features.configuration.editable import EDITABLE, choices_of, form_of
from portico.server.settings_load import keys
from tests.doors.standing import Standing, problem, standing

WRITTEN = """# my host
default_agent = "demo"  # for now

[agent]
# people asked for more
max_steps = 50

[approvals]
edits = [
  "docs/**",  # harmless
]
"""


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Standing]:
    async with standing(tmp_path) as here:
        here.home.settings_path.write_text(WRITTEN)
        yield here


async def change(host: Standing, key: str, *value: Any) -> Any:
    answer = await host.http.patch("/v1/settings", json={"key": key, **({"value": value[0]} if value else {})})
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("default_agent", "loop"),
        ("agent.max_steps", 10),
        ("agent.require_approval", "all"),
        ("agent.capture_changes", False),
        ("approvals.edits", ["src/**", "!src/*.lock"]),
        ("approvals.deny_commands", ["git push"]),
        ("budgets.day", {"dollars": 5}),
        ("budgets.session", {"tokens": 1000, "turns": 3}),
        ("retention.archive_days", 30),
        ("log.retention_hours", 1.5),
    ],
)
async def test_a_setting_is_changed_applied_and_removed_again(host: Standing, key: str, value: Any) -> None:
    saved = await change(host, key, value)
    assert (saved["value"], saved["origin"], saved["restart"]) == (value, str(host.home.settings_path), False)
    shown = {each["key"]: each for each in (await host.http.get("/v1/settings")).json()["settings"]}
    assert (shown[key]["value"], shown[key]["editable"]) == (value, True)
    text = host.home.settings_path.read_text()
    assert [line for line in ("# my host", "# people asked for more") if line not in text] == []
    removed = await change(host, key)
    assert (removed["value"], removed["origin"]) == (keys()[key], "default")
    left = tomllib.loads(host.home.settings_path.read_text())
    for part in key.split(".")[:-1]:
        left = left.get(part, {})
    assert key.split(".")[-1] not in left


@pytest.mark.parametrize(
    ("key", "value", "status", "field"),
    [
        ("agent.max_steps", "many", 400, "value"),
        ("agent.max_steps", [1], 400, "value"),
        ("agent.require_approval", "sometimes", 400, "value"),
        ("approvals.edits", "src/**", 400, "value"),
        ("approvals.allow_commands", ["/(/"], 400, "value"),
        ("budgets.day", {"euros": 3}, 400, "value"),
        ("retention.archive_days", -1, 400, "value"),
        ("agent.max_stepz", 3, 404, None),
        ("", 3, 404, None),
        ("agent", {"max_steps": 3}, 404, None),
        ("security.allow_origins", ["https://evil.example"], 400, "key"),
        ("login.oidc.issuer", "https://evil.example", 400, "key"),
        ("notices.commands", [{"name": "x", "command": ["sh"]}], 400, "key"),
        ("agents", {"acp": {"x": {"command": ["sh"]}}}, 400, "key"),
        ("server.host", "0.0.0.0", 400, "key"),
    ],
)
async def test_an_invalid_change_leaves_the_file_as_it_was(
    host: Standing, key: str, value: Any, status: int, field: str | None
) -> None:
    answer = await host.http.patch("/v1/settings", json={"key": key, "value": value})
    problem(answer, status, "bad_request" if status == 400 else "not_found", field)
    assert host.home.settings_path.read_text() == WRITTEN
    assert [each.name for each in host.home.path.glob(".settings*")] == []


async def test_a_value_of_the_environment_is_not_hidden_behind_the_file(
    host: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORTICO_AGENT_MAX_STEPS", "7")
    host.home.settings_path.write_text(WRITTEN + "\n")  # the host reads it again, with the variable
    answer = await host.http.patch("/v1/settings", json={"key": "agent.max_steps", "value": 9})
    assert "PORTICO_AGENT_MAX_STEPS" in problem(answer, 409, "conflict")


async def test_concurrent_changes_are_all_kept(host: Standing) -> None:
    wanted = {"agent.max_steps": 11, "quotas.turns": 2, "retention.archive_days": 9, "approvals.reads": False}
    await asyncio.gather(*(change(host, key, value) for key, value in wanted.items()))
    written = tomllib.loads(host.home.settings_path.read_text())
    assert {key: written[(parts := key.split("."))[0]][parts[1]] for key in wanted} == wanted


async def test_only_admins_change_settings_and_each_change_is_audited(host: Standing) -> None:
    token = (await host.http.post("/v1/tokens", json={"name": "phone", "scopes": ["read", "drive"]})).json()["token"]
    async with host.client(token) as phone:
        body = {"key": "agent.max_steps", "value": 1}
        assert (await phone.patch("/v1/settings", json=body)).status_code == 403
    await change(host, "agent.max_steps", 12)
    audit = (await host.http.get("/v1/audit", params={"limit": "1000"})).json()["audit"]
    assert {"key": "agent.max_steps", "removed": False} in [each["detail"] for each in audit]


def test_every_editable_setting_has_a_form() -> None:
    assert keys().keys() >= EDITABLE
    assert {form_of(key) for key in EDITABLE} == {"text", "number", "boolean", "list", "choice", "table"}
    assert all(choices_of(key) for key in EDITABLE if form_of(key) == "choice")
