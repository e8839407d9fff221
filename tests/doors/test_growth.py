"""What a host remembers of those who come and go has a bound: a table of everything that grew for ever."""

import asyncio
import base64
import os
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from portico import limits
from portico.doors.ahp.connection import notices
from portico.doors.ahp.connection.broker import Broker, ClientRecord
from portico.doors.ahp.connection.notices import CatalogueNotices
from portico.doors.portal import live
from portico.features.automations import automations
from portico.features.automations.state import RunSummary
from portico.features.board import board
from portico.features.jobs import Jobs
from portico.features.jobs import events as je
from portico.features.jobs.engine import LocalEngine
from portico.features.notices import notices as deliveries
from portico.kernel import commands as c
from portico.kernel import limits as kernel_limits
from portico.kernel.cache import Cache
from portico.kernel.errors import NotFound
from portico.kernel.host import Host
from portico.kernel.log import notes
from portico.server.rate import WrongTokens
from portico.testing.fixtures import HostOpener
from tests.doors.ahp.wire_client import WireClient, opened
from tests.doors.census import census
from tests.doors.standing import Standing, standing
from tests.features import feature
from tests.jobs.playing import make, ok, until_ended


async def test_ended_jobs_make_room_and_stay_in_the_log(open_host: HostOpener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "JOB_SUMMARIES", 3)
    host = await open_host()
    engine = await LocalEngine.open(host.log)
    for number in range(1, 7):
        started = je.JobStarted(job=f"job-{number}", name="j", entry={"tasks": {}, "grid": []}, cwd="/", by="ada")
        await engine.create(started)
        if number != 2:  # that one runs on
            await engine.finish(je.JobEnded(job=started.job, outcome="succeeded", by="ada"))
    assert list(engine.summaries) == ["job-2", "job-5", "job-6"]
    again = await LocalEngine.open(host.log)
    assert list(again.summaries) == ["job-2", "job-5", "job-6"]
    jobs = await Jobs.open(host, None)
    with pytest.raises(NotFound, match="is in the log, as 'job/job-1'"):
        jobs.job("job-1")
    with pytest.raises(NotFound, match=r"no job 'job-99'\.$"):
        jobs.job("job-99")
    await jobs.close()


async def test_callers(open_host: HostOpener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_limits, "CALLERS", 3)
    host = await open_host()
    for number in range(6):
        caller = c.Caller(f"token-{number}", "x", frozenset(c.SCOPES))
        with pytest.raises(NotFound):
            await host.do(c.SendMessage(session="nosuch", text="x"), caller)
    assert list(host.commands._buckets) == ["token-3", "token-4", "token-5"]


def wrong_tokens(count: int) -> int:
    brake = WrongTokens()
    for number in range(count):
        brake.count(f"10.0.0.{number}", 0.0)
    return len(brake._times)


def cache(count: int) -> int:
    """AHP's clients, Anywhere's message ids, deleted conversations: all of them are such caches."""
    kept = Cache[int, None](100)
    for number in range(count):
        kept[number] = None
    return len(kept)


@pytest.mark.parametrize(("fill", "bound"), [(wrong_tokens, WrongTokens._ADDRESSES + 1), (cache, 100)])
def test_it_stays_below_its_bound(fill: Callable[[int], int], bound: int) -> None:
    assert fill(bound + 50) <= bound


async def test_sessions_that_go_while_no_editor_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each deleted session left its id with the AHP door for ever."""
    monkeypatch.setattr(notices, "_TOUCHED", 4)
    async with standing(tmp_path) as here:
        host: Host = here.server.host
        broker = Broker(here.server.app)
        seen = CatalogueNotices(broker)
        for _ in range(20):
            session = await host.start(by="ada", cwd="/")
            await host.do(c.DeleteSession(session=session.id), c.Caller.inside("ada"))
        sizes: dict[str, Any] = {
            name: len(value) for name, value in vars(seen).items() if isinstance(value, dict) and name != "_told"
        }
        assert all(size <= 5 for size in sizes.values()), sizes
        assert not seen._told
        assert isinstance(broker.known, Cache)
        broker.remember("x", ClientRecord("token-1", "1"))


# -- whatever comes and goes at a running host, many times over --------------------------------------------------------

SCRIPT = """
rules:
  - {match: write, steps: [{do: write, path: it, text: hello}]}
  - {match: "", steps: [{do: say, text: done}]}
