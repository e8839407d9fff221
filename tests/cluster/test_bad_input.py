"""What a cluster meets that it did not ask for, in the words of those who have to mend it. (Wrong addresses, rights and
schemas are in tests/log/postgres/test_trouble.py, a place that never comes back in test_cluster.py.)"""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from portico.cluster.link import HostLink, Told
from portico.cluster.open import open_log
from portico.cluster.postgres import schema
from portico.cluster.postgres.connect import _BOUNDS, connect
from portico.cluster.postgres.text import to_text
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest, LogTooNew, LogUnavailable, NotFound, PlaceAway, PorticoError
from portico.server.settings import ClusterSettings, LogSettings, Settings
from tests.cluster.conftest import Nodes
from tests.cluster.test_cluster import ADA, found, say
from tests.cluster.test_doors import flags
from tests.doors.standing import standing
from tests.host.test_do import sample
from tests.postgres import Databases

_FULL = "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'"
_SLOW = "PERFORM pg_sleep(20)"
_NO_RIGHTS = "RAISE EXCEPTION 'permission denied for table events' USING ERRCODE = '42501'"
_READ_ONLY = "RAISE EXCEPTION 'cannot execute INSERT in a read-only transaction' USING ERRCODE = '25006'"


@pytest.mark.parametrize(
    ("address", "taken"), [("127.0.0.1", True), ("nowhere.invalid", False), ("198.51.100.7", False)]
)
async def test_an_address_that_cannot_be_listened_on(address: str, taken: bool) -> None:
    """The home folder was said to be unusable, and that some space should be freed."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1] if taken else 0
        with pytest.raises(
            BadRequest, match=rf"cluster.address '{address}', cluster.port {port}: .*free port"
        ) as refused:
            HostLink(address, port, "key", lambda *_: asyncio.sleep(0, Told()))
    assert refused.value.field == "cluster.address"


async def test_a_host_that_nobody_knows(nodes: Nodes) -> None:
    a, b = await nodes("a"), await nodes("b")
    for ask in (a.cluster.drain, b.cluster.give_up):
        with pytest.raises(NotFound, match=r"There is no host 'nosuch'\. The hosts: a, b\."):
            await ask("nosuch")


async def _sql(url: str, text: str) -> None:
    other = await connect(url, "test")
    await other.execute(text)
    await other.close()


@pytest.mark.parametrize(
    ("happens", "words"),
    [(_FULL, "full disk"), (_SLOW, "too slow"), (_NO_RIGHTS, "no rights"), (_READ_ONLY, "read-only")],
    ids=["full", "slow", "no rights", "read-only"],
)
async def test_a_database_that_refuses_is_as_a_full_disk(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch, happens: str, words: str
) -> None:
    """Commands are refused with what to do, nothing of them is seen, and everything goes on when it is mended."""
    monkeypatch.setitem(_BOUNDS, "statement_timeout", "2s")
    a = await nodes("a")
    session = await a.host.start(by="test", agent="play")
    head = a.log.head(session.channel)
    monkeypatch.setitem(_BOUNDS, "statement_timeout", "30s")
    await _sql(
        nodes.url,
        f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {happens}; RETURN NEW; END $$;"
        "CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    try:
        with pytest.raises(LogUnavailable, match=words):
            await a.host.do(c.RenameSession(session=session.id, title="unseen"), ADA)
        assert (a.log.head(session.channel), session.summary.title) == (head, "")
    finally:
        await _sql(nodes.url, "DROP FUNCTION refuse CASCADE")
    await asyncio.wait_for(a.log.available(), 30)
    await a.host.do(c.RenameSession(session=session.id, title="seen"), ADA)
    assert session.summary.title == "seen"


@pytest.mark.parametrize("off", [-3600, 3600])
async def test_a_clock_that_is_off_by_an_hour(nodes: Nodes, monkeypatch: pytest.MonkeyPatch, off: int) -> None:
    """Leases, the times of events and how long a place is away are the database's."""
    a, b = await nodes("a", lease=1.0), await nodes("b", place="cellar")
    right = b.host.clock.time
    monkeypatch.setattr(b.host.clock, "time", lambda: right() + off)
    session = await a.host.start(by="test", agent="play")
    mine = await b.host.start(by="test", agent="play")
    turn = await say(b, session.id, "hello")
    assert (await (await found(b, session.id)).wait(turn)).outcome == "completed"
    times = [(await node.log.read(each.channel))[0].time for node, each in ((a, session), (b, mine))]
    assert abs(times[0] - times[1]) < 60_000
    assert {peer.name: peer.alive for peer in await b.cluster.roster.peers()} == {"a": True, "b": True}
    await a.kill()
    with pytest.raises(PlaceAway, match=r"last seen \d\d? seconds ago"):
        await say(b, session.id, "anybody?")


