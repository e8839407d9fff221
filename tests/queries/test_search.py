"""Search with its index: the same answers as without, through restarts, deletions and damage."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portico.features.search.index import Index
from portico.features.search.search import Hit, Search
from portico.kernel.events import Message
from portico.kernel.host import Host
from portico.server.home import Home
from portico.testing.fixtures import HostOpener
from tests.property.scene import quick, run


class Searcher:
    """Hosts on one log, each with the same index file."""

    def __init__(self, opener: HostOpener) -> None:
        self.opener = opener
        self.path = opener.folder / "search.db"
        self.host: Host
        self.search: Search | None = None

    async def open(self) -> "Searcher":
        await self.close()
        self.host = await self.opener()
        self.search = Search(self.host, Home(self.opener.folder))
        return self

    async def close(self) -> None:
        if self.search is not None:
            await self.search.close()

    async def say(self, *texts: str, session: str | None = None) -> str:
        found = await self.host.get(session) if session else await self.host.start(by="test", cwd="/", title="-")
        for text in texts:
            await found.wait(await found.send(Message(text), by="test"))
        return found.id

    async def find(self, wanted: str, limit: int = 100) -> list[Hit]:
        """What the index finds, which must be what reading everything finds."""
        assert self.search is not None
        mark = self.host.log.seq
        await self.search.catch_up()  # by itself, so that a slow machine does not make the search read the log
        assert (self.search.cursor or 0) >= (mark if self.path.exists() else 0)
        hits, complete = await self.search.find(wanted, limit, seconds=20)
        assert (hits, complete) == await Search(self.host).find(wanted, limit, seconds=20)
        return hits

    async def sessions(self, wanted: str) -> list[str]:
        return [hit.session for hit in await self.find(wanted)]


@pytest.fixture
async def searcher(open_host: HostOpener) -> AsyncIterator[Searcher]:
    searcher = await Searcher(open_host).open()
    yield searcher
    await searcher.close()


async def test_the_index_answers_and_shows_the_place(searcher: Searcher) -> None:
    text = "Where do Wombats live? [[say:In Tasmania, mostly.]]"
    one = await searcher.say(text, "And their cousins?")
    (hit,) = await searcher.find("wombats")
    turns = [turn.id for turn in (await searcher.host.get(one)).state.turns]
    assert (hit.session, hit.turn, hit.excerpt) == (one, turns[0], text)
    assert [hit.turn for hit in await searcher.find("cousins")] == [turns[1]]
    assert searcher.path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "wanted",
    [
        '"',
        "''",
        "a AND b",
        "NEAR(a b)",
        "*",
        "col:x",
        "日本",
        "日本語",
        "🦊🦊",
        "Straße",
        "STRASSE",
        "ab",
        "-x",
        "%_",
        "\0x",
        "a\\b",
        "a\nb",
        "\N{KELVIN SIGN}g",
    ],
)
async def test_every_character_is_only_a_character(searcher: Searcher, wanted: str) -> None:
    await searcher.say(f"before {wanted * 2} after", "something else", 'the "quoted" col:x日本語 tabs')
    hits = await searcher.find(wanted * 2)
    assert len(hits) == 1
    await searcher.find(wanted * 3)


async def test_it_goes_on_after_a_restart_where_it_was(searcher: Searcher) -> None:
    first = await searcher.say("the quokka")
    assert await searcher.sessions("quokka") == [first]
    second = await searcher.say("one more quokka")
    await searcher.open()
    assert set(await searcher.sessions("quokka")) == {first, second}


async def test_renamed_archived_and_deleted(searcher: Searcher) -> None:
    one, two = await searcher.say("the numbat"), await searcher.say("the numbat too")
    session = await searcher.host.get(one)
    await session.rename("Marsupials", by="test")
    await session.archive(True, by="test")
    assert await searcher.sessions("marsupial") == [one]
    assert set(await searcher.sessions("numbat")) == {one, two}
    await searcher.host.delete(one, by="test")
    assert await searcher.sessions("numbat") == [two]
    assert await searcher.sessions("marsupial") == []


async def test_what_was_deleted_is_not_kept_in_the_index(searcher: Searcher) -> None:
    """Also when the host that deleted it had no time to tell the index."""
    one = await searcher.say("the secret bilby")
    assert await searcher.sessions("bilby") == [one]
    await searcher.close()
    searcher.search = None
    await searcher.host.delete(one, by="test")
    await searcher.open()
    assert await searcher.find("bilby") == []
    await searcher.close()
    searcher.search = None
    assert b"secret bilby" not in searcher.path.read_bytes()


async def test_a_deletion_that_the_disk_refused_is_done_another_time(
    searcher: Searcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index forgot the deletion with the write that failed, and kept what was deleted."""
    one = await searcher.say("the secret bilby")
    assert await searcher.sessions("bilby") == [one]

    def full(self: Index, session: str) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    assert searcher.search is not None
    with monkeypatch.context() as patched:
        patched.setattr(Index, "forget", full)
        await searcher.host.delete(one, by="test")
        await searcher.search.catch_up()
    await searcher.search.catch_up()
    await searcher.close()
    searcher.search = None
    index = Index.open(searcher.path)
    assert index.sessions() == set()
    index.close()


