"""Connections of real sandboxed commands: through namespace, relay and listener to a server on loopback."""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from portico.agents.agent import Message, Turn
from portico.features.sandboxes.agent import ConfinableAgent
from portico.features.sandboxes.feature import Sandboxes, confine
from portico.features.sandboxes.record import NetworkRecord
from portico.kernel.session import Session
from portico.kernel.state import CallPart
from portico.sandbox import egress
from portico.server.settings import SandboxSettings
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from portico.workspace.process import environment, run
from tests.features import feature
from tests.sandbox.outside import Names, Site, site

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")

FETCH = """
import sys, urllib.request, urllib.error
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=30).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except OSError as error:
    print("failed:", error)
"""
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"


class Shell(PlayAgent, ConfinableAgent):
    """Opens the address of its message with a command in the sandbox, and answers with what the command prints."""

    def __init__(self) -> None:
        super().__init__(self.fetch)

    async def fetch(self, message: Message, turn: Turn) -> None:
        policy = await confine(turn.session)
        command = ["/usr/bin/python3", "-c", FETCH, message.text]
        done = await run(command, policy=policy, cwd=Path(turn.session.state.cwd), env=environment())
        turn.text(done.output.strip())


class Desk:
    def __init__(self, session: Session, web: Site) -> None:
        self.session = session
        self.web = web

    async def send(self, address: str) -> None:
        await self.session.send(Message(address), by="test")

    async def answer(self, option: str) -> str:
        """Answer the card; return its title."""
        state = await self.session.wait_until(lambda state: state.status == "waiting")
        assert state.active is not None
        call = state.active.parts[-1]
        assert isinstance(call, CallPart)
        card = call.approval
        assert card is not None
        await self.session.approvals.answer(card.id, option=option, by="person:ada")
        return card.title

    async def said(self) -> str:
        turn = await asyncio.wait_for(self.session.wait(self.session.state.turns[-1].id), 60)
        return "".join(getattr(part, "text", "") for part in turn.parts)

    async def hosts(self) -> list[tuple[str, int, int, list[str], list[str]]]:
        record = feature(self.session.host, NetworkRecord)
        found = (await record.of(self.session.channel)).hosts
        return [(use.host, use.count, use.refused, use.allowed_by, use.refused_by) for use in found]


@asynccontextmanager
async def sandboxed(opener: HostOpener, folder: Path, mode: str) -> AsyncIterator[Desk]:
    async with site(OK) as web:
        host = await opener(Shell())
        feature(host, Sandboxes).configure(SandboxSettings(allow_private=["docs.test"]))
        session = await host.start(by="test", cwd=str(folder), config={"sandbox": mode})
        yield Desk(session, web)
        await opener.close()


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """The resolver of the host: the sandbox itself has none."""
    made = Names({"docs.test": [["127.0.0.1"]]})
    monkeypatch.setattr(egress, "_system", lambda: made)
    return made


async def test_a_command_waits_for_the_card_and_reaches_the_host(open_host: HostOpener, tmp_path: Path) -> None:
    async with sandboxed(open_host, tmp_path, "project") as desk:
        await desk.send(f"http://docs.test:{desk.web.port}/")
        title = await desk.answer("allow-once")
        assert title == f"play wants to reach docs.test:{desk.web.port}, first time in this session"
        assert await desk.said() == "hi"
        assert await desk.hosts() == [("docs.test", 1, 0, ["person:ada"], [])]


async def test_a_command_learns_who_refused(open_host: HostOpener, tmp_path: Path) -> None:
    async with sandboxed(open_host, tmp_path, "project") as desk:
        await desk.send(f"http://docs.test:{desk.web.port}/")
        await desk.answer("deny")
        refusal = f"403 Portico's sandbox refused the connection to docs.test:{desk.web.port}."
        assert await desk.said() == f"{refusal} It was denied by person:ada."
        assert (await desk.hosts(), desk.web.connections) == ([("docs.test", 0, 1, [], ["person:ada"])], 0)


async def test_a_strict_sandbox_refuses_without_a_question(open_host: HostOpener, tmp_path: Path, names: Names) -> None:
    async with sandboxed(open_host, tmp_path, "strict") as desk:
        await desk.send(f"http://docs.test:{desk.web.port}/")
        assert "'strict'" in await desk.said()
        assert await desk.hosts() == [("docs.test", 0, 1, [], ["policy"])]
        assert names.looked_up == []


async def test_a_loopback_port_of_the_machine_is_not_reachable(open_host: HostOpener, tmp_path: Path) -> None:
    async with sandboxed(open_host, tmp_path, "project") as desk:
        await desk.send(f"http://127.0.0.1:{desk.web.port}/")
        assert "refused" in await desk.said()
        assert desk.web.connections == 0


# -- a host that is killed ---------------------------------------------------------------------------------------

HOST = """
import asyncio, os, sys
from pathlib import Path
from portico.agents.agent import Message
from portico.server.compose import build_host
from portico.kernel.log.sqlite import SqliteLog
from portico.sandbox.network import Destination
from portico.features.sandboxes.record import NetworkRecord
from portico.testing.play import PlayAgent
from tests.features import feature

async def main():
    async def play(message, turn):
        feature(host, NetworkRecord).opened(turn.session, Destination(message.text, 443), "policy")
        if message.text == "second.test":
            while b"second" not in (await log.get_kv(turn.session.channel, "network") or b""):
                await asyncio.sleep(0.01)
            os.kill(os.getpid(), 9)
    log = await SqliteLog.open(Path(sys.argv[1]) / "log.db")
    host = await build_host(log, [PlayAgent(play)])
    session = await host.start(by="test", cwd=sys.argv[1])
    await session.wait(await session.send(Message("first.test"), by="test"))
    while await log.get_kv(session.channel, "network") is None:  # it is written right after the end of the turn
        await asyncio.sleep(0.01)
    await session.send(Message("second.test"), by="test")
    await asyncio.sleep(60)

asyncio.run(main())
"""


async def test_a_killed_host_loses_no_host_of_the_running_turn(open_host: HostOpener, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HOST, str(tmp_path))
    assert await asyncio.wait_for(process.wait(), 60) == -9
    host = await open_host(PlayAgent(Shell().fetch))
    session = await host.get(next(iter(host.list())).id)
    found = (await feature(host, NetworkRecord).of(session.channel)).hosts
    assert [use.host for use in found] == ["second.test", "first.test"]