async def test_a_host_of_another_version_is_told_so(nodes: Nodes) -> None:
    """It sends a command, or a field, that this one does not know; what it says of itself may have more fields."""
    a, b = await nodes("a"), await nodes("b")
    session = await a.host.start(by="test", agent="play")
    key = {"authorization": f"Bearer {await a.cluster.roster.key()}"}
    caller = msgspec.to_builtins(ADA)
    async with httpx.AsyncClient(trust_env=False, headers=key) as other:
        for command in (
            {"command": "session.levitate", "session": session.id},
            {"command": "session.rename", "session": session.id, "title": "x", "colour": "red"},
        ):
            body = {"command": command, "caller": caller, "channel": session.channel}
            told = (await other.post(f"{a.cluster.link.url}/do", json=body)).json()
            assert (told["code"], "another version" in told["message"]) == ("conflict", True)
    info = '{"link": "http://127.0.0.1:1", "version": "9.9", "capacity": 1, "novelty": {"x": 1}}'
    await _sql(nodes.url, f"UPDATE hosts SET info = '{info}' WHERE name = 'a'")
    assert [each.version for each in await b.host.members.all() if each.name == "a"] == ["9.9"]


async def test_a_host_ends_when_a_newer_one_has_migrated_the_log(databases: Databases, tmp_path: Path) -> None:
    url = await databases.new()
    (tmp_path / "a").mkdir()
    async with standing(tmp_path / "a", flags=flags(url, "a") | {"cluster.lease_seconds": 1.0}) as a:
        await _sql(url, "UPDATE meta SET value = '99' WHERE key = 'version'")
        await asyncio.wait_for(a.server.stopped(), 30)
        assert isinstance(a.server.failure, LogTooNew)
        with pytest.raises(LogTooNew, match="Install the newer version"):
            await a.server.host.start(by="test", agent="scripted")
    await _sql(url, f"UPDATE meta SET value = '{schema.VERSION}' WHERE key = 'version'")
    databases.give_back(url)


async def test_a_host_that_takes_long_to_start_is_not_taken_for_dead(databases: Databases, tmp_path: Path) -> None:
    """On a busy machine it loaded for longer than its lease, and ended as soon as it was ready."""
    url = await databases.new()
    left = "SELECT extract(epoch FROM expires - clock_timestamp()) FROM hosts"
    (tmp_path / "a").mkdir()
    settings = Settings(log=LogSettings(url=url), cluster=ClusterSettings(host="a", lease_seconds=1.0))
    log = await open_log(settings, tmp_path / "a")
    assert await log.run(lambda db: db.fetchval(left)) > 30
    log.starting_seconds = 0.0  # as when it listens
    await log.renew_now()
    assert await log.run(lambda db: db.fetchval(left)) <= 1
    await log.close()
    databases.give_back(url)


def _with_nul(kind: type[c.Command], session: str) -> Iterator[tuple[str, c.Command]]:
    """The command with a NUL in each of its texts."""
    whole = sample(kind, **({kind.about: session} if kind.about == "session" else {}))
    for field in msgspec.structs.fields(kind):
        if field.type in (str, str | None):
            yield field.name, msgspec.structs.replace(whole, **{field.name: "a\0b"})


async def test_a_nul_in_any_text_of_any_command_is_no_outage(nodes: Nodes) -> None:
    """Bug: PostgreSQL stores no NUL in a text, so the host answered that the log was unavailable, also to others whose
    events were in the same commit."""
    a = await nodes("a")
    for name, kind in c.COMMANDS.items():
        session = await a.host.start(by="test", agent="play")
        for field, command in _with_nul(kind, session.id):
            try:
                await a.host.do(command, ADA)
            except LogUnavailable as error:
                pytest.fail(f"{name}, {field}: {error.message}")
            except PorticoError:
                pass


@pytest.mark.parametrize("text", ["", "a", "a\0b", "\0", "\ufdd0", "\ufdd0\ufdd1", "\ufdd0\ufdd2", "\0\ufdd0\0"])
async def test_names_and_keys_of_any_text_are_stored(nodes: Nodes, text: str) -> None:
    a, b = await nodes("a"), await nodes("b")
    a.log.put_kv(f"test/{text}", f"key {text}", b"value")
    await a.log.flush()
    assert await b.log.get_kv(f"test/{text}", f"key {text}") == b"value"
    assert await b.log.list_kv(f"key {text}") == {f"test/{text}": b"value"}
    assert "\0" not in to_text(text)
