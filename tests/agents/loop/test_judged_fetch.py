"""Pages that the host fetches for a sandboxed session: judged, pinned to the judged address, and recorded."""

import asyncio
from pathlib import Path

import httpx
import pytest

from portico.agents.loop.judged_transport import JudgedTransport
from portico.agents.loop.toolset.web import FetchFailed, fetch
from portico.features.sandboxes.feature import Sandboxes
from portico.features.sandboxes.record import NetworkRecord
from portico.kernel import commands as c
from portico.kernel.errors import Forbidden
from portico.kernel.events import Message
from portico.kernel.state import CallPart, SessionState
from portico.sandbox.network import Network, Verdict
from portico.server.settings import SandboxSettings
from portico.testing.model import ScriptedCall, Step
from tests.agents.loop.conftest import Desk
from tests.features import feature
from tests.sandbox.outside import Names, NotingGate, listener, site

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"


@pytest.mark.parametrize(
    ("network", "answer", "result"),
    [
        (Network(), None, "strict"),
        (Network(hosts=("b.test",)), None, "strict"),
        (Network(asks=True), None, "ada denied"),
        (Network(asks=True), Verdict(True, "ada"), "hello"),
        (Network(hosts=("a.test:PORT",)), None, "hello"),
        (Network(hosts=("a.test",)), None, "strict"),
    ],
    ids=["nothing", "another host", "denied", "allowed by a person", "allowed", "another port"],
)
async def test_a_page_is_judged_and_recorded(
    tmp_path: Path, network: Network, answer: Verdict | None, result: str
) -> None:
    """A session in a sandbox fetched any host, and its record did not show it."""
    async with site(PAGE) as here:
        target = f"a.test:{here.port}"
        hosts = tuple(each.replace("PORT", str(here.port)) for each in network.hosts)
        network = Network(hosts=hosts, asks=network.asks, private=("a.test",))
        gate = NotingGate({target: answer} if answer is not None else {})
        async with listener(tmp_path, network, gate, Names({"a.test": [["127.0.0.1"]]})) as egress:
            if result == "hello":
                assert await fetch(f"http://a.test:{here.port}/x", egress) == "hello"
                assert (gate.opens, gate.refusals) == ([(target, "ada" if answer else "policy")], [])
                assert (gate.sent, gate.received) == (2, 5)
                assert b"Host: " + target.encode() in here.got
            else:
                with pytest.raises(Forbidden, match=result):
                    await fetch(f"http://a.test:{here.port}/x", egress)
                assert (gate.opens, len(gate.refusals), here.connections) == ([], 1, 0)


@pytest.mark.parametrize(
    ("addresses", "words"),
    [([["10.0.0.1"]], "private address"), ([["93.184.216.34", "127.0.0.1"]], "private address"), ([[]], "no address")],
)
async def test_a_name_with_a_private_address_is_refused(tmp_path: Path, addresses: list[list[str]], words: str) -> None:
    gate = NotingGate()
    names = Names({"a.test": addresses})
    async with listener(tmp_path, Network(hosts=("a.test",)), gate, names) as egress:
        with pytest.raises(Forbidden, match=words):
            await fetch("http://a.test/", egress)
    assert len(gate.refusals) == 1


async def test_the_address_that_was_judged_is_used(tmp_path: Path) -> None:
    """Rebinding: the second lookup of the name would lead elsewhere, so there is none."""
    async with site(PAGE) as here:
        names = Names({"a.test": [["127.0.0.1"], ["127.0.0.9"]]})
        network = Network(hosts=(f"a.test:{here.port}",), private=("a.test",))
        async with listener(tmp_path, network, NotingGate(), names) as egress:
            assert await fetch(f"http://a.test:{here.port}/", egress) == "hello"
    assert names.looked_up == ["a.test"]


