"""What a host remembers of those who come and go has a bound: a table of everything that grew for ever."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portico import commands as c
from portico import events as e
from portico import limits
from portico.cache import Cache
from portico.doors.ahp.connection import notices
from portico.doors.ahp.connection.broker import Broker, ClientRecord
from portico.doors.ahp.connection.notices import CatalogueNotices
from portico.doors.rate import WrongTokens
from portico.errors import NotFound
from portico.host.host import Host
from portico.jobs import Jobs
from portico.jobs.engine import LocalEngine
from portico.testing.fixtures import HostOpener
from tests.doors.standing import standing


async def test_ended_jobs_make_room_and_stay_in_the_log(open_host: HostOpener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "JOB_SUMMARIES", 3)
    host = await open_host()
    engine = await LocalEngine.open(host.log)
    for number in range(1, 7):
        started = e.JobStarted(job=f"job-{number}", name="j", entry={"tasks": {}, "grid": []}, cwd="/", by="ada")
        await engine.create(started)
        if number != 2:  # that one runs on
            await engine.finish(e.JobEnded(job=started.job, outcome="succeeded", by="ada"))
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
    monkeypatch.setattr(limits, "CALLERS", 3)
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
