"""Door × action × role: what a stranger, whom a session is shared with, its owner and an admin can do with it. The
list and the single thing agree, and a right to drive is no right to approve."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from portico.doors.ahp.wire import uri
from portico.features.notices.notice import Delivery, Notice
from portico.features.notices.notices import Notices
from portico.features.terminals.terminals import Terminals
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.errors import Forbidden, NotFound
from portico.kernel.state import CallPart
from tests.doors.ahp.wire_client import Refused, WireClient, opened
from tests.doors.standing import standing
from tests.doors.test_ownership import CANARY, World, anyio_backend
from tests.features import feature
from tests.free import FREE

__all__ = ["anyio_backend"]

SCRIPT = """
providers:
  - id: scripted
    name: Scripted
    autonomy: {mode: {yolo: asks-nobody}}
rules:
  - match: "write (?P<name>\\\\S+)"
    steps: [{do: write, path: "{name}", text: hello}]
  - match: ""
    steps: [{do: say, text: "{prompt}"}]
"""
OWN = frozenset(("read", "drive", "approve", "own"))
ROLES: dict[str, tuple[str, frozenset[str]]] = {
    "stranger": ("bob", frozenset()),
    "read": ("bob", frozenset(("read",))),
    "drive": ("bob", frozenset(("read", "drive"))),
    "approve": ("bob", frozenset(("read", "approve"))),
    "drive and approve": ("bob", frozenset(("read", "drive", "approve"))),
    "owner": ("alice", OWN),
    "admin": ("carol", OWN),
}


@dataclass
class Scene:
    """A session of alice's with a waiting approval, and somebody who tries."""

    world: World
    who: str
    session: str
    approval: str = ""
    turn: str = ""
    call: str = ""

    @property
    def http(self) -> httpx.AsyncClient:
        return self.world.clients[self.who]

    def editor(self) -> WireClient:
        return self.world.editor(self.who)


Try = Callable[[Scene], Awaitable[bool]]
"""Whether it was let through. What has become impossible meanwhile (a second answer) was let through."""
REFUSED = ("There is no", "is not shared with you", "only they may", "the right to approve")


def get(path: str, of: str = "") -> Try:
    """Whether the answer shows it (`of` a list: names it)."""

    async def run(scene: Scene) -> bool:
        answer = await scene.http.get(path.format(s=scene.session, q=CANARY))
        found = answer.status_code == 200 and "NotFound" not in answer.text
        wanted = of.format(s=scene.session, a=scene.approval)
        assert answer.status_code in (200, 404), answer.text
        return found and wanted in answer.text

    return run


def do(command: str, **arguments: Any) -> Try:
    async def run(scene: Scene) -> bool:
        about = "approval" if command.startswith("approval") else "session"
        said = {about: getattr(scene, about), **arguments}
        answer = await scene.http.post("/v1/commands", json={"command": command, "arguments": said})
        assert answer.status_code < 500, answer.text
        return answer.status_code not in (403, 404)

    return run


def portal(path: str, body: str = "") -> Try:
    async def run(scene: Scene) -> bool:
        answer = await scene.http.post(f"/api/copilot/session/{scene.session}/{path}", content=body)
        return answer.status_code == 200 and "NotFound" not in answer.text

    return run


def tool(name: str, **arguments: Any) -> Try:
    async def run(scene: Scene) -> bool:
        said = {key: value.format(a=scene.approval) if isinstance(value, str) else value
                for key, value in arguments.items()}  # fmt: skip
        said = said if "approval" in said else {"session": scene.session, **said}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": said}}
        answer = (await scene.http.post("/mcp", json=body)).json()
        assert "result" in answer or "error" in answer, answer
        return not any(words in json.dumps(answer) for words in REFUSED)

    return run


def editor(act: Callable[[WireClient, Scene, str], Awaitable[Any]]) -> Try:
    """With the name of the session in this protocol. False: refused, whichever way."""

    async def run(scene: Scene) -> bool:
        name = f"scripted:/{scene.session}"
        async with opened(scene.editor()) as client:
            await client.initialize(client.root)
            try:
                answer = await act(client, scene, name)
            except Refused:
                return False
        return not isinstance(answer, dict) or not answer.get("rejectionReason")

    return run


async def said(client: WireClient, name: str, kind: str, **fields: Any) -> Any:
    """An action; whoever may not even listen says it all the same."""
    try:
        await client.subscribe(name)
    except Refused:
        await client.dispatch(name, kind, **fields)
        await client.request("listSessions")  # it is behind that
        raise
    return await client.act(name, kind, **fields)


async def _stream(scene: Scene) -> bool:
    headers = {"Accept": "text/event-stream"}
    path = f"/v1/sessions/{scene.session}/events"
    async with asyncio.timeout(30), scene.http.stream("GET", path, headers=headers) as answer:
        return answer.status_code == 200


async def _listed(client: WireClient, scene: Scene, name: str) -> Any:
    found = await client.request("listSessions")
    return {} if scene.session in json.dumps(found) else {"rejectionReason": "not in the list"}


