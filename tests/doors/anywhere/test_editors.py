"""Chats that start in an editor in a project's folder reach programs on `/events` and in the history (seed 003)."""

from pathlib import Path
from typing import Any

import pytest

from portico.kernel.commands import Caller, StartSession
from portico.kernel.events import Message
from tests.doors.ahp.wire_client import WireClient, opened
from tests.doors.standing import Standing, read_events, standing


async def project_of(here: Standing) -> dict[str, Any]:
    (found,) = (await here.http.get("/sessions")).json()
    return dict(found)


@pytest.mark.parametrize("version", ["1", "0.5.1", "1.0.0"])
async def test_a_chat_of_vscode_is_bridged(tmp_path: Path, version: str) -> None:
    async with standing(tmp_path) as here, here.http.stream("GET", "/events") as events:
        project = await project_of(here)
        address = f"{here.url.replace('http', 'ws')}/ahp?tkn={here.home.token()}"
        async with opened(WireClient(address, "editor", version)) as editor:
            await editor.initialize()
            chat = await editor.create_session("scripted:/one", workingDirectory=Path(project["path"]).as_uri())
            await editor.say(chat, "turn-1", "[[say:Hello]]")
            got = [data for _, data in await read_events(events, 3)]
        ids = {each["id"] for each in got}
        assert len(ids) == 1
        assert {each["sessionId"] for each in got} == {project["id"]}
        assert (got[0]["text"], got[1]["fragment"].strip()) == ("[[say:Hello]]", "Hello")
        assert got[2]["outcome"] == "completed"
        told = (await here.http.get(f"/sessions/{project['id']}")).json()["messages"]
        assert [(each["type"], each["id"] in ids) for each in told] == [
            ("inbound", True),
            ("outbound", True),
            ("done", True),
        ]
        assert (await project_of(here))["count"] == 1


STARTS: list[tuple[str, str, bool]] = [
    ("token:owner", ".", True),
    ("token:owner", "below", True),
    ("client:editor", ".", True),
    ("token:owner", "..", False),
    ("task:task-1", ".", False),
]


@pytest.mark.parametrize(("by", "folder", "bridged"), STARTS)
async def test_which_sessions_belong_to_a_project(tmp_path: Path, by: str, folder: str, bridged: bool) -> None:
    (tmp_path / "project/below").mkdir(parents=True)
    async with standing(tmp_path, flags={"workspaces": [str(tmp_path / "project")]}) as here:
        project = await project_of(here)
        host = here.server.host
        session = await host.start(agent="scripted", by=by, cwd=str((tmp_path / "project" / folder).resolve()))
        await session.wait(await session.send(Message("[[say:x]]"), by=by))
        told = (await here.http.get(f"/sessions/{project['id']}")).json()["messages"]
        assert bool(told) is bridged
        async with here.http.stream("GET", f"/events?session={project['id']}&after=0") as events:
            await session.wait(await session.send(Message("[[say:y]]"), by=by))
            own = await here.http.post("/message", json={"text": "[[say:z]]", "agent": "scripted"})
            found = [data for _, data in await read_events(events, 1 + 6 * bridged)]
        own_id = own.json()["id"]
        assert any(each["id"].startswith(f"{session.id}.") for each in found) is bridged
        assert bridged or found[0]["id"] == own_id


async def test_a_sub_agent_is_not_a_chat_of_the_project(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        project = await project_of(here)
        host = here.server.host
        parent = await host.start(agent="scripted", by="token:owner", cwd=project["path"])
        child = StartSession(agent="scripted", cwd=project["path"], parent=parent.id)
        made = await host.get((await host.do(child, Caller.inside("test"))).id)
        await made.wait(await made.send(Message("[[say:x]]"), by="test"))
        assert (await here.http.get(f"/sessions/{project['id']}")).json()["messages"] == []


async def test_the_innermost_project_counts(tmp_path: Path) -> None:
    (tmp_path / "outer/inner").mkdir(parents=True)
    async with standing(tmp_path, flags={"workspaces": [str(tmp_path / "outer")]}) as here:
        session = await here.server.host.start(agent="scripted", by="token:owner", cwd=str(tmp_path / "outer/inner"))
        await session.wait(await session.send(Message("[[say:x]]"), by="token:owner"))
        outer = await project_of(here)
        assert outer["count"] == 1
        inner = (await here.http.post("/sessions", json={"path": str(tmp_path / "outer/inner")})).json()
        counts = {each["id"]: each["count"] for each in (await here.http.get("/sessions")).json()}
        assert counts == {outer["id"]: 0, inner["id"]: 1}


async def test_chats_stay_in_their_project_after_a_restart(tmp_path: Path) -> None:
    for count in (1, 2, 3):
        async with standing(tmp_path) as here:
            project = await project_of(here)
            assert project["count"] == count - 1
            session = await here.server.host.start(agent="scripted", by="token:owner", cwd=project["path"])
            await session.wait(await session.send(Message("[[say:x]]"), by="token:owner"))
            assert (await project_of(here))["count"] == count
