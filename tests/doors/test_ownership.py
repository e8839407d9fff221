"""What belongs to one person and was not shared does not exist for another: through every door, from the tables of
commands and routes themselves, so that a new command, route or list is in here by being there."""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from websockets.asyncio.client import connect

from portico import limits
from portico.features.people.people import add_person
from portico.features.projects.projects import ProjectConversation, Projects
from portico.features.transcripts.archive import Archive, import_archive
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.state import CallPart
from portico.server.identity import new_token
from portico.server.route import Route
from tests.doors.ahp.wire_client import Refused, WireClient, opened
from tests.doors.standing import TOOLS, Standing, standing
from tests.features import feature
from tests.host.test_do import sample
from tests.jobs.playing import make, task, until_ended

SCRIPT = """
providers: [{id: scripted, name: Scripted}]
rules:
  - match: "write (?P<name>\\\\S+)"
    steps: [{do: write, path: "{name}", text: hello}]
  - match: ""
    steps: [{do: say, text: "{prompt}"}]
"""
CANARY = "tangerine"
"""Said by alice in everything that is hers."""


class World:
    """A host with three people. Of alice's there are a session in which an approval waits, a terminal, a job that has
    ended with its task, and a grant; of bob's nothing yet; carol is an admin."""

    def __init__(self, here: Standing, folder: Path) -> None:
        self.here = here
        self.host = here.server.host
        self.folder = folder
        self.tokens: dict[str, str] = {}
        self.clients: dict[str, httpx.AsyncClient] = {"owner": here.http}
        self.ids: dict[str, str] = {}

    async def open(self) -> None:
        for name, scopes in (("alice", c.SCOPES[:-1]), ("bob", c.SCOPES[:-1]), ("carol", c.SCOPES)):
            add_person(self.here.home, name, scopes)
            self.tokens[name] = new_token(self.here.home, "laptop", list(c.SCOPES), person=name, tools=TOOLS)
            self.clients[name] = self.here.client(self.tokens[name])
        session = self.ids["session"] = await self.start("alice", title=CANARY)
        await self.do("alice", "message.send", session=session, text=f"write {CANARY}.txt")
        state = await (await self.host.get(session)).wait_until(lambda state: state.status == "waiting")
        calls = [part for turn in state.turns for part in turn.parts if isinstance(part, CallPart)]
        self.ids["approval"] = self.ids["question"] = next(call.approval.id for call in calls if call.approval)
        opened_ = await self.do("alice", "terminal.open", cwd=str(self.folder), title=CANARY)
        self.ids["terminal"] = opened_["id"]
        plan = msgspec.to_builtins(make({CANARY: task(f"[[say:{CANARY}]]")}))
        job = await self.do("alice", "job.run", job="main", cwd=str(self.folder), entry=plan, input=CANARY)
        self.ids["job"] = job["job"]
        await until_ended(self.host.log, f"job/{job['job']}")
        self.ids["task"] = next(each for each in self.host.log.channels("task/")).removeprefix("task/")
        grant = await self.do(
            "alice", "grant.add", agent="scripted", tool=CANARY, allow=True, project=str(self.folder), seconds=600
        )
        self.ids["grant"] = grant["id"]

    async def start(self, who: str, **body: Any) -> str:
        answer = await self.clients[who].post("/v1/sessions", json={"agent": "scripted", **body})
        assert answer.status_code == 201, answer.text
        ident: str = answer.json()["id"]
        return ident

    async def do(self, who: str, command: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.clients[who].post("/v1/commands", json={"command": command, "arguments": arguments})
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def get(self, who: str, path: str) -> httpx.Response:
        return await self.clients[who].get(path)

    def heads(self) -> list[int]:
        """Of her channels that do not go on by themselves."""
        return [self.host.log.head(f"{kind}/{self.ids[kind]}") for kind in ("session", "job", "task")]

    def editor(self, who: str, version: str = "1.0.0") -> WireClient:
        address = self.here.url.replace("http", "ws") + f"/?tkn={self.tokens[who]}"
        return WireClient(address, f"editor-{who}-{version}", version)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("owned")
    script = folder / "script.yaml"
    script.write_text(SCRIPT)
    async with standing(folder, script=script, agents=("scripted",)) as here:
        world = World(here, folder)
        await world.open()
        yield world
        for client in world.clients.values():
            await client.aclose()


# -- commands --------------------------------------------------------------------------------------------------


def without(text: str, *idents: str) -> str:
    for ident in idents:
        text = text.replace(ident, "ID")
    return text


HOSTS_OWN = ("automation", "run", "token")
"""What is nobody's in particular: an admin's, on a host with people."""
EVERYBODYS = ("host", "project")
"""A project is a folder; the conversations in it are somebody's, see below."""


@pytest.mark.parametrize("name", [name for name, kind in c.COMMANDS.items() if kind.about in HOSTS_OWN])
async def test_a_command_about_what_is_the_hosts(world: World, name: str) -> None:
    kind = c.COMMANDS[name]
    said = msgspec.to_builtins(sample(kind))
    body = {key: value for key, value in said.items() if key != "command" and key not in kind.private}
    answer = await world.clients["bob"].post("/v1/commands", json={"command": name, "arguments": body})
    assert (answer.status_code, "admin" in answer.text) == (403, True), answer.text


@pytest.mark.parametrize(
    "name", [name for name, kind in c.COMMANDS.items() if kind.about not in (*EVERYBODYS, *HOSTS_OWN)]
)
async def test_a_command_about_what_is_not_ones_own(world: World, name: str) -> None:
    """It is refused with the words for an id of nothing, by both ways in, and nothing is written."""
    kind = c.COMMANDS[name]
    ident, nothing = world.ids[kind.about], f"{world.ids[kind.about][:4]}-none-9.a9"
    before = world.heads()
    answers = []
    for subject in (ident, nothing):
        said = msgspec.to_builtins(sample(kind, **{kind.about: subject}))
        body = {key: value for key, value in said.items() if key != "command" and key not in kind.private}
        client = world.clients["bob"]
        answers.append(await client.post("/v1/commands", json={"command": name, "arguments": body}))
        if kind.http is not None:
            path = kind.http.path.replace("{id}", subject)
            del body[kind.about]
            for field in [each for each in body if f"{{{each}}}" in path]:
                path = path.replace(f"{{{field}}}", str(body.pop(field)))
            sent = None if kind.http.method == "DELETE" else body
            answers.append(await client.request(kind.http.method, path, json=sent))
    half = len(answers) // 2
    for own, none in zip(answers[:half], answers[half:], strict=True):
        assert (own.status_code, without(own.text, ident)) == (404, without(none.text, nothing)), own.text
    assert world.heads() == before


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("grant.add", {"agent": "scripted", "tool": "x", "allow": True, "session": "{session}"}),
        ("terminal.open", {"session": "{session}"}),
        ("chat.move", {"session": "{own}", "to": "{session}"}),
    ],
)
async def test_a_command_that_names_anothers_session_besides(
    world: World, name: str, arguments: dict[str, Any]
) -> None:
    ids = {"{session}": world.ids["session"], "{own}": await world.start("bob")}
    said = {key: ids.get(str(value), value) for key, value in arguments.items()}
    answer = await world.clients["bob"].post("/v1/commands", json={"command": name, "arguments": said})
    assert answer.status_code == 404, answer.text


