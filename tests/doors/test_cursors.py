"""Cursors carry the epoch of their log: one of another log, or beyond its end, is refused at every door with a code
that says to take a snapshot."""

import os
import shutil
from pathlib import Path

import pytest

from portico.client import Client
from portico.client.client import RemoteError
from tests.doors.ahp.wire_client import WireClient, opened
from tests.doors.standing import Standing, problem, standing

SSE = {"Accept": "text/event-stream"}
PATHS = ["/v1/sessions/session-1/events", "/v1/events", "/v1/events?channel=session/session-1", "/events"]


def restore(home: Path) -> None:
    """As from a backup: the same content in another file."""
    shutil.copy(home / "log.db", home / "copy")
    os.replace(home / "copy", home / "log.db")


async def ids(here: Standing, path: str, count: int) -> list[str]:
    """The ids of the first events, as a browser keeps them."""
    join = "&" if "?" in path else "?"
    found: list[str] = []
    async with here.http.stream(
        "GET", f"{path}{join}after=0", headers={**SSE, "Accept-Encoding": "identity"}
    ) as answer:
        assert answer.status_code == 200, await answer.aread()
        async for line in answer.aiter_lines():
            found += [line[4:]] if line.startswith("id: ") else []
            if len(found) == count:
                return found
    return found


async def refused(here: Standing, path: str, cursor: str) -> str:
    answer = await here.http.get(path, headers={**SSE, "Last-Event-ID": cursor})
    return problem(answer, 410, "cursor_lost", "after")


@pytest.mark.parametrize("path", PATHS)
async def test_a_cursor_of_another_log_is_refused(tmp_path: Path, path: str) -> None:
    async with standing(tmp_path) as here:
        await here.http.post("/message", json={"text": "[[say:hi]]", "agent": "scripted"})
        found = await ids(here, path, 3)
        epoch = here.server.host.log.epoch
        assert all(ident.endswith(f".{epoch}") for ident in found)
        again = await here.http.get(path, headers={"Last-Event-ID": found[0]}) if path != "/events" else None
        assert again is None or again.status_code == 200
        problem(
            await here.http.get(path, headers={**SSE, "Last-Event-ID": f"{10**9}.{epoch}"}), 410, "cursor_lost", "after"
        )
        problem(await here.http.get(path, headers={**SSE, "Last-Event-ID": str(10**9)}), 410, "cursor_lost", "after")
    restore(here.home.path)
    async with standing(tmp_path) as here:
        assert here.server.host.log.epoch != epoch
        lost = problem(
            await here.http.get(path, headers={**SSE, "Last-Event-ID": found[0]}), 410, "cursor_lost", "after"
        )
        assert "Read the state again" in lost
        state = (await here.http.get("/v1/sessions/session-1")).json()
        page = await here.http.get("/v1/sessions/session-1/events", params={"after": state["pos"]})
        assert page.json() == {"events": [], "head": state["pos"], "epoch": here.server.host.log.epoch}


async def test_the_python_client_is_told(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        await here.say(await here.start(), "[[say:hi]]")
        async with Client(here.url, here.home.token()) as client:
            record = await anext(aiter(client.session("session-1").follow()))
            assert record.epoch == here.server.host.log.epoch
            with pytest.raises(RemoteError) as refusal:
                await anext(aiter(client.session("session-1").follow(10**9)))
            assert refusal.value.code == "cursor_lost"
            assert await client.session("session-1").head() == here.server.host.log.head("session/session-1")


async def test_an_editor_gets_a_snapshot(tmp_path: Path) -> None:
    """AHP's own word for it is `snapshot` in the answer to `reconnect`."""
    async with standing(tmp_path) as here:
        client = WireClient(editor_url(here), "editor", "0.9.0")
        async with opened(client):
            await client.initialize()
            await client.create_session("scripted:/s1")
    restore(here.home.path)
    async with standing(tmp_path) as here:
        client.url = editor_url(here)
        answer = await client.reconnect()
        await client.close()
    assert answer["type"] == "snapshot"


def editor_url(here: Standing) -> str:
    return f"{here.url}/ahp?tkn={here.home.token()}".replace("http", "ws")


async def test_a_page_gets_everything(tmp_path: Path) -> None:
    """The portal's cursors are kept by the host: one that counts in another log is forgotten."""
    async with standing(tmp_path) as here:
        await here.say(await here.start(), "[[say:hi]]")
        first = (await here.http.get("/api/copilot/session/session-1/live/page")).json()
        assert first["responses"]
    restore(here.home.path)
    async with standing(tmp_path) as here:
        assert (await here.http.get("/api/copilot/session/session-1/live/page")).json() == first
