"""A home of Portico 0.1.0 (log, tokens, settings) opens with everything in it. The host that wrote it was killed."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from portico.kernel.events import Message
from portico.server.home import Home
from tests.doors.standing import Standing, standing

FIXTURES = Path(__file__).parents[1] / "log" / "fixtures"
PHONE = "5YxhzZg91J1q9fa3jhySirRBQUVeeBKCHULWLIaU3CY"
BLOB = "646c9063dd68a78481512ea662e26d4fde671d8f9f35c812a1963f04bd133aae"


@pytest.fixture
async def upgraded(tmp_path: Path) -> AsyncIterator[Standing]:
    home = Home(tmp_path / "home")
    home.make()
    home.tokens_path.write_bytes((FIXTURES / "tokens-0.1.0.json").read_bytes())
    home.settings_path.write_bytes((FIXTURES / "settings-0.1.0.toml").read_bytes())
    db = sqlite3.connect(home.log_path)
    db.executescript((FIXTURES / "schema2.sql").read_text())
    db.close()
    async with standing(tmp_path, flags={"workspaces": ["/"]}) as here:
        yield here


async def test_a_home_of_0_1_0_opens_with_everything_in_it(upgraded: Standing) -> None:
    found = {each["id"]: each for each in (await upgraded.http.get("/v1/sessions")).json()["sessions"]}
    assert {ident: (each["title"], each["turns"]) for ident, each in found.items()} == {
        "session-1": ("First", 2),
        "session-2": ("Fork of First", 2),
        "session-3": ("greet", 1),
        "session-4": ("/", 1),
        "session-5": ("[[say:Half of]] [[deltas:2]] [[hang]]", 1),
    }
    killed = (await upgraded.http.get("/v1/sessions/session-5")).json()
    assert killed["turns"][0]["outcome"] == "interrupted"
    assert [each["message"]["text"] for each in killed["queue"]] == ["waits"]
    assert (await upgraded.http.get(f"/v1/blobs/{BLOB}")).content == b"line of output\n" * 40
    terminal = (await upgraded.http.get("/v1/events", params={"channel": "terminal/terminal-1"})).json()["events"]
    assert terminal[-1]["event"]["type"] == "terminal.removed"
    job = (await upgraded.http.get("/api/copilot/job/job-1/history")).json()["responses"]
    assert job[-1] == {"callback": "jobSucceeded"}
    assert (await upgraded.http.get("/sessions")).json()[0]["count"] == 1


async def test_a_project_of_0_1_0_gets_only_new_chats(upgraded: Standing) -> None:
    """Programs that follow a project do not get the sessions that other clients had in its folder before."""
    project = (await upgraded.http.get("/sessions")).json()[0]["id"]
    before = (await upgraded.http.get(f"/sessions/{project}")).json()["messages"]
    assert {each["id"].partition(".")[0] for each in before} == {"session-4"}
    session = await upgraded.server.host.start(agent="scripted", by="token:owner", cwd="/")
    await session.wait(await session.send(Message("[[say:x]]"), by="token:owner"))
    after = (await upgraded.http.get(f"/sessions/{project}")).json()["messages"]
    assert after[: len(before)] == before
    assert {each["id"].partition(".")[0] for each in after[len(before) :]} == {session.id}
    assert (await upgraded.http.get("/sessions")).json()[0]["count"] == 2


async def test_positions_of_0_1_0_stay_valid(upgraded: Standing) -> None:
    """A page's cursor, a position of a channel and a number of the whole log, as clients have kept them."""
    live = await upgraded.http.get("/api/copilot/session/session-1/live/page-1")
    assert live.json() == {"error": "HttpRequestTimeout"}, "it has seen everything"
    page = (await upgraded.http.get("/v1/sessions/session-1/events", params={"after": 18})).json()
    assert [(each["pos"], each["event"]["type"]) for each in page["events"]] == [
        (19, "session.archived"),
        (20, "child.started"),
    ]
    rest = (await upgraded.http.get("/v1/events", params={"after": 77, "limit": 1})).json()["events"]
    assert rest[0]["seq"] == 78


async def test_tokens_and_settings_of_0_1_0_hold(upgraded: Standing) -> None:
    phone = upgraded.client(PHONE)
    assert (await phone.get("/v1/sessions")).status_code == 200
    assert (await phone.post("/v1/sessions", json={"agent": "scripted"})).status_code == 403
    await phone.aclose()
    settings = upgraded.server.loaded.settings
    assert (settings.log.durability, settings.log.retention_hours) == ("full", 48.0)
    assert (settings.agent.approval_timeout, settings.approvals.allow_commands) == (60.0, ["npm test"])


async def test_new_numbers_go_on_behind_the_old_ones(upgraded: Standing) -> None:
    assert await upgraded.start() == "session-7", "session-6 was deleted, and ids are never used again"