async def test_a_redirect_is_judged_again(tmp_path: Path) -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: http://b.test/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    async with site(moved) as here:
        network = Network(hosts=(f"a.test:{here.port}",), private=("a.test",))
        async with listener(tmp_path, network, NotingGate(), Names({"a.test": [["127.0.0.1"]]})) as egress:
            text = await fetch(f"http://a.test:{here.port}/", egress)
    assert text == "[redirected to another host: fetch http://b.test/ if it is needed]"


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "127.1", "localhost."])
async def test_other_spellings_of_this_machine_are_refused(tmp_path: Path, host: str) -> None:
    gate = NotingGate()
    async with site(PAGE) as here:
        names = Names({"localhost": [["127.0.0.1"]]})
        async with listener(tmp_path, Network(hosts=("localhost", "127.0.0.1"), asks=True), gate, names) as egress:
            with pytest.raises((Forbidden, FetchFailed)):
                await fetch(f"http://{host}:{here.port}/", egress)
        assert (here.connections, gate.opens) == (0, [])


class Recorded(httpx.AsyncBaseTransport):
    """Stores the requests that would be sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, str]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append((str(request.url), request.headers["host"], request.extensions["sni_hostname"]))
        return httpx.Response(200, text="hello")


async def test_the_certificate_is_that_of_the_name(tmp_path: Path) -> None:
    """The connection goes to an address; the name is what the server has to prove."""
    names = Names({"a.test": [["93.184.216.34"]]})
    async with listener(tmp_path, Network(hosts=("a.test",)), NotingGate(), names) as egress:
        transport = JudgedTransport(egress, True)
        await transport.aclose()
        recorded = transport._inner = Recorded()  # type: ignore[assignment]
        async with httpx.AsyncClient(transport=transport) as http:
            assert (await http.get("https://A.test./x")).text == "hello"
    assert recorded.sent == [("https://93.184.216.34/x", "a.test.", "a.test")]


def waiting(state: SessionState) -> list[CallPart]:
    assert state.active is not None
    return [part for part in state.active.parts if isinstance(part, CallPart) and part.tool == "network"]


async def test_a_sandboxed_session_records_its_pages(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown hosts ask with the card of the sandbox, also in a session that allows every call. No name is looked up
    before the answer."""
    looked_up: list[str] = []

    async def lookup(host: str, port: int) -> list[str]:
        looked_up.append(host)
        return ["127.0.0.1"]

    monkeypatch.setattr("portico.sandbox.egress._system", lambda: lookup)
    monkeypatch.setattr("portico.agents.loop.toolset.web._is_near", lambda host, port: looked_up.append(host))
    desk.settings('[agents.loop]\nretries = 0\nprotocol = "tools"\n')
    values = {"sandbox": "project", "approvals": "allow"}
    await desk.host.do(c.ConfigureSession(session=desk.session.id, values=values), c.Caller.inside("test"))
    feature(desk.host, Sandboxes).configure(SandboxSettings(allow_private=["good.test", "bad.test"]))
    async with site(PAGE) as here:
        good, bad = f"http://good.test:{here.port}/", f"http://bad.test:{here.port}/"
        fetches = [Step(calls=[ScriptedCall(name="webFetch", args={"url": url})]) for url in (good, bad)]
        desk.says(*fetches, Step(say="Done."))
        turn = await desk.session.send(Message("agent: go"), by="test")
        for host, option in (("good", "allow-once"), ("bad", "deny")):
            async with asyncio.timeout(10):
                state = await desk.session.wait_until(lambda state: state.status == "waiting" or not state.active)
            assert state.active is not None, state.turns
            asked = waiting(state)[-1].approval
            assert asked is not None
            assert f"wants to reach {host}.test:{here.port}" in asked.title
            assert f"{host}.test" not in looked_up
            await desk.session.approvals.answer(asked.id, option=option, by="ada")
            await desk.session.wait_until(lambda state: state.status != "waiting")
        await desk.session.wait(turn)
    assert looked_up == ["good.test"]
    found = await feature(desk.host, NetworkRecord).of(desk.session.channel)
    shown = {use.host: (use.count, use.refused, use.received, use.allowed_by, use.refused_by) for use in found.hosts}
    count, refused, _, *by = shown.pop("127.0.0.1")  # the model
    assert (count, refused, by) == (3, 0, [["policy"], []])
    assert shown == {"good.test": (1, 0, 5, ["ada"], []), "bad.test": (0, 1, 0, [], ["ada"])}
