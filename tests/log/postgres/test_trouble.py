"""A database that is not there, refuses, is too new, goes away in the middle of a commit or loses its end."""

import asyncio
import gc
import os
import random
import re
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest

from portico.cluster.postgres import log as module
from portico.cluster.postgres import schema, store
from portico.cluster.postgres.error_text import check_url, translate
from portico.cluster.postgres.examine import examine
from portico.cluster.postgres.log import PostgresLog
from portico.kernel.errors import BadRequest, LogTooNew, LogUnavailable, PorticoError
from portico.kernel.events import HOST
from portico.testing.postgres import PostgresServer
from tests.log.events import fact
from tests.log.postgres.conftest import Hosts
from tests.log.postgres.test_hosts import seen
from tests.postgres import Databases


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda url: url.replace("postgresql:", "mysql:"), BadRequest, "postgresql://USER"),
        (lambda url: "log.db", BadRequest, "SQLite file"),
        (lambda url: url.replace(f":{urlsplit(url).port}/", ":banana/"), BadRequest, "log.url"),
        (lambda url: url.replace(f":{urlsplit(url).port}/", ":1/"), LogUnavailable, "cannot be reached"),
        (lambda url: url.replace("127.0.0.1", "nowhere.invalid"), LogUnavailable, "cannot be reached"),
        (lambda url: url[: url.rindex("/")] + "/nothing", LogUnavailable, "/nothing' is not there"),
        (lambda url: url.replace("portico@", "stranger:hush@"), LogUnavailable, "refuses the login"),
        (lambda url: url.replace("portico@", "portico:hush/hush@"), BadRequest, "written %2F"),
        (lambda url: url.replace("portico@", "portico:hush@hush@"), BadRequest, "@ %40"),
        (lambda url: f"{url}?sslmode=require", LogUnavailable, "or correct log.url"),
    ],
)
async def test_a_wrong_address(hosts: Hosts, change: "object", error: type[PorticoError], words: str) -> None:
    url = change(hosts.url)  # type: ignore[operator]
    with pytest.raises(error, match=words) as refused:
        await hosts("a", url=url)
    assert "hush" not in refused.value.message


