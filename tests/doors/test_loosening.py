"""With `drive` and without `approve`, no door switches asking off through an agent's own options."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from portico.server.identity import new_token
from tests.doors.ahp.wire_client import WireClient, opened
from tests.doors.standing import Standing, problem, standing

SCRIPT = """
providers:
  - id: scripted
    name: Scripted
    autonomy: {mode: {yolo: asks-nobody, edits: asks-less}, allow_all: {"True": asks-nobody}, odd: {x: unknown}}
"""
LOOSE: list[dict[str, object]] = [
    {"mode": "yolo"},
    {"mode": "edits"},
    {"allow_all": True},
    {"odd": "x"},
    {"approvals": "allow"},
]


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Standing]:
    script = folder / "script.yaml"
    script.write_text(SCRIPT)
    async with standing(folder, agents=("scripted",), script=script) as here:
        yield here


async def test_rest(tmp_path: Path) -> None:
    async with served(tmp_path) as here:
        session = await here.start(config={"mode": "plan"})
        async with here.client(new_token(here.home, "driver", ["read", "drive"], tools=["all"])) as driver:
            for config in LOOSE:
                field = f"config.{next(iter(config))}"
                body = {"agent": "scripted", "config": config}
                problem(await driver.post("/v1/sessions", json=body), 403, "forbidden", field)
                answer = await driver.patch(f"/v1/sessions/{session}", json={"title": "mine", "config": config})
                problem(answer, 403, "forbidden", field)
            assert (await driver.patch(f"/v1/sessions/{session}", json={"config": {"mode": "agent"}})).is_success
        state = (await here.http.get(f"/v1/sessions/{session}")).json()
        assert (state.get("title", ""), state["config"]) == ("", {"mode": "agent"})
        assert (await here.http.patch(f"/v1/sessions/{session}", json={"config": LOOSE[0]})).is_success
        audit = (await here.http.get("/v1/audit")).json()["audit"]
        [found] = [each["detail"] for each in audit if each["action"] == "approval.loosened"]
        assert found == {"session": session, "settings": ["config.mode = 'yolo' (scripted asks nobody)"]}


async def test_commands_and_mcp(tmp_path: Path) -> None:
    """The same commands by their names, and as tools for agents."""
    async with served(tmp_path) as here:
        session = await here.start(config={"mode": "plan"})
        async with here.client(new_token(here.home, "driver", ["read", "drive"], tools=["all"])) as driver:
            for config in LOOSE:
                changed = {"session": session, "values": config}
                body = {"command": "session.configure", "arguments": changed}
                answer = await driver.post("/v1/commands", json=body)
                problem(answer, 403, "forbidden", f"config.{next(iter(config))}")
                for tool, arguments in (
                    ("start_session", {"agent": "scripted", "config": config}),
                    ("configure_session", changed),
                ):
                    call = {"name": tool, "arguments": arguments}
                    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
                    result = (await driver.post("/mcp", json=asked)).json()["result"]
                    assert (result["isError"], "'approve'" in result["content"][0]["text"]) == (True, True), result
        listed = (await here.http.get("/v1/sessions")).json()["sessions"]
        assert [each["id"] for each in listed] == [session]
        assert (await here.http.get(f"/v1/sessions/{session}")).json()["config"] == {"mode": "plan"}


@pytest.mark.parametrize("version", ["1", "0.9.0"])
async def test_ahp(tmp_path: Path, version: str) -> None:
    session = "scripted:/s1"
    async with served(tmp_path) as here:
        url = here.url.replace("http", "ws") + f"/?tkn={new_token(here.home, 'driver', ['read', 'drive'])}"
        async with opened(WireClient(url, "driver", version)) as driver:
            await driver.initialize()
            await driver.create_session(session, config={"mode": "plan"})
            for config in LOOSE:
                with pytest.raises(Exception, match="approve"):
                    await driver.create_session("scripted:/s2", config=config)
                for replace in (False, True):
                    echo = await driver.act(session, "session/configChanged", config=config, replace=replace)
                    assert "approve" in echo["rejectionReason"]
            assert here.server.host.find("scripted:/s2") is None
            found = await here.server.host.get(session)
            assert found.state.config == {"mode": "plan"}