async def _confirm(client: WireClient, scene: Scene, name: str) -> Any:
    fields = {"turnId": scene.turn, "toolCallId": scene.call, "approved": False, "reason": "denied"}
    return await said(client, uri.default_chat(name), "chat/toolCallConfirmed", **fields)


async def _side_chat(client: WireClient, scene: Scene, name: str) -> Any:
    return await client.request("createChat", channel=name, chat=f"ahp-chat:/side-{scene.session}-{scene.who}")


async def _child(scene: Scene) -> bool:
    """What editors can say: a conversation below this one, that asks nobody."""
    tokens = scene.world.here.server.tokens
    caller = tokens.by_token(scene.world.tokens[scene.who])
    assert caller is not None
    start = c.StartSession(agent="scripted", parent=scene.session, config={"mode": "yolo"})
    try:
        await scene.world.host.do(start, caller)
    except (Forbidden, NotFound):
        return False
    return True


YOLO = {"mode": "yolo"}
TABLE: list[tuple[str, str, set[str], Try]] = [
    ("rest", "show", {"read"}, get("/v1/sessions/{s}")),
    ("rest", "list", {"read"}, get("/v1/sessions?limit=1000", "{s}")),
    ("rest", "board", {"read"}, get("/v1/board", "{s}")),
    ("rest", "inbox", {"read"}, get("/v1/inbox", "{a}")),
    ("rest", "search", {"read"}, get("/v1/search?q={q}", "{s}")),
    ("rest", "export", {"read"}, get("/v1/sessions/{s}/export")),
    ("rest", "archive", {"read"}, get("/v1/sessions/{s}/archive")),
    ("rest", "events", {"read"}, get("/v1/sessions/{s}/events")),
    ("rest", "channel", {"read"}, get("/v1/events?channel=session/{s}")),
    ("rest", "stream", {"read"}, _stream),
    ("rest", "changes", {"read"}, get("/v1/sessions/{s}/changes")),
    ("rest", "queue", {"read"}, get("/v1/sessions/{s}/queue")),
    ("portal", "history", {"read"}, get("/api/copilot/session/{s}/history")),
    ("portal", "live", {"read"}, portal("live/t")),
    ("mcp", "read_session", {"read"}, tool("read_session")),
    ("mcp", "wait_session", {"read"}, tool("wait_session", wait=0)),
    ("ahp", "listSessions", {"read"}, editor(_listed)),
    ("ahp", "subscribe", {"read"}, editor(lambda client, scene, name: client.subscribe(name))),
    ("rest", "message", {"drive"}, do("message.send", text="more", busy="queue")),
    ("rest", "rename", {"drive"}, do("session.rename", title=CANARY)),
    ("rest", "draft", {"drive"}, do("draft.set", text="x")),
    ("rest", "configure", {"drive"}, do("session.configure", values={"x": 1})),
    ("rest", "terminal", {"drive"}, do("terminal.open")),
    ("portal", "query", {"drive"}, portal("query", "more")),
    ("mcp", "send_message", {"drive"}, tool("send_message", text="more", busy="queue", wait=0)),
    ("ahp", "rename", {"drive"}, editor(lambda client, _, name: said(client, name, "session/titleChanged", title="y"))),
    ("ahp", "createChat", {"drive"}, editor(_side_chat)),
    ("rest", "folder.add", {"approve"}, do("folder.add", folder="/tmp")),
    ("rest", "grant", {"approve"}, do("grant.add", agent="scripted", tool="x", allow=True)),
    ("rest", "asks nobody", {"drive", "approve"}, do("session.configure", values=YOLO)),
    ("rest", "other folder", {"drive", "approve"}, do("folder.remove", folder="/tmp", replacement="/")),
    ("mcp", "asks nobody", {"drive", "approve"}, tool("configure_session", values=YOLO)),
    ("ahp", "asks nobody", {"drive", "approve"},
     editor(lambda client, _, name: said(client, name, "session/configChanged", config=YOLO))),
    ("host", "a child that asks nobody", {"drive", "approve"}, _child),
    ("ahp", "confirm", {"approve"}, editor(_confirm)),
    ("rest", "approve", {"approve"}, do("approval.answer", allow=False)),
    ("mcp", "answer_approval", {"approve"}, tool("answer_approval", approval="{a}", allow=False)),
    ("rest", "share", {"own"}, do("session.share", person="eve")),
    ("rest", "unshare", {"own"}, do("session.unshare", person="eve")),
    ("rest", "fork", {"drive"}, do("session.fork")),
    ("portal", "stop", {"drive"}, portal("stop")),
    ("ahp", "disposeSession", {"own"},
     editor(lambda client, _, name: client.request("disposeSession", channel=name))),
    ("rest", "delete", {"own"}, do("session.delete")),
]  # fmt: skip


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder = tmp_path_factory.mktemp("rights")
    (folder / "script.yaml").write_text(SCRIPT)
    async with standing(folder, script=folder / "script.yaml", agents=("scripted",)) as here:
        world = World(here, folder)
        await world.open()
        yield world
        for client in world.clients.values():
            await client.aclose()