async def test_a_parent_or_source_is_checked_where_only_editors_name_it(world: World) -> None:
    bob = c.Caller("b", "bob", frozenset(c.SCOPES[:-1]), person="bob")
    theirs = world.ids["session"]
    for command in (
        c.StartSession(agent="scripted", parent=theirs),
        c.StartSession(agent="scripted", origin=e.Origin("fork", theirs)),
    ):
        with pytest.raises(Exception, match="There is no session"):
            await world.host.do(command, bob)


async def test_a_grant_counts_in_the_sessions_of_who_gave_it(world: World) -> None:
    """A grant of alice's for a folder must not let bob's agents pass there, nor the other way round."""
    mine = await world.start("bob", cwd=str(world.folder))
    given = {"agent": "scripted", "tool": "*", "allow": True, "project": str(world.folder)}
    await world.do("alice", "grant.add", **given)
    await world.do("bob", "message.send", session=mine, text="write other.txt")
    state = await (await world.host.get(mine)).wait_until(lambda state: state.status in ("waiting", "idle"))
    assert state.status == "waiting"
    await world.do("bob", "session.close", session=mine)


async def test_settings_for_everybody_are_an_admins(world: World) -> None:
    """Editors push rules of approval to the host, where they count for all."""
    values = {"values": {"autoApprove": True, "approvals": "allow", "toolAutoApprove": "allow"}}
    answer = await world.clients["bob"].post("/v1/commands", json={"command": "host.configure", "arguments": values})
    assert answer.status_code == 403, answer.text