@pytest.mark.parametrize("when", ["before", "while"])
async def test_a_damaged_index_is_made_anew(searcher: Searcher, when: str) -> None:
    one = await searcher.say("the dingo " * 200)
    assert await searcher.sessions("dingo") == [one]
    if when == "before":
        await searcher.close()
        searcher.search = None
    for suffix in ("", "-wal"):
        path = searcher.path.with_name(searcher.path.name + suffix)
        if path.exists():
            path.write_bytes(b"no database at all " * 1000)
    if when == "before":
        await searcher.open()
    await searcher.say("and again the dingo", session=one)
    assert await searcher.sessions("dingo") == [one, one]
    assert await searcher.sessions("dingo") == [one, one]


async def test_a_full_disk_costs_no_more_than_the_time_it_is_full(searcher: Searcher) -> None:
    """Once the disk was full, a host searched without its index until it was started again."""
    one = await searcher.say("the wombat")
    assert await searcher.sessions("wombat") == [one]
    assert searcher.search is not None
    index = searcher.search._index
    assert index is not None
    index._db.execute("PRAGMA max_page_count = 1")
    await searcher.say("another wombat " * 500, session=one)
    await searcher.search.catch_up()
    hits, complete = await searcher.search.find("wombat", 10, seconds=20)
    assert (len(hits), complete) == (2, True)
    index._db.execute("PRAGMA max_page_count = 1000000")
    assert await searcher.sessions("wombat") == [one, one]
    assert searcher.search._index is index


async def test_an_index_of_another_log_is_made_anew(searcher: Searcher) -> None:
    await searcher.say("the kookaburra", "the kookaburra", "the kookaburra")
    assert len(await searcher.find("kookaburra")) == 3
    await searcher.close()
    await searcher.opener.close()
    searcher.search = None
    for path in searcher.opener.folder.glob("log.db*"):
        path.unlink()
    await searcher.open()
    one = await searcher.say("the lyrebird")
    assert await searcher.sessions("lyrebird") == [one]
    assert await searcher.find("kookaburra") == []


async def test_where_no_index_can_be_the_log_is_read(open_host: HostOpener, tmp_path: Path) -> None:
    searcher = Searcher(open_host)
    searcher.path = tmp_path / "missing" / "search.db"
    await searcher.open()
    one = await searcher.say("the echidna")
    assert await searcher.sessions("echidna") == [one]
    await searcher.close()


texts = st.text(st.sampled_from('ab"ßẞİ日本🦊 \0é'), min_size=1, max_size=12).filter(str.strip)
stories = st.lists(st.one_of(texts.map(lambda text: ("say", text)), st.just(("restart", ""))), min_size=1, max_size=6)
queries = st.lists(st.text(st.sampled_from('ab"ßsİi日本🦊 \0'), min_size=2, max_size=6), min_size=1, max_size=5)


@settings(quick, max_examples=12)
@given(stories, queries)
def test_the_index_finds_what_reading_everything_finds(stories: list[tuple[str, str]], queries: list[str]) -> None:
    async def story(folder: Path) -> None:
        opener = HostOpener(folder)
        searcher = await Searcher(opener).open()
        for number, (command, text) in enumerate(stories):
            if command == "restart":
                await searcher.open()
            else:
                known = [each.id for each in searcher.host.list()]
                await searcher.say(text, text * 2, session=known[0] if known and number % 2 else None)
        for wanted in [*queries, *(text[:4] for _, text in stories if len(text) > 1)]:
            await searcher.find(wanted)
            await searcher.find(wanted, limit=1)
        await searcher.close()
        await opener.close()

    run(story)


async def test_a_deletion_that_could_not_be_written_is_not_forgotten(searcher: Searcher) -> None:
    """What a person had deleted stayed in the index until the next start."""
    one = await searcher.say("the bilby")
    assert await searcher.sessions("bilby") == [one]
    assert searcher.search is not None
    index = searcher.search._index
    assert index is not None
    await searcher.host.delete(one, by="test")
    await searcher.search._run(lambda: index._db.execute("PRAGMA query_only = ON").fetchall())
    await searcher.search.catch_up()
    assert index.sessions() == {one}
    await searcher.search._run(lambda: index._db.execute("PRAGMA query_only = OFF").fetchall())
    await searcher.search.catch_up()
    assert index.sessions() == set()
