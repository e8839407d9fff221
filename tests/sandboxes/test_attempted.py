"""The record tells a connection that was made from one that was refused or failed, for everything that connects."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from portico.agents.loop.http_transport import FastTransport
from portico.agents.loop.judged_transport import JudgedTransport
from portico.features.jobs import Jobs
from portico.features.jobs.steps import http as http_steps
from portico.features.sandboxes import host_requests
from portico.features.sandboxes.events import NetworkReached
from portico.features.sandboxes.record import Counter, NetworkRecord
from portico.features.secrets.mask import Mask
from portico.kernel.host import Host
from portico.sandbox.egress import Egress
from portico.sandbox.network import EgressGate, Network, Verdict
from tests.doors.standing import standing
from tests.features import feature
from tests.jobs.workflow.playing import finish, start
from tests.sandbox.outside import Names, NotingGate, listener, serving, speak
from tests.sandbox.test_relay import free_port

Connect = Callable[["Place"], Awaitable[None]]
BODY = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"


@dataclass
class Place:
    host: Host
    folder: Path
    name: str
    port: int
    private: bool
    """Whether the name may have a private address: the server of the test is on loopback."""
    answer: Verdict | None

    channel: str = "session/record"
    """Where it is recorded."""

    @property
    def url(self) -> str:
        return f"http://{self.name}:{self.port}/"

    @property
    def counter(self) -> Counter:
        return feature(self.host, NetworkRecord).counter(self.channel)

    @asynccontextmanager
    async def egress(self) -> AsyncIterator[Egress]:
        counter = self.counter
        gate: EgressGate = counter
        if self.answer is not None:
            noting = NotingGate({f"{self.name}:{self.port}": self.answer})
            counter.decide = noting.decide  # type: ignore[method-assign]
        hosts = () if self.answer is not None else (f"{self.name}:{self.port}",)
        network = Network(hosts=hosts, asks=self.answer is not None, private=(self.name,) if self.private else ())
        async with listener(self.folder, network, gate, Names({"a.test": [["127.0.0.1"]]})) as egress:
            yield egress


async def of_a_client(place: Place, transport: httpx.AsyncBaseTransport | None) -> None:
    gate = host_requests._gate.set(place.counter)
    try:
        async with httpx.AsyncClient(transport=transport, event_hooks=host_requests.HOOKS, trust_env=False) as http:
            with suppress(httpx.HTTPError):
                await http.get(f"http://127.0.0.1:{place.port}/")
    finally:
        host_requests._gate.reset(gate)


async def loop_model(place: Place) -> None:
    await of_a_client(place, FastTransport())


async def mcp_server(place: Place) -> None:
    await of_a_client(place, None)


async def web_fetch(place: Place) -> None:
    async with place.egress() as egress, httpx.AsyncClient(transport=JudgedTransport(egress, True)) as http:
        with suppress(Exception):
            await http.get(place.url)


async def sandboxed(place: Place) -> None:
    async with place.egress():
        await speak(place.folder, f"GET {place.url} HTTP/1.1\r\nHost: {place.name}:{place.port}\r\n\r\n".encode())


async def http_step(place: Place) -> None:
    jobs = await Jobs.open(place.host)
    jobs.services.allow_private = [place.name] if place.private else []
    jobs.services.lookup = Names({"a.test": [["127.0.0.1"]]})
    job = await start(jobs, f"steps: [{{id: a, may_fail: true, http: {{url: '{place.url}'}}}}]", place.folder)
    work = (await finish(jobs, job)).works[0]
    record = feature(place.host, NetworkRecord)
    stored = await record._stored(f"task/{work.task}")
    assert stored == (await record.of(f"task/{work.task}")).hosts, "it is written before the step ends"
    place.channel = f"task/{work.task}"


CONNECTS: dict[str, Connect] = {
    "loop model": loop_model,
    "mcp over http": mcp_server,
    "webFetch": web_fetch,
    "http step": http_step,
    "proxy": sandboxed,
}
JUDGED = ("webFetch", "http step", "proxy")
"""The settings name the servers of the others."""
Counts = tuple[int, int, list[str], list[str]]
REACHED: Counts = (1, 0, ["policy"], [])
REFUSED: Counts = (0, 1, [], ["policy"])
FAILED: Counts = (0, 1, [], ["network"])
CASES: dict[tuple[str, str], Counts] = {
    **{(who, "reached"): REACHED for who in CONNECTS},
    **{(who, "no answer"): REACHED for who in CONNECTS},
    **{(who, "no connection"): FAILED for who in CONNECTS},
    **{(who, "no address"): FAILED for who in JUDGED},
    **{(who, "refused by a rule"): REFUSED for who in JUDGED},
    **{(who, "refused by a person"): (0, 1, [], ["ada"]) for who in ("webFetch", "proxy")},
    **{(who, "allowed by a person"): (1, 0, ["ada"], []) for who in ("webFetch", "proxy")},
    **{(who, "allowed by a person, no connection"): FAILED for who in ("webFetch", "proxy")},
}


@pytest.mark.parametrize(("who", "what"), CASES)
async def test_what_was_reached_is_what_was_connected(host: Host, tmp_path: Path, who: str, what: str) -> None:
    """A failed connection counted as one that was allowed, because it was counted before it was made, and a page that
    did not answer was not in the record."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if what != "no answer":
            writer.write(BODY)
            await writer.drain()

    async with serving(serve) as port:
        used = port if "no connection" not in what else free_port()
        answers = {"allowed": Verdict(True, "ada"), "refused": Verdict(False, "ada", "no")}
        answer = answers[what.split()[0]] if "person" in what else None
        name = "b.test" if what == "no address" else "a.test"
        place = Place(host, tmp_path, name, used, "rule" not in what, answer)
        async with asyncio.timeout(20):
            await CONNECTS[who](place)
    [use] = (await feature(host, NetworkRecord).of(place.channel)).hosts
    assert (use.count, use.refused, use.allowed_by, use.refused_by) == CASES[who, what]
    assert use.host == (name if who in JUDGED else "127.0.0.1")
    assert use.port == used
    assert (use.received > 0) is (what in ("reached", "allowed by a person"))


@pytest.mark.parametrize("secret", ["a.test", "https://a.test/token", "A.TEST", "a.te"])
def test_a_secret_in_a_name_is_not_recorded(secret: str) -> None:
    mask = Mask({"HOOK": [secret]})
    assert http_steps._recorded_name("a.test", mask) == "[redacted: HOOK]"
    assert http_steps._recorded_name("b.test", mask) == "b.test"


async def test_the_job_and_its_result_list_them(tmp_path: Path) -> None:
    text = "steps: [{id: a, may_fail: true, http: {url: 'http://127.0.0.1:1/'}}]"
    async with standing(tmp_path) as here:
        jobs = here.server.jobs
        job = await start(jobs, text, tmp_path)
        await finish(jobs, job)
        for path in (f"/v1/jobs/{job}", f"/v1/jobs/{job}/result"):
            [use] = (await here.http.get(path)).json()["network"]
            assert (use["host"], use["port"], use["refused"], use["refused_by"]) == ("127.0.0.1", 1, 1, ["policy"])
        task = jobs.job(job).works[0].task
        events = [record.event for record in await here.server.host.log.read(f"task/{task}")]
        assert [(each.turn, each.host) for each in events if isinstance(each, NetworkReached)] == [("", "127.0.0.1")]