async def test_no_rights(databases: Databases, hosts: Hosts) -> None:
    empty = await databases.new(empty=True)
    owner = await asyncpg.connect(empty)
    await owner.execute("DO $$ BEGIN CREATE ROLE guest LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    await owner.close()
    with pytest.raises(LogUnavailable, match="gives no rights"):
        await hosts("a", url=empty.replace("portico@", "guest@"))
    log = await hosts("a", url=empty)
    await log.append("session/x", fact(1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE meta SET value = 'x' WHERE key = 'version'", "version 'x' of the database is no number"),
        ("DELETE FROM meta WHERE key = 'version'", "a part of one"),
        ("DROP TABLE meta", "a part of one"),
    ],
)
async def test_a_schema_that_is_no_log(databases: Databases, hosts: Hosts, change: str, words: str) -> None:
    """The first was said not to be reached, the others to refuse, and nobody knew what to do."""
    url = await databases.new()
    other = await asyncpg.connect(url, server_settings={"search_path": schema.SCHEMA})
    await other.execute(change)
    await other.close()
    with pytest.raises(LogUnavailable, match=words):
        await hosts("a", url=url)


async def test_what_doctor_finds(databases: Databases, hosts: Hosts) -> None:
    """A wrong address was "none yet; the first start makes it"."""
    empty = await databases.new(empty=True)
    name = urlsplit(empty).path.strip("/")
    assert ": no host runs; last event 0, " in await examine(hosts.url)
    for host in "ab":
        log = await hosts(host)
        await log.append(f"session/{host}", fact(1))
    assert re.search(r": 2 hosts \(a, b\); last event 2, \d+ MB$", await examine(hosts.url))
    await hosts.sql("UPDATE hosts SET expires = clock_timestamp() WHERE name = 'a'")
    assert (await examine(hosts.url)).endswith(" MB; 1 sessions belong to hosts that do not run")
    assert (await examine(empty)).endswith(": no log yet; the first host makes it")
    await hosts.sql("DO $$ BEGIN CREATE ROLE guest LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    newer, read_only = "UPDATE meta SET value = '99' WHERE key = 'version'", "SET default_transaction_read_only"
    for change, url, words in (
        ("", empty.replace("portico@", "guest@"), "grant CREATE"),
        ("", hosts.url.replace(f":{urlsplit(hosts.url).port}/", ":1/"), "cannot be reached"),
        (f"ALTER DATABASE {name} {read_only} = on", empty, "is read-only"),
        (newer, hosts.url, "version 99"),
    ):
        await hosts.sql(change or "SELECT 1")
        with pytest.raises(LogUnavailable, match=words):
            await examine(url)
    await hosts.sql("UPDATE meta SET value = $1 WHERE key = 'version'", str(schema.VERSION))


async def test_a_newer_schema_is_told_at_the_start_and_while_running(hosts: Hosts) -> None:
    old = await hosts("a", lease=0.3)
    failed = asyncio.Event()
    old.on_failure(lambda _: failed.set())
    await hosts.sql("UPDATE meta SET value = '99' WHERE key = 'version'")
    with pytest.raises(LogTooNew, match="version 99"):
        await hosts("b")
    await asyncio.wait_for(failed.wait(), 20)
    assert isinstance(old.down, LogTooNew)
    await hosts.sql("UPDATE meta SET value = $1 WHERE key = 'version'", str(schema.VERSION))


async def test_an_older_schema_is_migrated_by_one_host(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "VERSION", 2)
    monkeypatch.setattr("portico.cluster.postgres.lease.VERSION", 2)
    monkeypatch.setitem(schema.STEPS, 2, "CREATE TABLE added (x int); INSERT INTO added VALUES (1)")
    await asyncio.gather(*(hosts(name) for name in "abc"))
    assert len(await hosts.sql("SELECT * FROM added")) == 1
    await hosts.sql("DROP TABLE added")
    await hosts.sql("UPDATE meta SET value = '1' WHERE key = 'version' RETURNING 1")


async def test_a_read_only_database_is_as_a_full_disk(hosts: Hosts) -> None:
    log = await hosts("a")
    await log.append("session/x", fact(1))
    name = urlsplit(hosts.url).path.strip("/")
    await hosts.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    await hosts.cut("a")
    with pytest.raises(LogUnavailable, match="read-only"):
        await log.append("session/x", fact(2))
    other = await asyncpg.connect(hosts.url, server_settings={"default_transaction_read_only": "off"})
    await other.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    await other.close()
    await asyncio.wait_for(log.available(), 20)
    await log.append("session/x", fact(3))
    assert [r.event for r in await log.read("session/x")] == [fact(1), fact(3)]


_AWAY: dict[str, tuple[Callable[[PostgresServer], object], Callable[[PostgresServer], object]]] = {
    "stopped": (PostgresServer.stop, PostgresServer.start),
    "crashed": (partial(PostgresServer.stop, at_once=True), PostgresServer.start),
    "silent": (lambda server: _signal(server, signal.SIGSTOP), lambda server: _signal(server, signal.SIGCONT)),
}


def _signal(server: PostgresServer, number: signal.Signals) -> None:
    assert server._process is not None
    for process in (server._process.pid, *_children(server._process.pid)):
        os.kill(process, number)


def _children(parent: int) -> list[int]:
    """The server's processes have groups of their own."""
    found = Path(f"/proc/{parent}/task/{parent}/children").read_text("ascii").split()
    return [int(each) for each in found]


@pytest.mark.parametrize("away", _AWAY)
async def test_the_database_goes_away_and_comes_back(hosts: Hosts, away: str) -> None:
    """Nothing is visible meanwhile, everybody is told, and the host goes on without a restart. A database that said
    nothing at all was waited for half a minute, when others had long taken over."""
    leave, come_back = _AWAY[away]
    a, b = await hosts("a", lease=3.0), await hosts("b", lease=3.0)
    await a.append("session/x", fact("before"))
    failed = asyncio.Event()
    a.on_failure(lambda _: failed.set())
    leave(hosts.databases.server)
    try:
        writing = asyncio.ensure_future(a.append("session/x", fact("meanwhile")))
        await asyncio.wait_for(failed.wait(), 20)
        with pytest.raises(LogUnavailable, match=r"cannot be reached|does not answer"):
            await a.append("session/x", fact("refused"))
        assert a.head("session/x") == 1
    finally:
        come_back(hosts.databases.server)
    await asyncio.wait_for(asyncio.gather(a.available(), b.available()), 30)
    [outcome] = await asyncio.gather(writing, return_exceptions=True)
    await a.append("session/x", fact("after"))
    known = [fact("before"), *([fact("meanwhile")] if isinstance(outcome, int) else []), fact("after")]
    await seen(b, a.seq)
    assert [r.event for r in await a.read("session/x")] == [r.event for r in await b.read("session/x")] == known


class Relay:
    """A network before the database: while it is `down` it swallows everything, and what began by then stays lost."""

    def __init__(self, url: str) -> None:
        self._to = urlsplit(url).port
        self._tasks: list[asyncio.Task[None]] = []
        self._writers: list[asyncio.StreamWriter] = []
        self.down = False

    async def __aenter__(self) -> "Relay":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*self._tasks, *(each.wait_closed() for each in self._writers), return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers += [writer, back]
        for one, other in ((reader, back), (there, writer)):
            self._tasks.append(asyncio.ensure_future(self._pass(one, other)))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lost = self.down
        while data := await reader.read(1 << 16):
            lost = lost or self.down
            if not lost:
                writer.write(data)
        writer.close()


async def test_connections_that_a_network_has_forgotten_end_with_the_lease(
    hosts: Hosts, caplog: pytest.LogCaptureFixture
) -> None:
    """Readers waited for half a minute for answers that never came, and the host with them; a question that nobody
    waited for any more left a traceback in the log."""
    async with Relay(hosts.url) as relay:
        log = await hosts("a", lease=1.5, url=hosts.url.replace(f":{urlsplit(hosts.url).port}/", f":{relay.port}/"))
        await log.append("session/x", fact(1))
        relay.down = True
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(log.catch_up(), 0.01)
        failed = asyncio.Event()
        log.on_failure(lambda _: failed.set())
        await asyncio.wait_for(failed.wait(), 20)
        relay.down = False
        await asyncio.wait_for(log.available(), 15)
        await log.append("session/x", fact(2))
        await log.catch_up()
    gc.collect()
    assert "never retrieved" not in caplog.text


async def test_the_outcome_of_a_commit_without_an_answer_is_found_out(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections are cut at random moments of running commits: each is written exactly once, in order, and nobody
    who waits hears of it."""
    monkeypatch.setattr(module, "OUTAGE_SECONDS", 60)  # however slow this machine is
    monkeypatch.setattr(store, "READ_AGAIN_SECONDS", 60)
    a, b = await hosts("a"), await hosts("b")
    chance = random.Random(19)

    async def cut() -> None:
        for _ in range(15):
            await asyncio.sleep(chance.uniform(0, 0.03))
            await hosts.cut("a")

    cutting = asyncio.ensure_future(cut())
    numbers = 0
    while not cutting.done():
        await a.append_all(("session/x", fact(numbers)), (HOST, fact(numbers)))
        numbers += 1
    await cutting
    for channel in ("session/x", HOST):
        assert [r.event for r in await a.read(channel, limit=10_000)] == [fact(each) for each in range(numbers)]
    await seen(b, a.seq)
    assert await b.read_all(limit=10_000) == await a.read_all(limit=10_000)


async def test_who_waits_too_long_for_an_outcome_is_told(hosts: Hosts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNKNOWN_SECONDS", 0.5)
    a = await hosts("a")
    await a.append("session/x", fact(0))
    hosts.databases.server.stop()
    with pytest.raises(LogUnavailable, match=r"same id|cannot be reached"):
        await asyncio.wait_for(a.append("session/x", fact(1)), 20)
    hosts.databases.server.start()
    await asyncio.wait_for(a.available(), 30)
    await a.append("session/x", fact(2))
    assert [r.event for r in await a.read("session/x")] == [fact(0), fact(2)]


async def test_a_database_that_lost_its_end_gets_a_new_epoch(hosts: Hosts) -> None:
    """A replica that was behind: no number and no position is given twice."""
    a = await hosts("a")
    await a.append("session/x", *(fact(number) for number in range(10)))
    epoch = a.epoch
    await a.close()
    await hosts.sql("DELETE FROM events WHERE seq > 6")
    await hosts.sql("SELECT setval('seq', 6)")
    a = await hosts("a")
    assert a.epoch != epoch
    assert (a.identity.lost_now, a.identity.last, a.identity.why) == (4, 10, "its last 4 events are gone")
    assert await a.append("session/x", fact("new")) == 11
    assert [r.pos for r in await a.read("session/x")] == [1, 2, 3, 4, 5, 6, 11]


async def test_a_copy_of_the_database_is_another_log(hosts: Hosts) -> None:
    a = await hosts("a")
    await a.append("session/x", fact(1))
    await a.close()
    name = urlsplit(hosts.url).path.strip("/")
    admin = await asyncpg.connect(hosts.databases.server.url())
    await admin.execute(f"CREATE DATABASE copy_of_{name} TEMPLATE {name}")
    await admin.close()
    copy = await hosts("a", folder="copy", url=hosts.url.replace(name, f"copy_of_{name}"))
    assert copy.identity.why == "it was copied or restored"
    assert copy.epoch != a.epoch
    assert await copy.append("session/x", fact(2)) == 2


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (asyncpg.DiskFullError("could not extend file"), "has a full disk"),
        (asyncpg.OutOfMemoryError("out of memory"), "too little"),
        (asyncpg.TooManyConnectionsError("too many"), "no free connection"),
        (asyncpg.QueryCanceledError("canceling statement"), "too slow"),
        (asyncpg.UndefinedTableError('relation "events" does not exist'), "lacks a table"),
        (TimeoutError(), "cannot be reached"),
        (asyncpg.InternalClientError("cannot switch to state"), "cannot be reached"),
        (asyncpg.DataError("strange"), "refuses: strange"),
    ],
)
def test_what_the_database_says_becomes_what_to_do(error: Exception, words: str) -> None:
    assert words in translate(error, "db/x").message


def test_an_address_is_shown_without_its_secrets() -> None:
    assert check_url("postgresql://me:hush@db.example:5433/portico?sslmode=require") == "db.example:5433/portico"
    assert check_url("postgres:///portico?host=/run/pg") == "/run/pg/portico"


async def test_a_log_that_is_closed_while_the_database_is_away_returns(hosts: Hosts, tmp_path: Path) -> None:
    a: PostgresLog = await hosts("a")
    await a.append("session/x", fact(1))
    hosts.databases.server.stop()
    try:
        writing = asyncio.ensure_future(a.append("session/x", fact(2)))
        await asyncio.sleep(0)
        await asyncio.wait_for(a.close(), 30)
        [outcome] = await asyncio.gather(writing, return_exceptions=True)
        assert isinstance(outcome, LogUnavailable)
    finally:
        hosts.databases.server.start()