async def waiting(world: World, who: str, rights: frozenset[str] = frozenset()) -> Scene:
    session = await world.start("alice", title=CANARY, cwd=str(world.folder))
    await world.do("alice", "message.send", session=session, text=f"write {CANARY}.txt")
    state = await (await world.host.get(session)).wait_until(lambda state: state.status == "waiting")
    call = next(part for turn in state.turns for part in turn.parts if isinstance(part, CallPart))
    assert call.approval is not None
    if who == "bob" and rights:
        await world.do("alice", "session.share", session=session, person="bob", rights=sorted(rights))
    return Scene(world, who, session, call.approval.id, state.turns[-1].id, call.id)


@pytest.mark.parametrize("role", ROLES)
async def test_what_a_role_can_do(world: World, role: str) -> None:
    who, rights = ROLES[role]
    scene = await waiting(world, who, rights)
    wrong, before = [], world.host.log.head(f"session/{scene.session}")
    for door, action, needed, attempt in TABLE:
        if (action, role) == ("delete", "owner") or (action, role) == ("delete", "admin"):
            continue  # the editor has disposed of it
        if await attempt(scene) is not (needed <= rights):
            wrong.append((door, action, "refused" if needed <= rights else "let through"))
    assert not wrong, wrong
    if role in ("stranger", "read"):
        assert world.host.log.head(f"session/{scene.session}") == before


# -- what the table cannot say ---------------------------------------------------------------------------------


async def test_a_large_output_belongs_to_those_who_see_an_event_of_it(world: World) -> None:
    """Whoever knew the hash had the content, also after the session was not shared any more."""
    session = await world.start("alice")
    digest = await world.host.log.put_blob(CANARY.encode())
    await world.host.log.append(f"session/{session}", e.ToolEnded(turn="t", call="c", ok=True, blob=digest))

    async def read(who: str) -> tuple[int, bool]:
        async with opened(world.editor(who)) as client:
            await client.initialize(client.root)
            try:
                await client.request("resourceRead", channel=client.root, uri=f"portico-blob:/{digest}")
                shown = True
            except Refused:
                shown = False
        return (await world.get(who, f"/v1/blobs/{digest}")).status_code, shown

    assert [await read(who) for who in ("alice", "bob", "carol")] == [(200, True), (404, False), (200, True)]
    await world.do("alice", "session.share", session=session, person="bob", rights=["read"])
    assert await read("bob") == (200, True)
    await world.do("alice", "session.unshare", session=session, person="bob")
    assert await read("bob") == (404, False)


async def test_notices_are_listed_for_whom_they_are_about(world: World) -> None:
    """They have the title, the folder and the words of a session; the list was the same for everybody."""
    about = {"session": {"session": world.ids["session"]}, "job": {"job": world.ids["job"]}, "run": {"automation": "x"}}
    deliveries = feature(world.host, Notices).deliveries
    for ident, fields in about.items():
        deliveries[ident] = Delivery(ident, "hook", Notice("question", CANARY, 1, **fields))
    listed = {}
    for who in ("alice", "bob", "carol"):
        found = (await world.get(who, "/v1/notices")).json()["notices"]
        listed[who] = sorted(each["id"] for each in found)
    deliveries.clear()
    assert listed == {"alice": ["job", "session"], "bob": [], "carol": ["job", "run", "session"]}


async def test_whoever_waits_while_sharing_ends_hears_nothing_more(world: World) -> None:
    """Long polls, waiting tools and terminals looked at the rights when they began, and told what came then."""
    scene = await waiting(world, "bob", frozenset(("read", "drive")))
    await portal("live/t")(scene)
    terminal = await feature(world.host, Terminals).start(
        policy=FREE,
        claim={"kind": "session", "session": scene.session},
        cwd=str(world.folder),
        by="agent",
        session=scene.session,
        command=["sh", "-c", f"until [ -e go ]; do sleep 0.05; done; echo {CANARY}"],
        owner="alice",
    )
    address = f"{world.here.url.replace('http', 'ws')}/v1/terminals/{terminal.id}/socket"
    headers = {"Authorization": f"Bearer {world.tokens['bob']}"}
    async with asyncio.timeout(60), connect(address, additional_headers=headers) as socket:
        await socket.recv()
        poll = asyncio.ensure_future(scene.http.post(f"/api/copilot/session/{scene.session}/live/t"))
        live: Any = world.here.server.doors["portal"]
        while not any(reader.busy for reader in live.live._attached):  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        await world.do("alice", "session.unshare", session=scene.session, person="bob")
        await world.do("alice", "approval.answer", approval=scene.approval, allow=True)
        (world.folder / "go").touch()
        shown = [frame async for frame in socket]
        told = (await poll).text
    assert CANARY not in told + "".join(map(str, shown))
    assert told == '{"error":"SessionNotFound"}'