"""
NUMBERS = count(1)
WARM_UP, ROUNDS = 3, 5
"""Nothing may have become larger by as many entries as there were rounds after the first few."""


async def do(here: Standing, name: str, /, **arguments: Any) -> dict[str, Any]:
    answer = await here.http.post("/v1/commands", json={"command": name, "arguments": arguments})
    assert answer.is_success, answer.text
    found: dict[str, Any] = answer.json() if answer.content else {}
    return found


async def a_session(here: Standing, folder: Path) -> None:
    """With an approval, and everything that reads sessions from outside."""
    session = await here.start(cwd=str(folder))
    await here.http.post(f"/v1/sessions/{session}/messages", json={"text": "write it"})
    found = await here.server.host.get(session)
    await found.wait_until(lambda state: state.status == "waiting")
    for each in (await here.http.get("/v1/inbox")).json()["waiting"]:
        await do(here, "approval.answer", approval=each["id"], allow=True)
    await found.wait_until(lambda state: state.status == "idle")
    for path in ("inbox/answered?since=0", f"usage?east={next(NUMBERS)}", "board", "search?q=hello"):
        assert (await here.http.get(f"/v1/{path}")).is_success
    await here.http.delete(f"/v1/sessions/{session}")


async def a_page(here: Standing, folder: Path) -> None:
    session = await here.start(cwd=str(folder))
    await here.say(session, "hello")
    assert (await here.http.get(f"/api/copilot/session/{session}/live/page-{next(NUMBERS)}")).is_success
    await here.http.delete(f"/v1/sessions/{session}")


async def an_editor(here: Standing, folder: Path) -> None:
    url = f"{here.url.replace('http', 'ws')}/?tkn={here.home.token()}"
    async with opened(WireClient(url, f"editor-{next(NUMBERS)}", "0.9.0")) as client:
        await client.initialize(client.root)
        session = await here.start(cwd=str(folder))
        await here.http.delete(f"/v1/sessions/{session}")


async def a_token(here: Standing, folder: Path) -> None:
    name = f"token-{next(NUMBERS)}"
    made = await here.http.post("/v1/tokens", json={"name": name, "scopes": ["read"]})
    async with here.client(made.json()["token"]) as client:
        assert (await client.get("/v1")).is_success
    await here.http.delete(f"/v1/tokens/{name}")
    here.server.tokens.save_uses()  # as once a minute


async def a_person(here: Standing, folder: Path) -> None:
    name = f"person-{next(NUMBERS)}"
    await do(here, "person.add", name=name, scopes=["read"])
    await do(here, "person.remove", name=name)


async def a_terminal(here: Standing, folder: Path) -> None:
    opened_ = await do(here, "terminal.open", cwd=str(folder))
    await here.http.delete(f"/v1/terminals/{opened_['id']}")


async def a_job(here: Standing, folder: Path) -> None:
    plan = msgspec.to_builtins(make({"ok": ok()}))
    started = await do(here, "job.run", job="main", cwd=str(folder), entry=plan)
    await until_ended(here.server.host.log, f"job/{started['job']}")
    await delete_sessions(here)


async def an_automation(here: Standing, folder: Path) -> None:
    name = f"automation-of-{next(NUMBERS)}"
    watched = folder / "watched"
    watched.mkdir(exist_ok=True)
    plan = {"prompt": {"text": "hi", "agent": "scripted", "cwd": str(folder)}, "files": {"folder": str(watched)}}
    await do(here, "automation.create", name=name, plan=plan)
    store = here.server.automations.store
    run = store.run((await do(here, "automation.run", automation=name))["run"])
    over = asyncio.create_task(until_over(run))
    if next(NUMBERS) % 2:  # the others may be deleted while they run
        await over
    await do(here, "automation.delete", automation=name)
    await over
    with pytest.MonkeyPatch.context() as patch:  # for so long an ended run of a deleted automation can be read
        patch.setattr(automations, "SWEEP_SECONDS", -1.0)
        await here.server.automations.sweep()
    await delete_sessions(here)


async def until_over(run: RunSummary) -> None:
    """By its state: the channel of a run whose automation is deleted goes with its last event."""
    async with asyncio.timeout(60):
        while run.open:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def delete_sessions(here: Standing) -> None:
    for each in (await here.http.get("/v1/sessions?children=true")).json()["sessions"]:
        await here.http.delete(f"/v1/sessions/{each['id']}")


async def a_browser_that_wants_pushes(here: Standing, folder: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    def text(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    point = text(key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))
    where = f"https://127.0.0.1:9/{next(NUMBERS)}"
    made = await here.http.post("/v1/push", json={"endpoint": where, "p256dh": point, "auth": text(os.urandom(16))})
    assert made.status_code == 201, made.text
    await here.http.delete(f"/v1/push/{made.json()['push']}")
    lanes = feature(here.server.host, deliveries.Notices)._lanes
    async with asyncio.timeout(30):
        while lanes:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def a_stranger(here: Standing, folder: Path) -> None:
    number = next(NUMBERS)
    for path in (f"/v1/{number}", f"/v1/sessions/session-{number}000", f"/{number}"):
        await here.stranger.get(path)
        await here.http.get(path)


CHANNEL_NAMES = {"Database._ids", "Database._names", "SqliteLog._heads"}
"""The log forgets no name of a channel, so that none is given twice: some 300 bytes for each session ever made."""


@pytest.mark.parametrize(
    "come_and_go",
    [
        a_session,
        a_page,
        an_editor,
        a_token,
        a_person,
        a_terminal,
        a_job,
        an_automation,
        a_browser_that_wants_pushes,
        a_stranger,
    ],
)
async def test_nothing_stays_of_what_comes_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, come_and_go: Callable[[Standing, Path], Awaitable[None]]
) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    for module, name in (
        (limits, "CLOSED_TERMINALS"),
        (limits, "JOB_SUMMARIES"),
        (live, "READERS"),
        (deliveries, "KEPT"),
        (notices, "_TOUCHED"),
        (board, "_MOVED"),
    ):
        monkeypatch.setattr(module, name, 2)
    monkeypatch.setattr(notes, "LAZY_SECONDS", 0)  # or what is counted depends on how quick the rounds were
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    async with standing(tmp_path, agents=("scripted",), script=script) as here:
        sizes = []
        for rounds in (WARM_UP, ROUNDS):
            for _ in range(rounds):
                await come_and_go(here, tmp_path)
            assert (await here.http.get("/v1/search?q=hello")).is_success  # its index follows now and then
            sizes.append(census())
    before, after = sizes
    grown = {name: size for name, size in after.items() if size - before.get(name, 0) >= ROUNDS}
    assert set(grown) - CHANNEL_NAMES == set(), grown
