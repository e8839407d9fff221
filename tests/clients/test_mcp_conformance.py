"""The conformance suite of the Model Context Protocol against a host, in both generations of the protocol.

Scenarios that call tools of a test server (`test_simple_text` and others), that need sampling or elicitation by the
server, or that belong to extensions do not apply: Portico has no such tools.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.clients.programs import installed, node
from tests.doors.standing import standing

pytestmark = pytest.mark.live

HANDSHAKE = (
    *("server-initialize", "server-session-lifecycle", "ping", "tools-list", "resources-list", "prompts-list"),
    *("dns-rebinding-protection", "server-sse-multiple-streams"),
)
STATELESS = (
    *("server-stateless", "tools-list", "resources-list", "prompts-list", "sep-2164-resource-not-found", "caching"),
    *("dns-rebinding-protection", "http-header-validation", "server-sse-multiple-streams"),
)
NEEDS_A_TEST_TOOL = {
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-missing-capability-http-400",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}
"""Checks of `server-stateless` that call a tool of a test server. They fail without it, and no others may."""


async def _checks(url: str, scenario: str, version: str, folder: Path) -> list[dict[str, Any]]:
    program = installed("@modelcontextprotocol/conformance") / "dist/index.js"
    arguments = ["server", "--url", url, "--scenario", scenario, "--spec-version", version, "--output-dir", str(folder)]
    process = await asyncio.create_subprocess_exec(
        *(node(), str(program), *arguments),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed = (await process.communicate())[0].decode()
    return _read(folder, printed)


def _read(folder: Path, printed: str) -> list[dict[str, Any]]:
    found = [*folder.rglob("checks.json")]
    assert found, printed[-3000:]
    checks: list[dict[str, Any]] = json.loads(found[0].read_text())
    return checks


@pytest.mark.parametrize(("version", "scenarios"), [("2025-11-25", HANDSHAKE), ("2026-07-28", STATELESS)])
async def test_the_applicable_scenarios_pass(tmp_path: Path, version: str, scenarios: tuple[str, ...]) -> None:
    async with standing(tmp_path, agents=("scripted",), with_token=False) as here:
        await here.say(await here.start(title="one"), "hi")
        for scenario in scenarios:
            folder = tmp_path / "results" / scenario
            folder.mkdir(parents=True)
            checks = await _checks(f"{here.url}/mcp", scenario, version, folder)
            failed = {each["id"]: each.get("errorMessage") for each in checks if each["status"] == "FAILURE"}
            assert failed.keys() == (NEEDS_A_TEST_TOOL if scenario == "server-stateless" else set()), failed
            assert any(each["status"] == "SUCCESS" for each in checks), scenario
            warned = {each["id"] for each in checks if each["status"] == "WARNING"}
            assert warned == set(), scenario