# -- reading ---------------------------------------------------------------------------------------------------

_PARAMETERS = {"token": "t", "token:path": "t", "digest": "0" * 64, "name": "x", "rest:path": "x", "name:path": "x"}


def reading(world: World) -> list[tuple[str, str]]:
    """Every GET of the whole server, about what is alice's where it is about something; and what it is asked for."""
    queries = {"/v1/search": f"?q={CANARY}", "/v1/sessions/{id}/suggestions": "?q=/"}
    gate = world.here.server.gate
    found = []
    for route in gate.table:
        if not isinstance(route, Route) or "GET" not in route.methods or route.scope in ("open", "admin"):
            continue
        if any(part in route.path for part in ("/api/stop", "/start/", "/query", "/stop", "installJobs")):
            continue  # GETs that change something: the commands behind them are above
        kind = next((kind for kind in ("job", "task", "terminal") if f"/{kind}" in route.path), "session")
        if any(part in route.path for part in ("/automations", "/runs", "/native-sessions")):
            continue  # refused as a whole, below
        path = route.path
        for part in [part for part in path.split("/") if part.startswith("{")]:
            name = part[1:-1]
            path = path.replace(part, _PARAMETERS.get(name) or world.ids.get(name) or world.ids[kind])
        limit = "?limit=1000" if "limit" in route.doc.get("query", {}) else ""
        found.append((path, queries.get(route.path, limit)))
    return found


async def test_no_answer_tells_of_what_is_not_ones_own(world: World) -> None:
    """Lists, single things, exports, files, live polls, search, usage: alice's canary is in none of bob's answers, and
    it is in alice's, so the test would see it."""
    seen = {"alice": 0, "bob": 0}
    for path, query in reading(world):
        for who in seen:
            # A stream begins by itself; its head and first bytes are enough here.
            async with asyncio.timeout(20), world.clients[who].stream("GET", path + query) as answer:
                stream = "event-stream" in answer.headers.get("content-type", "")
                text = "" if stream else (await answer.aread()).decode("utf-8", "replace")
            assert answer.status_code < 500, (path, text)
            seen[who] += CANARY in text
            if who == "bob":
                shown = text.replace(path, "")  # an error may say what was asked for
                assert CANARY not in shown, (path, text)
    assert seen["alice"] >= 10
    assert seen["bob"] == 0


async def test_single_things_are_not_found(world: World) -> None:
    for path, query in reading(world):
        if any(ident in path for ident in world.ids.values()):
            async with asyncio.timeout(20):
                answer = await world.get("bob", path + query)
            text = answer.text
            assert answer.status_code == 404 or "NotFound" in text, (path, answer.status_code, text)


async def test_a_wrong_body_tells_nothing_of_what_is_not_ones_own(world: World) -> None:
    """A body that is wrong is named to those who may know that the thing is there, and to nobody else."""
    for kind in (kind for kind in c.COMMANDS.values() if kind.http is not None and kind.about in world.ids):
        assert kind.http is not None
        if "{id}" not in kind.http.path or kind.http.method == "DELETE":
            continue
        answers = []
        for ident in (world.ids[kind.about], "nosuch-1"):
            path = re.sub(r"{\w+}", "x", kind.http.path.replace("{id}", ident))
            answer = await world.clients["bob"].request(kind.http.method, path, json={"no such field": 1})
            answers.append((answer.status_code, without(answer.text, ident)))
        assert answers[0] == answers[1], kind


