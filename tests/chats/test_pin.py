"""Pinning a session: all clients see it, in lists too, and after a restart."""

from pathlib import Path

import pytest

from portico.features.chats.commands import SessionPinned
from portico.server.home import Home
from portico.server.identity import new_token
from tests.doors.standing import Standing, standing


async def pinned(here: Standing) -> dict[str, bool]:
    found = (await here.http.get("/v1/sessions")).json()["sessions"]
    return {each["id"]: "chats" in each.get("features", {}) for each in found}


async def test_a_pinned_session_is_pinned_for_all_clients_and_after_a_restart(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        first, second = await here.start(), await here.start()
        modified = (await here.http.get(f"/v1/sessions/{first}")).json()["modified"]
        answer = await here.http.put(f"/v1/sessions/{first}/pin", json={})
        assert (answer.status_code, answer.json()["id"]) == (200, first)
        assert answer.json()["modified"] == modified, "a pin does not make it newer in lists"
        assert await pinned(here) == {first: True, second: False}
        board = (await here.http.get("/v1/board")).json()["rows"]
        assert {row["session"]["id"]: "features" in row["session"] for row in board} == {first: True, second: False}
        await here.http.put(f"/v1/sessions/{first}/pin", json={"pinned": True})  # again: nothing changes
        events = await here.server.host.log.read(f"session/{first}")
        assert [each.event for each in events if isinstance(each.event, SessionPinned)] == [
            SessionPinned(pinned=True, by="token:owner")
        ]
    async with standing(tmp_path) as here:
        assert await pinned(here) == {first: True, second: False}
        await here.http.put(f"/v1/sessions/{first}/pin", json={"pinned": False})
        assert await pinned(here) == {first: False, second: False}


@pytest.mark.parametrize(("scope", "status"), [("read", 403), ("drive", 200)])
async def test_pinning_needs_the_scope_drive(tmp_path: Path, scope: str, status: int) -> None:
    async with standing(tmp_path) as here:
        session = await here.start()
        token = new_token(Home(here.server.home.path), scope, [scope, "read"])
        headers = {"Authorization": f"Bearer {token}"}
        answer = await here.stranger.put(f"/v1/sessions/{session}/pin", json={}, headers=headers)
        assert answer.status_code == status
