"""One id of a command is run once, whichever hosts get it, concurrently or one after the other."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import msgspec
import pytest

from portico.cluster.claims import Claim
from portico.kernel import commands as c
from portico.kernel.do import RECEIPTS
from portico.kernel.errors import Conflict, NotFound
from portico.kernel.events import HOST
from tests.cluster.conftest import Node, Nodes
from tests.doors.standing import Standing, standing
from tests.jobs.playing import make, task
from tests.postgres import Databases

Servers = tuple[Standing, Standing]


class Case(NamedTuple):
    path: str
    body: dict[str, Any]
    shown: str
    """Where the host lists what the command makes."""
    listed: str = ""
    """The field of that answer which holds the list."""


def _any(command: str, **arguments: Any) -> dict[str, Any]:
    return {"command": command, "arguments": arguments}


_ENTRY = msgspec.to_builtins(make({"step": task("[[say:done]]")}))
_MESSAGE = {"text": "[[say:hello]]", "agent": "scripted"}
CASES = {
    "session": Case("/v1/sessions", {"agent": "scripted"}, "/v1/sessions", "sessions"),
    "any command": Case("/v1/commands", _any("session.start", agent="scripted"), "/v1/sessions", "sessions"),
    "grant": Case(
        "/v1/grants", {"agent": "scripted", "tool": "x", "allow": True, "project": "FOLDER"}, "/v1/grants", "grants"
    ),
    "job": Case("/v1/jobs", {"job": "main", "cwd": "FOLDER", "entry": _ENTRY}, "/v1/jobs", "jobs"),
    "terminal": Case("/v1/terminals", {"title": "one"}, "/v1/terminals", "terminals"),
    "person": Case("/v1/people", {"name": "ann", "scopes": ["read"]}, "/v1/people", "people"),
    "project": Case("/v1/commands", _any("project.add", path="FOLDER/project"), "/sessions"),
    "conversation": Case(
        "/v1/commands", _any("project.open", project="FOLDER", agent="scripted"), "/v1/sessions", "sessions"
    ),
    "message": Case("/message", _MESSAGE, "MESSAGES"),
}


@pytest.fixture
async def servers(databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Servers]:
    monkeypatch.setenv("SHELL", "/bin/sh")
    url = await databases.new()
    (tmp_path / "project").mkdir()
    async with AsyncExitStack() as stack:
        found = []
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            flags = {"log.url": url, "cluster.host": name, "cluster.place": "here", "workspaces": [str(tmp_path)]}
            found.append(await stack.enter_async_context(standing(tmp_path / name, flags=flags)))
        yield found[0], found[1]
    databases.give_back(url)


async def _made(host: Standing, case: Case) -> int:
    await host.server.host.members.catch_up()
    await host.server.gate.share()  # type: ignore[misc]
    if case.shown == "MESSAGES":
        events = (await host.http.get("/v1/events?limit=1000")).json()["events"]
        return sum(each["event"]["type"] in ("turn.started", "queue.added") for each in events)
    answer = (await host.http.get(case.shown)).json()
    return len(answer[case.listed] if case.listed else answer)


@pytest.mark.parametrize("concurrent", [True, False], ids=["concurrent", "sequential"])
async def test_one_key_at_two_hosts_runs_once(servers: Servers, concurrent: bool, tmp_path: Path) -> None:
    """A client or proxy that retried at another host after its own timeout did everything twice."""
    a, b = servers
    wrong: dict[str, Any] = {}
    for name, case in CASES.items():
        before = await _made(a, case)

        async def post(host: Standing, case: Case = case, key: str = name) -> httpx.Response:
            body = msgspec.json.encode(case.body).replace(b"FOLDER", str(tmp_path).encode())
            headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
            return await host.http.post(case.path, content=body, headers=headers)

        if concurrent:
            answers = [*await asyncio.gather(post(a), post(b), post(a), post(b))]
        else:
            answers = [await post(a), await post(b), await post(a)]
        found = {(answer.status_code, re.sub(r',"pos":\d+', "", answer.text)) for answer in answers}
        made = [await _made(host, case) - before for host in servers]
        async with asyncio.timeout(10):
            while name == "person" and made == [0, 1]:  # files of other hosts are read once a second
                made = [await _made(host, case) - before for host in servers]
        if len(found) > 1 or answers[0].status_code >= 300 or made != [1, 1]:
            wrong[name] = found, made
    assert wrong == {}


# -- the claim ---------------------------------------------------------------------------------------------------------


def _command() -> tuple[c.StartSession, c.Caller]:
    return c.StartSession(agent="play"), c.Caller("token-1", "me", frozenset(c.SCOPES), request="one")


async def _claimed(nodes: Nodes) -> list[Claim]:
    """The stored claims, without finished receipts."""
    sql = "SELECT data FROM notes WHERE starts_with(key, $1)"
    rows = await nodes.nodes[-1].log.run(lambda db: db.fetch(sql, RECEIPTS))
    found = [msgspec.json.decode(data, type=Claim) for (data,) in rows]
    return [claim for claim in found if claim.host]


def _hold(node: Node, monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, asyncio.Event]:
    """Commands of that host wait behind their claim: events that they wait, and that they may continue."""
    waits, goes_on = asyncio.Event(), asyncio.Event()
    perform = node.host.commands._perform

    async def hold(*given: Any) -> Any:
        waits.set()
        await goes_on.wait()
        return await perform(*given)

    monkeypatch.setattr(node.host.commands, "_perform", hold)
    return waits, goes_on


async def test_a_second_host_waits_for_the_answer_of_the_first(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = await nodes("a"), await nodes("b")
    waits, goes_on = _hold(a, monkeypatch)
    first = asyncio.create_task(a.host.do(*_command()))
    await asyncio.wait_for(waits.wait(), 30)
    asked, ask = asyncio.Event(), b.cluster.ask

    async def asking(*given: Any) -> Any:
        asked.set()
        return await ask(*given)

    monkeypatch.setattr(b.cluster, "ask", asking)
    second = asyncio.create_task(b.host.do(*_command()))
    await asyncio.wait_for(asked.wait(), 30)
    goes_on.set()
    assert (await first).id == (await second).id
    assert len(b.host.list()) == 1
    assert await _claimed(nodes) == []


async def test_another_command_with_a_claimed_id_is_rejected(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = await nodes("a"), await nodes("b")
    waits, goes_on = _hold(a, monkeypatch)
    command, caller = _command()
    first = asyncio.create_task(a.host.do(command, caller))
    await asyncio.wait_for(waits.wait(), 30)
    with pytest.raises(Conflict, match="used for another command"):
        await b.host.do(c.StartSession(agent="play", title="other"), caller)
    goes_on.set()
    await first


@pytest.mark.parametrize("written", [False, True], ids=["before its commit", "after its commit"])
async def test_the_claim_of_a_dead_host_is_taken(nodes: Nodes, monkeypatch: pytest.MonkeyPatch, written: bool) -> None:
    """A host that dies with a claim, and a client that retries at another one."""
    a, b = await nodes("a", lease=0.5), await nodes("b")
    if written:
        began = (await a.host.do(*_command())).id
    else:
        waits, _ = _hold(a, monkeypatch)
        first = asyncio.create_task(a.host.do(*_command()))
        await asyncio.wait_for(waits.wait(), 30)
        first.cancel()
    await a.kill()
    again = await asyncio.wait_for(b.host.do(*_command()), 30)
    assert [each.id for each in b.host.list()] == [again.id]
    assert not written or again.id == began
    assert await _claimed(nodes) == []


async def test_a_rejected_command_frees_its_id(nodes: Nodes) -> None:
    a, b = await nodes("a"), await nodes("b")
    _, caller = _command()
    for host in (a.host, b.host):
        with pytest.raises(NotFound):
            await host.do(c.StartSession(agent="none"), caller)
        assert await _claimed(nodes) == []
    assert (await b.host.do(c.StartSession(agent="play"), caller)).id


async def test_a_host_takes_its_own_claim_again(nodes: Nodes) -> None:
    """Its commit failed, or the request was given up, and nothing released the claim."""
    a = await nodes("a")
    command, caller = _command()
    name = hashlib.sha256(f"{caller.id}\0\0{caller.request}".encode()).hexdigest()[:32]
    left = msgspec.json.encode(Claim("other", a.log.lease.host, a.log.lease.epoch))
    assert await a.log.replace_kv(HOST, RECEIPTS + name, None, left)
    assert (await a.host.do(command, caller)).id
    assert await _claimed(nodes) == []


async def test_a_command_passed_on_takes_its_claim_along(nodes: Nodes) -> None:
    """A job whose label another host has: the first host holds the claim and waits for the second."""
    a, b = await nodes("a"), await nodes("b", labels=["gpu"])
    await asyncio.gather(a.log.renew_now(), b.log.renew_now())
    command = c.StartSession(agent="play")
    _, caller = _command()

    async def passing(command: c.StartSession, caller: c.Caller) -> Any:
        send = await a.cluster.pass_on(command, caller, "", {"gpu"}, False)
        assert send is not None
        return await send()

    a.host.commands._handlers[c.StartSession] = passing
    started = await asyncio.wait_for(a.host.do(command, caller), 30)
    assert (await b.cluster.owner(f"session/{started.id}"))[0] == b.log.lease.host
    assert [each.id for each in a.host.list()] == [started.id]
    assert await _claimed(nodes) == []
