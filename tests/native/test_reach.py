"""An adopted session through the doors of a real host: search, export, editors, and the stream of a page."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from portico.doors.ahp.wire import uri
from portico.server.home import Home
from tests.agents.acp_agent import FAKE
from tests.doors.ahp.wire_client import WireClient, opened
from tests.native.programs import AGENT, LISTS, write
from tests.process import HostProcess, portico


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator["Place"]:
    """A host whose agent has one session of its own program."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir(mode=0o700)
    work.mkdir()
    write(tmp_path, "n1", "fix the parser", "and the printer")
    env = {"FAKE_STORE": str(tmp_path / "store"), "FAKE_LIST": str(work), "FAKE_CAPS": LISTS}
    command = json.dumps([sys.executable, "-S", "-E", str(FAKE)])
    pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in env.items())
    (home / "settings.toml").write_text(f"[agents.acp.fake]\ncommand = {command}\nenv = {{ {pairs} }}\n")
    with HostProcess(home, "--agent", AGENT) as host:
        headers = {"Authorization": f"Bearer {Home(home).token()}"}
        async with httpx.AsyncClient(base_url=host.url, headers=headers, timeout=30) as http:
            yield Place(host, http)


class Place:
    def __init__(self, host: HostProcess, http: httpx.AsyncClient) -> None:
        self.host = host
        self.http = http

    async def adopt(self, **more: Any) -> httpx.Response:
        return await self.http.post("/v1/sessions/adopt", json={"agent": AGENT, "native": "n1", **more})

    def continue_elsewhere(self, *messages: str) -> None:
        """The agent's own program writes all messages of the session again, and new ones."""
        write(self.host.home.parent, "n1", *messages, ago=20)

    def editor(self) -> WireClient:
        token = Home(self.host.home).token()
        return WireClient(f"ws://127.0.0.1:{self.host.port}/ahp?tkn={token}", "editor", "1.0.0")


def texts(turns: list[dict[str, Any]]) -> list[str]:
    return [turn["message"]["text"] for turn in turns]


async def test_an_adopted_session_is_found_exported_and_listed(place: Place) -> None:
    async with opened(place.editor()) as editor:
        await editor.initialize(editor.root)
        before = await editor.request("listSessions", channel=uri.ROOT)
        assert before["items"] == [], "a session that is not adopted is not listed in editors"
        adopted = (await place.adopt()).json()
        listed = (await editor.request("listSessions", channel=uri.ROOT))["items"]
        assert [each["title"] for each in listed] == ["fix the parser"]
        name = listed[0]["resource"]
        await editor.subscribe(name)
        await editor.subscribe(uri.default_chat(name))
        assert texts(editor.states[uri.default_chat(name)]["turns"]) == ["fix the parser", "and the printer"]
    hits = (await place.http.get("/v1/search", params={"q": "printer"})).json()["hits"]
    assert [each["session"] for each in hits] == [adopted["id"]]
    archive = (await place.http.get(f"/v1/sessions/{adopted['id']}/archive")).json()
    assert "and the printer" in json.dumps(archive)
    printed = await asyncio.to_thread(portico, place.host.home, "sessions", "export", adopted["id"])
    assert "fix the parser" in printed.stdout, printed.stderr
    usage = (await place.http.get("/v1/usage")).json()
    assert "imported" not in json.dumps(usage), "imported turns cost nothing"


async def test_clients_that_are_connected_see_imported_turns(place: Place) -> None:
    """An editor showed the old turns until it was reloaded: no action reported what was imported."""
    adopted = (await place.adopt()).json()
    async with opened(place.editor()) as editor:
        await editor.initialize(editor.root)
        name = (await editor.request("listSessions", channel=uri.ROOT))["items"][0]["resource"]
        chat = uri.default_chat(name)
        await editor.subscribe(name)
        await editor.subscribe(chat)
        page = asyncio.create_task(_events(place, adopted["id"], "history.copied", 2))
        place.continue_elsewhere("fix the parser", "and the printer", "typed in the terminal")
        assert (await place.adopt()).json()["id"] == adopted["id"]
        await editor.wait(lambda: len(editor.states[chat]["turns"]) == 3)
        assert texts(editor.states[chat]["turns"])[-1] == "typed in the terminal"
        assert editor.states[chat]["turns"][-1]["state"] == "complete"
        async with asyncio.timeout(30):
            imported = (await page)[-1]
        assert [turn["message"]["text"] for turn in imported["turns"]] == ["typed in the terminal"]
        assert editor.wrong == []


async def _events(place: Place, session: str, kind: str, count: int) -> list[dict[str, Any]]:
    """What a page receives that shows the session."""
    found: list[dict[str, Any]] = []
    address, headers = f"/v1/sessions/{session}/events", {"Accept": "text/event-stream"}
    async with place.http.stream("GET", address, headers=headers) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data:"):
                event = json.loads(line.removeprefix("data:"))["event"]
                found += [event] if event["type"] == kind else []
                if len(found) == count:
                    return found
    return found


async def test_a_session_that_is_written_now_needs_a_confirmation(place: Place) -> None:
    path = place.host.home.parent / "store" / "n1"
    os.utime(path)
    (page,) = (await place.http.get("/v1/native-sessions")).json()["agents"]
    assert [(each["id"], each["open"]) for each in page["sessions"]] == [("n1", True)]
    refused = await place.adopt()
    assert (refused.status_code, refused.json()["field"]) == (409, "confirm")
    listed = await asyncio.to_thread(portico, place.host.home, "sessions", "found")
    assert "open elsewhere" in listed.stdout
    said = await asyncio.to_thread(portico, place.host.home, "sessions", "adopt", "n1")
    assert (said.returncode != 0, "--yes" in said.stderr) == (True, True)
    assert (await place.http.get("/v1/sessions")).json()["total"] == 0
    os.utime(path)
    assert (await place.adopt(confirm=True)).status_code == 201