async def test_what_is_the_hosts_is_an_admins(world: World) -> None:
    for path in (
        "/v1/agents/x/native-sessions",
        "/v1/automations",
        "/v1/automations/x",
        "/v1/automations/x/runs",
        "/v1/runs",
        "/v1/runs/x",
    ):
        assert (await world.get("bob", path)).status_code == 403, path
        assert (await world.get("carol", path)).status_code in (200, 404), path


async def test_the_counts_are_ones_own(world: World) -> None:
    about = [{who: (await world.get(who, "/v1")).json() for who in ("alice", "bob", "owner")}]
    assert about[0]["alice"]["running"] == about[0]["owner"]["running"] == 1
    assert about[0]["bob"]["running"] == 0
    one_more = await world.start("alice")
    about.append({who: (await world.get(who, "/v1")).json() for who in ("alice", "bob", "owner")})
    await world.do("alice", "session.delete", session=one_more)
    more = {who: about[1][who]["sessions"] - about[0][who]["sessions"] for who in about[0]}
    assert more == {"alice": 1, "bob": 0, "owner": 1}
    assert (await world.get("bob", "/metrics")).status_code == 403
    assert (await world.get("owner", "/metrics")).status_code == 200


async def events_of(world: World, who: str, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        after = found[-1]["seq"] if found else 0
        page = (await world.get(who, f"{path}after={after}")).json()
        if not page["events"]:
            return found
        found += page["events"]


async def test_the_feed_of_everything(world: World) -> None:
    everything = await events_of(world, "owner", "/v1/events?")
    own = await events_of(world, "alice", "/v1/events?")
    others = await events_of(world, "bob", "/v1/events?")
    assert CANARY in json.dumps(own)
    assert CANARY not in json.dumps(others)
    kinds = {channel.partition("/")[0] for channel in (each["channel"] for each in own)}
    assert {"session", "terminal", "job", "task", "host"} <= kinds
    places = [each["pos"] for each in others if each["channel"] == "host"]
    assert places == [each["pos"] for each in everything if each["channel"] == "host"], "no place is missing"


async def test_channels_by_name(world: World) -> None:
    for kind in ("session", "terminal", "job", "task"):
        path = f"/v1/events?channel={kind}/{world.ids[kind]}"
        assert ((await world.get("alice", path)).status_code, (await world.get("bob", path)).status_code) == (200, 404)


async def test_the_live_feed_and_the_board(world: World) -> None:
    """Something of alice's, then something of bob's: the first thing that bob's streams tell is bob's."""
    address = world.here.url.replace("http", "ws")
    headers = {"Authorization": f"Bearer {world.tokens['bob']}"}
    async with (
        asyncio.timeout(30),
        connect(f"{address}/v1/board/socket", additional_headers=headers) as board,
        world.clients["bob"].stream(
            "GET", f"/v1/events?after={world.host.log.seq}", headers={"Accept": "text/event-stream"}
        ) as feed,
    ):
        first = json.loads(await board.recv())
        assert world.ids["session"] not in json.dumps(first)
        await world.do("alice", "session.rename", session=world.ids["session"], title=f"{CANARY} again")
        mine = await world.start("bob", title="of bob")
        text = ""
        async for piece in feed.aiter_text():
            text += piece
            if mine in text:
                break
        shown = ""
        while mine not in shown:
            shown += str(await board.recv())
    assert CANARY not in text + shown
    assert world.ids["session"] not in shown


# -- editors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1", "1.0.0"])
async def test_editors(world: World, version: str) -> None:
    """The list, the root, every channel of the session, its terminal, its files: bob's editor finds nothing."""
    session = await world.start("alice", title=CANARY)
    async with opened(world.editor("alice", version)) as hers, opened(world.editor("bob", version)) as his:
        for each in (hers, his):
            await each.initialize(each.root)
        listed = await hers.request("listSessions")
        name = next(each["resource"] for each in listed["items"] if session in each["resource"])
        assert CANARY not in json.dumps(await his.request("listSessions"))
        assert CANARY not in json.dumps(his.states)
        assert CANARY in json.dumps(hers.states), "her terminal is in the root's state"
        channels = [name, f"ahp-terminal:/{world.ids['terminal']}"]
        if version != "1":
            ids = world.ids["session"]
            channels += [f"{name}/changeset/uncommitted", f"ahp-changeset:/{ids}/uncommitted", f"ahp-chat:/{session}"]
        for channel in channels:
            with pytest.raises(Refused) as refused:
                await his.subscribe(channel)
            assert "There is no" in str(refused.value), channel
        field = "session" if version == "1" else "channel"
        with pytest.raises(Refused):
            await his.request("disposeSession", **{field: name})
        await hers.subscribe(name)
        await world.do("alice", "message.send", session=session, text=CANARY)
        found = await world.host.get(session)
        await found.wait_until(lambda state: bool(state.turns) and state.active is None)
        mine = await world.start("bob", title="of bob")
        await his.wait(lambda: mine in json.dumps(his.notices))
        assert CANARY not in json.dumps([his.notices, his.envelopes])


async def test_tools_of_mcp(world: World) -> None:
    async def call(who: str, name: str, **arguments: Any) -> str:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        return (await world.clients[who].post("/mcp", json=body)).text

    for name, arguments in (
        ("list_sessions", {}),
        ("list_jobs", {}),
        ("read_session", {"session": world.ids["session"]}),
        ("wait_session", {"session": world.ids["session"], "wait": 0}),
        ("send_message", {"session": world.ids["session"], "text": "x", "wait": 0}),
        ("cancel_turn", {"session": world.ids["session"]}),
        ("answer_approval", {"approval": world.ids["approval"], "allow": False}),
        ("read_job", {"id": world.ids["job"]}),
        ("stop_job", {"id": world.ids["job"]}),
    ):
        answer = await call("bob", name, **arguments)
        assert CANARY not in answer, (name, answer)
        assert not arguments or "There is no" in answer or "installJobsEntry" in answer, (name, answer)
    assert CANARY in await call("alice", "read_session", session=world.ids["session"])


async def test_conversations_of_projects(world: World) -> None:
    """The Anywhere door chooses a session by itself: everybody their own."""
    sent = {}
    for who in ("alice", "bob", "owner"):
        answer = await world.clients[who].post("/message", json={"text": f"{CANARY} of {who}"})
        assert answer.status_code == 202, answer.text
        sent[who] = answer.json()["id"].rpartition(".")[0]
        found = await world.host.get(sent[who])
        await found.wait_until(lambda state: bool(state.turns) and state.active is None)
    assert len(set(sent.values())) == 3
    project = (await world.get("bob", "/sessions")).json()[0]["id"]
    stored = (await world.get("bob", f"/sessions/{project}")).text + (await world.get("bob", "/context")).text
    assert "of bob" in stored
    assert "of alice" not in stored
    assert "of owner" not in stored
    assert (await world.do("bob", "project.open", project=project))["id"] == sent["bob"]
    await world.do("bob", "project.clear", project=project)
    assert "of bob" not in (await world.get("bob", f"/sessions/{project}")).text
    assert "of alice" in (await world.get("alice", f"/sessions/{project}")).text


async def test_files_of_sessions(world: World, tmp_path: Path) -> None:
    """Where only alice works, only alice writes."""
    await world.start("alice", cwd=str(tmp_path))
    said = {"path": str(tmp_path / "new.txt"), "data": "x"}
    for who, status in (("bob", 403), ("alice", 200), ("carol", 200)):
        answer = await world.clients[who].post("/v1/commands", json={"command": "file.write", "arguments": said})
        assert answer.status_code == status, (who, answer.text)


async def test_the_archive(world: World) -> None:
    session = await world.start("alice", title=CANARY)
    await world.do("alice", "session.archive", session=session, archived=True)
    hers, his = [(await world.get(who, "/v1/board?archived=true")).json() for who in ("alice", "bob")]
    assert (session in json.dumps(hers), session in json.dumps(his), his["archived"]) == (True, False, 0)


async def test_a_terminal_that_is_gone(world: World) -> None:
    """Its story stays in the log, and hers: also for a host that has learned of it only now."""
    opened_ = await world.do("alice", "terminal.open", cwd=str(world.folder), title=CANARY)
    await world.do("alice", "terminal.close", terminal=opened_["id"])
    for forgets in (False, True):
        if forgets:
            world.host.ownership._known.clear()
        async with opened(world.editor("alice")) as hers, opened(world.editor("bob")) as his:
            for each in (hers, his):
                await each.initialize(each.root)
            with pytest.raises(Refused, match="There is no"):
                await his.subscribe(f"ahp-terminal:/{opened_['id']}")
            await hers.subscribe(f"ahp-terminal:/{opened_['id']}")
        path = f"/v1/events?channel=terminal/{opened_['id']}"
        assert [(await world.get(who, path)).status_code for who in ("alice", "bob")] == [200, 404]


async def test_automations_of_editors(world: World) -> None:
    async with opened(world.editor("carol")) as hers, opened(world.editor("bob")) as his:
        offered = [await each.initialize(each.root) for each in (hers, his)]
        assert ["automations" in json.dumps(each) for each in offered] == [True, False]
        for channel in ("ahp-automations://", "ahp-automation-run:/run-1"):
            with pytest.raises(Refused, match="admin"):
                await his.subscribe(channel)
        with pytest.raises(Refused, match="admin"):
            await his.request("fetchAutomationRuns", channel="ahp-automations://", automation="x")
        await hers.subscribe("ahp-automations://")


async def test_tools_for_automations(world: World) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    hers, his = [(await world.clients[who].post("/mcp", json=body)).text for who in ("carol", "bob")]
    assert ("create_automation" in hers, "list_automations" in hers) == (True, True)
    assert "automation" not in his


# -- sharing ---------------------------------------------------------------------------------------------------


async def tried(world: World, session: str, who: str = "bob") -> tuple[int, int, int]:
    """The status of reading, driving and approving."""
    client = world.clients[who]
    read = await client.get(f"/v1/sessions/{session}")
    drive = await client.post(
        "/v1/commands", json={"command": "session.read", "arguments": {"session": session, "read": True}}
    )
    folder = {"session": session, "folder": str(world.folder)}
    approve = await client.post("/v1/commands", json={"command": "folder.add", "arguments": folder})
    return read.status_code, drive.status_code, approve.status_code


@pytest.mark.parametrize(
    ("rights", "allowed"),
    [
        (["read"], (True, False, False)),
        (["drive"], (True, True, False)),
        (["approve"], (True, False, True)),
        (["drive", "approve"], (True, True, True)),
    ],
)
@pytest.mark.parametrize("person", ["bob", "*"])
async def test_sharing(world: World, person: str, rights: list[str], allowed: tuple[bool, ...]) -> None:
    session = await world.start("alice")
    assert await tried(world, session) == (404, 404, 404)
    await world.do("alice", "session.share", session=session, person=person, rights=rights)
    for status, ok in zip(await tried(world, session), allowed, strict=True):
        assert (status != 403) is ok, (rights, status)
    listed = (await world.get("bob", "/v1/sessions")).json()["sessions"]
    shared = next(each for each in listed if each["id"] == session)
    assert (shared["owner"], shared["shares"]) == ("alice", {person: rights})
    for command in ("session.delete", "chat.move", "session.share", "session.unshare"):
        body: dict[str, Any] = {"session": session} | ({"person": "bob"} if command.endswith("share") else {})
        answer = await world.clients["bob"].post("/v1/commands", json={"command": command, "arguments": body})
        assert answer.status_code == 403, "only who owns it"
    await world.do("alice", "session.unshare", session=session, person=person)
    assert await tried(world, session) == (404, 404, 404)


async def test_a_message_to_a_project_is_found_by_its_person_only(world: World) -> None:
    """Through every way to read: search, the project's history and context, and the stream of all events."""
    host, word = world.host, "clementine"
    old = await host.start(by="token:owner", agent="scripted", cwd=str(world.folder))
    project = (await world.get("bob", "/sessions")).json()[0]["id"]
    feature(host, Projects)._begin(old.id, ProjectConversation(project, "scripted"))
    sent = await world.clients["alice"].post("/message", json={"text": f"say {word}", "sessionId": project})
    assert sent.status_code == 202, sent.text
    async with asyncio.timeout(20):
        found = [host.find(each) for each in feature(host, Projects).sessions(project, lambda _: True)]
        mine = next(each for each in found if each is not None and each.summary.owner == "alice")
        await mine.wait_until(lambda state: bool(state.turns) and state.active is None)
    for path in (f"/v1/search?q={word}", f"/sessions/{project}", f"/context?session={project}", "/v1/events?wait=0"):
        assert word not in (await world.get("bob", path)).text, path
    assert word in (await world.get("alice", f"/sessions/{project}")).text
    assert old.state.turns == []


NAMING: dict[str, tuple[str, dict[str, Any]]] = {
    "an attachment": ("message.send", {"text": "x", "attachments": [{"type": "resource", "blob": "{digest}"}]}),
    "the text": ("message.send", {"text": '{"type":"tool.ended","blob":"{digest}"}'}),
    "settings": ("session.configure", {"values": {"blob": "{digest}"}}),
    "shared data": ("client.share", {"key": "k", "value": {"blob": "{digest}"}}),
    "a title": ("session.rename", {"title": '"blob":"{digest}"'}),
}


@pytest.mark.parametrize("way", NAMING)
async def test_a_hash_in_a_text_opens_no_blob(world: World, way: str) -> None:
    """Bug: a message that named the digest of another person's blob let its sender open and export that blob."""
    data = f"alice's own output {way}".encode()
    digest = await world.host.log.put_blob(data)
    hers = await world.start("alice")
    ended = e.ToolEnded(turn="t", call="c", ok=True, blob=digest)
    await world.host.log.append(f"session/{hers}", ended)
    mine, (command, arguments) = await world.start("bob"), NAMING[way]
    said = json.loads(json.dumps(arguments).replace("{digest}", digest))
    body = {"command": command, "arguments": {"session": mine, **said}}
    answer = await world.clients["bob"].post("/v1/commands", json=body)
    assert answer.is_success, answer.text
    await (await world.host.get(mine)).wait_until(lambda state: state.active is None)
    await world.host.log.flush()
    assert (await world.get("alice", f"/v1/blobs/{digest}")).content == data
    assert (await world.get("bob", f"/v1/blobs/{digest}")).status_code == 404
    exported = (await world.get("bob", f"/v1/sessions/{mine}/export?format=archive")).text
    assert base64.b64encode(data).decode() not in exported
    assert f"session/{mine}" not in await world.host.log.blob_users(digest)


async def test_an_archive_that_names_a_blob_without_its_content_opens_none(world: World) -> None:
    digest = await world.host.log.put_blob(b"alice's own output in an archive")
    hers = await world.start("alice")
    await world.host.log.append(f"session/{hers}", e.ToolEnded(turn="t", call="c", ok=True, blob=digest))
    call = {"part": "call", "id": "c1", "tool": "look", "done": True, "ok": True, "blob": digest}
    steps = [{"step": 1, "parts": 0, "blob": digest}]
    turn = {
        "id": "t1",
        "message": {"text": "x"},
        "by": "bob",
        "started": 1,
        "pos": 1,
        "outcome": "completed",
        "parts": [call],
        "steps": steps,
    }
    archive = Archive(1, "s", "scripted", turns=[turn])
    imported = await import_archive(world.host, archive, by="person:bob", cwd=str(world.folder), owner="bob")
    assert imported.state.turns[0].parts[0].blob is None  # type: ignore[union-attr]
    await world.host.log.flush()
    assert (await world.get("bob", f"/v1/blobs/{digest}")).status_code == 404


async def test_so_many_people_by_name(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SHARES", 2)
    session = await world.start("alice")
    shared = {"session": session}
    for person in ("bob", "carol", "*", "dave"):
        body = {"command": "session.share", "arguments": {**shared, "person": person, "rights": ["drive"]}}
        answer = await world.clients["alice"].post("/v1/commands", json=body)
        assert answer.is_success is (person != "dave"), answer.text
    assert (answer.status_code, "at most 2 people" in answer.text) == (429, True)


async def test_a_family_belongs_to_its_root(world: World) -> None:
    """A fork in a shared session is the owner's, and shared with it."""
    session = await world.start("alice")
    await world.do("alice", "message.send", session=session, text="x")
    await (await world.host.get(session)).wait_until(lambda state: bool(state.turns) and state.active is None)
    fork = (await world.do("alice", "session.fork", session=session))["id"]
    assert (await world.get("bob", f"/v1/sessions/{fork}")).status_code == 404
    await world.do("alice", "session.share", session=session, person="bob", rights=["read"])
    assert (await world.get("bob", f"/v1/sessions/{fork}")).status_code == 200
    answer = await world.clients["bob"].post(f"/v1/sessions/{fork}/fork", json={})
    assert answer.status_code == 403


async def test_streams_end_when_sharing_does(world: World) -> None:
    session = await world.start("alice")
    await world.do("alice", "session.share", session=session, person="bob", rights=["read"])
    headers = {"Accept": "text/event-stream"}
    async with (
        asyncio.timeout(30),
        world.clients["bob"].stream("GET", f"/v1/sessions/{session}/events", headers=headers) as feed,
        opened(world.editor("bob")) as his,
    ):
        await his.initialize(his.root)
        listed = await his.request("listSessions")
        name = next(each["resource"] for each in listed["items"] if session in each["resource"])
        await his.subscribe(name)
        await world.do("alice", "session.unshare", session=session, person="bob")
        await his.wait(lambda: "sessionRemoved" in json.dumps(his.notices))
        await world.do("alice", "session.rename", session=session, title=CANARY)
        text = "".join([piece async for piece in feed.aiter_text()])
        with pytest.raises(Refused):
            await his.subscribe(name)
        assert CANARY not in text + json.dumps([his.envelopes, his.notices])


async def test_people_see_a_session_come_when_it_is_shared(world: World) -> None:
    session = await world.start("alice", title="for bob")
    async with opened(world.editor("bob")) as his:
        await his.initialize(his.root)
        await world.do("alice", "session.share", session=session, person="bob", rights=["read"])
        await his.wait(lambda: session in json.dumps(his.notices))


# -- admins, and one person alone ------------------------------------------------------------------------------


async def test_an_admin_sees_all_and_it_is_written_down(world: World) -> None:
    session = await world.start("alice")
    assert await tried(world, session, "carol") != (404, 404, 404)
    await world.host.log.flush()
    audit = (await world.get("owner", "/v1/audit")).json()["audit"]
    visits = [each for each in audit if each["action"] == "admin.access"]
    mine = [each for each in visits if each["detail"]["of"] == f"session/{session}"]
    assert [(each["by"], each["detail"]["owner"]) for each in mine] == [("person:carol", "alice")], "once, not thrice"


async def test_the_owner_and_what_has_no_owner(world: World) -> None:
    """Tokens without a person see everything; what they start while there are people is not everybody's. A session of
    an old log has no owner, and stays everybody's."""
    theirs = await world.start("owner")
    old = await world.host.start(by="token:owner", agent="scripted")
    assert (await world.get("owner", f"/v1/sessions/{world.ids['session']}")).status_code == 200
    assert (await world.get("bob", f"/v1/sessions/{theirs}")).status_code == 404
    assert (await world.get("bob", f"/v1/sessions/{old.id}")).status_code == 200


async def test_one_person_alone_has_no_owners(tmp_path: Path) -> None:
    async with standing(tmp_path) as here:
        session = await here.start()
        state = (await here.http.get(f"/v1/sessions/{session}")).json()
        assert "owner" not in state
        assert "shares" not in state
