"""Requests to leave the sandbox: a connection waits for a card, and what a person answers is what happens."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from portico.agents.agent import Message, Turn
from portico.features.sandboxes import access as requests
from portico.features.sandboxes.access import AccessRequests, SessionGate
from portico.features.sandboxes.grants import SandboxGrants
from portico.features.sandboxes.record import NetworkRecord
from portico.kernel import events as e
from portico.kernel.events import Json
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import Approval, CallPart
from portico.sandbox.network import Network
from portico.sandbox.policy import Mode
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.features import feature
from tests.grants import revoke_grant
from tests.sandbox.outside import Names, listener, site, speak


class Sandboxed:
    """A session whose turns connect to the hosts of their message, through a real listener."""

    def __init__(self, folder: Path, port: int, mode: Mode = "project") -> None:
        self.folder = folder
        self.port = port
        self.mode = mode
        self.changed: list[SandboxGrants] = []
        """What was granted at each change."""
        self.host: Host
        self.session: Session
        self.access: AccessRequests
        self.record: NetworkRecord

    async def open(self, opener: HostOpener, clock: FakeClock | None = None) -> None:
        self.agent = PlayAgent(self.play)
        self.host = await opener(self.agent, clock=clock)
        self.record = feature(self.host, NetworkRecord)
        self.access = AccessRequests(self.host, lambda _: self.mode, self._changed)
        self.host.commits.on("access", self.access.grants_changed, e.GrantAdded, e.GrantRevoked)
        self.session = await self.host.start(by="test", cwd=str(self.folder))

    async def _changed(self, session: str) -> None:
        self.changed.append(self.access.granted(self.session))

    async def play(self, message: Message, turn: Turn) -> None:
        if message.text.startswith("{"):
            call = turn.session_tool("request_access", message.text)
            result = await turn.perform(call)
            turn.text(result.output or (result.error.message if result.error else ""))
            return
        for name in message.text.split():
            hosts = self.access.granted(turn.session).hosts
            network = Network(hosts, asks=self.mode == "project", private=("docs.test", "other.test"))
            gate = SessionGate(self.access, self.record, turn.session)
            names = Names({"docs.test": [["127.0.0.1"]], "other.test": [["127.0.0.1"]]})
            async with listener(self.folder, network, gate, names):
                said = await speak(self.folder, f"CONNECT {name}:{self.port} HTTP/1.1\r\n\r\nhello".encode())
            turn.text(_short(said))

    async def send(self, text: str) -> None:
        await self.session.send(Message(text), by="test")

    async def card(self) -> Approval:
        state = await self.session.wait_until(lambda state: state.status == "waiting")
        assert state.active is not None
        call = state.active.parts[-1]
        assert isinstance(call, CallPart)
        assert call.approval is not None
        return call.approval

    async def said(self) -> str:
        turn = await asyncio.wait_for(self.session.wait(self.session.state.turns[-1].id), 30)
        return "".join(getattr(part, "text", "") for part in turn.parts)

    async def answer(self, option: str) -> None:
        await self.session.approvals.answer((await self.card()).id, option=option, by="person:ada")


def _short(said: bytes) -> str:
    status, body = said[9:12].decode(), said.partition(b"\r\n\r\n")[2].decode().strip()
    return f"{status} {body}\n"


async def opened(
    folder: Path, opener: HostOpener, port: int = 443, mode: Mode = "project", clock: FakeClock | None = None
) -> Sandboxed:
    made = Sandboxed(folder, port, mode)
    await made.open(opener, clock)
    return made


async def test_the_card_names_who_wants_to_reach_what(tmp_path: Path, open_host: HostOpener) -> None:
    desk = await opened(tmp_path, open_host)
    await desk.send("docs.test")
    card = await desk.card()
    assert card.title == "play wants to reach docs.test:443, first time in this session"
    assert [(option.id, option.label) for option in card.options] == [
        ("allow-once", "Allow once"),
        ("allow-session", "Allow in this session"),
        ("allow-folder", "Allow always in this folder"),
        ("deny", "Deny"),
    ]
    assert card.why == "It always asks: it leaves the sandbox."
    await desk.answer("deny")
    refusal = "403 Portico's sandbox refused the connection to docs.test:443. It was denied by person:ada."
    assert await desk.said() == f"{refusal}\n"


@pytest.mark.parametrize(
    ("option", "again", "next_turn", "other_session"),
    [
        ("allow-once", "passes", "asks", "asks"),
        ("allow-session", "passes", "passes", "asks"),
        ("allow-folder", "passes", "passes", "passes"),
        ("deny", "refused", "asks", "asks"),
    ],
)
async def test_how_long_an_answer_holds(
    option: str, again: str, next_turn: str, other_session: str, tmp_path: Path, open_host: HostOpener
) -> None:
    async def outcome() -> str:
        await desk.session.wait_until(lambda state: state.status in ("waiting", "idle"))
        if desk.session.state.status == "waiting":
            await desk.answer("deny")
            await desk.said()
            return "asks"
        return "passes" if "200 hello" in await desk.said() else "refused"

    async with site() as echo:
        desk = await opened(tmp_path, open_host, echo.port)
        await desk.send("docs.test docs.test")
        await desk.answer(option)
        first, second = (await desk.said()).splitlines()
        assert first.startswith("403" if option == "deny" else "200 hello")
        assert ("passes" if second == "200 hello" else "refused") == again
        await desk.send("docs.test")
        assert await outcome() == next_turn
        desk.session = await desk.host.start(by="test", cwd=str(tmp_path))
        await desk.send("docs.test")
        assert await outcome() == other_session


async def test_a_grant_is_listed_and_revoked_like_every_other(tmp_path: Path, open_host: HostOpener) -> None:
    async with site() as echo:
        desk = await opened(tmp_path, open_host, echo.port)
        await desk.send("docs.test")
        await desk.answer("allow-folder")
        await desk.said()
        grant = next(iter(desk.host.grants.live().values()))
        assert (grant.tool, grant.project, grant.covers) == ("network", str(tmp_path), [f"host:docs.test:{echo.port}"])
        await revoke_grant(desk.host, grant.id, by="person:ada")
        assert desk.access.granted(desk.session) == SandboxGrants()
        await desk.send("docs.test")
        await desk.answer("deny")
        assert (await desk.said()).startswith("403")


@pytest.mark.parametrize("config", [{"approvals": "allow"}, {"autoApprove": "autoApprove"}])
async def test_a_session_that_approves_everything_still_asks(
    config: Json, tmp_path: Path, open_host: HostOpener
) -> None:
    desk = await opened(tmp_path, open_host)
    desk.session = await desk.host.start(by="test", cwd=str(tmp_path), config=config)
    await desk.send("docs.test")
    await desk.answer("deny")
    assert (await desk.said()).startswith("403")


async def test_a_connection_waits_for_a_minute(tmp_path: Path, open_host: HostOpener) -> None:
    clock = FakeClock()
    desk = await opened(tmp_path, open_host, clock=clock)
    await desk.send("docs.test")
    await desk.card()
    clock.advance(requests.ASK_SECONDS + 1)
    words = "403 Portico's sandbox refused the connection to docs.test:443. Nobody answered within 60 seconds.\n"
    assert await desk.said() == words


async def test_ten_thousand_hosts_ask_about_twenty(
    tmp_path: Path, open_host: HostOpener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "ASKS", 2)
    desk = await opened(tmp_path, open_host)
    await desk.send(" ".join(f"h{number}.test" for number in range(30)))
    for _ in range(2):
        await desk.answer("deny")
        await desk.session.wait_until(lambda state: state.status != "waiting")
    assert (await desk.said()).count("This turn has asked about 2 hosts already.") == 28


async def test_between_turns_nobody_can_be_asked(tmp_path: Path, open_host: HostOpener) -> None:
    desk = await opened(tmp_path, open_host)
    gate = SessionGate(desk.access, desk.record, desk.session)
    async with listener(tmp_path, Network(asks=True), gate):
        said = await speak(tmp_path, b"CONNECT docs.test:443 HTTP/1.1\r\n\r\n")
    assert b"No turn is running, so nobody can be asked." in said


# -- request_access ----------------------------------------------------------------------------------------------


def asking(**arguments: object) -> str:
    return msgspec.json.encode(arguments).decode()


async def test_a_path_is_granted(tmp_path: Path, open_host: HostOpener) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "link").symlink_to(data)
    desk = await opened(tmp_path, open_host)
    await desk.send(asking(path=str(tmp_path / "link"), write=True, why="The test needs it."))
    assert (await desk.card()).title == f"play asks for access: write {data} (The test needs it.)"
    await desk.answer("allow-session")
    assert (await desk.said()).endswith(
        f"Access to write {data} was allowed by person:ada in this session. Commands that start from now on see it."
        " Your own process sees it after the turn, when it is restarted."
    )
    assert desk.access.granted(desk.session) == SandboxGrants(write=(str(data),))
    assert desk.changed[-1] == SandboxGrants(write=(str(data),))


@pytest.mark.parametrize(("option", "starts"), [("allow-once", 1), ("allow-session", 2), ("allow-folder", 2)])
async def test_the_agent_is_restarted_between_turns(
    option: str, starts: int, tmp_path: Path, open_host: HostOpener
) -> None:
    desk = await opened(tmp_path, open_host)
    desk.access.granted(desk.session)  # its process was started
    await desk.send(asking(path=str(tmp_path), why="x"))
    await desk.answer(option)
    words = await desk.said()
    await desk.send("127.0.0.1")
    await desk.said()
    assert len(desk.agent.openings) == starts
    assert ("The agent is restarted before its next turn." in words) is (starts > 1)


async def test_a_revoked_path_restarts_the_agent(tmp_path: Path, open_host: HostOpener) -> None:
    desk = await opened(tmp_path, open_host)
    await desk.send(asking(path=str(tmp_path), why="x"))
    await desk.answer("allow-session")
    await desk.said()
    desk.access.granted(desk.session)
    await revoke_grant(desk.host, next(iter(desk.host.grants)), by="person:ada")
    await desk.send("127.0.0.1")
    await desk.said()
    assert len(desk.agent.openings) == 2


async def test_a_path_that_is_allowed_once_is_gone_after_the_turn(tmp_path: Path, open_host: HostOpener) -> None:
    desk = await opened(tmp_path, open_host)
    await desk.send(asking(path=str(tmp_path), why="x"))
    await desk.answer("allow-once")
    assert "until this turn ends" in await desk.said()
    assert desk.changed == [SandboxGrants(read=(str(tmp_path),))]
    assert desk.access.granted(desk.session) == SandboxGrants()


async def test_a_host_is_granted_before_a_program_needs_it(tmp_path: Path, open_host: HostOpener) -> None:
    desk = await opened(tmp_path, open_host)
    await desk.send(asking(host="Docs.Test", why="documentation"))
    await desk.answer("allow-folder")
    assert "Programs can connect now." in await desk.said()
    assert desk.access.granted(desk.session).hosts == ("docs.test:443",)


@pytest.mark.parametrize(
    ("arguments", "mode", "words"),
    [
        ({"why": "x"}, "project", "either 'path' or 'host'"),
        ({"why": "x", "path": "/tmp", "host": "a.test"}, "project", "either 'path' or 'host'"),
        ({"path": "/tmp"}, "project", "missing required field `why`"),
        ({"why": "x", "path": "data"}, "project", "no absolute path"),
        ({"why": "x", "path": "/does/not/exist"}, "project", "There is no '/does/not/exist'"),
        ({"why": "x", "path": "/"}, "project", "never visible"),
        ({"why": "x", "path": "/proc/1"}, "project", "never visible"),
        ({"why": "x", "path": "/etc/shadow"}, "project", "never visible"),
        ({"why": "x", "host": "a b"}, "project", "is no host"),
        ({"why": "x", "host": "a.test"}, "strict", "'strict'"),
    ],
)
async def test_what_is_never_asked(
    arguments: Json, mode: Mode, words: str, tmp_path: Path, open_host: HostOpener
) -> None:
    desk = await opened(tmp_path, open_host, mode=mode)
    await desk.send(asking(**arguments))
    assert words in await desk.said()


async def test_the_tool_is_offered_only_in_a_sandbox(tmp_path: Path, open_host: HostOpener) -> None:
    desk = await opened(tmp_path, open_host)
    offered = {spec.name for spec in desk.session.tools.specs()}
    desk.mode = "off"
    assert offered - {spec.name for spec in desk.session.tools.specs()} == {"request_access"}
