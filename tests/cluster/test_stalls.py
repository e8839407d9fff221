"""A host that stalls is not taken for dead: only the end of its lease permits a takeover."""

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from portico.kernel.events import SessionRenamed
from tests.cluster.chaos import Process
from tests.cluster.conftest import Nodes


@pytest.fixture
async def other(nodes: Nodes, tmp_path: Path) -> AsyncIterator[Process]:
    process = Process(tmp_path, nodes.url, 1, {}, lease=60, place="here")
    await process.start()
    yield process
    await process.end(signal.SIGKILL)


@pytest.mark.parametrize(
    ("number", "expires"), [(signal.SIGSTOP, False), (signal.SIGKILL, True)], ids=["stalls", "is dead"]
)
async def test_only_a_host_without_connections_is_taken_over_early(
    nodes: Nodes, other: Process, number: signal.Signals, expires: bool
) -> None:
    """A host that stalled for 4.5 s while it ran a work lost its sessions, although its lease had 5 s left."""
    b = await nodes("b", lease=60.0)
    headers = {"authorization": f"Bearer {(other.home / 'token').read_text('ascii').strip()}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False) as http:
        answer = await http.post(f"{other.address}/v1/sessions", json={"agent": "scripted"})
    session = f"session/{answer.json()['id']}"
    assert not await b.cluster.roster.expire_silent(session, 0.0)
    other.tell(number)
    if not expires:
        for _ in range(20):
            assert not await b.cluster.roster.expire_silent(session, 0.0)
        other.tell(signal.SIGCONT)
        return
    async with asyncio.timeout(30):
        while not await b.cluster.roster.expire_silent(session, 0.0):  # noqa: ASYNC110 - its connections end soon
            await asyncio.sleep(0.02)
        while not b.cluster.owns(session):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("name", ["a", "a b", "x" * 80, "hôte"], ids=["plain", "space", "long", "not ASCII"])
async def test_connections_are_found_by_the_name_of_their_host(nodes: Nodes, name: str) -> None:
    a, b = await nodes(name, lease=60.0), await nodes("b", lease=60.0)
    session = await a.host.start(by="test", agent="play")
    assert not await b.cluster.roster.expire_silent(session.channel, 0.0)
    peers = await b.cluster.roster.peers()
    assert all(peer.alive for peer in peers)


@pytest.mark.parametrize(("lease", "taken"), [(60.0, False), (2.0, True)], ids=["shorter than the lease", "longer"])
async def test_a_host_is_taken_over_after_its_lease(nodes: Nodes, tmp_path: Path, lease: float, taken: bool) -> None:
    """SIGSTOP and SIGCONT of a real host. A command sent to it afterwards runs once, at the owner."""
    b = await nodes("b", lease=60.0)
    other = Process(tmp_path, nodes.url, 1, {}, lease=lease, place="here")
    await other.start()
    try:
        headers = {"authorization": f"Bearer {(other.home / 'token').read_text('ascii').strip()}"}
        async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=60) as http:
            answer = await http.post(f"{other.address}/v1/sessions", json={"agent": "scripted"})
            path, session = f"{other.address}/v1/sessions/{answer.json()['id']}", f"session/{answer.json()['id']}"
            other.tell(signal.SIGSTOP)
            for _ in range(20):
                await b.cluster.suspect(session)
                await b.cluster.look()
            async with asyncio.timeout(60):
                while taken and not b.cluster.owns(session):  # noqa: ASYNC110 - its lease ends soon
                    await asyncio.sleep(0.02)
            other.tell(signal.SIGCONT)
            async with asyncio.timeout(60):
                while True:  # the host that was stopped detects it by its first commit
                    key = {"Idempotency-Key": "one"}
                    answer = await http.patch(path, json={"title": "Renamed"}, headers=key)
                    if answer.status_code != 503:
                        break
                    await asyncio.sleep(float(answer.headers["Retry-After"]))
        assert (answer.status_code, b.cluster.owns(session)) == (200, taken)
        await b.log.catch_up()
        titles = [r.event.title for r in await b.log.read(session) if isinstance(r.event, SessionRenamed)]
        assert titles == ["Renamed"]
    finally:
        other.tell(signal.SIGCONT)
        await other.end(signal.SIGKILL)
