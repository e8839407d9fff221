"""Pages of the board: which sessions are on one, which are left, and what each reader hears of changes."""

from typing import Any

import pytest

from portico.features.board.activity import waiting_of
from portico.features.board.board import Board, BoardPart, _is_called
from portico.features.people.view import View
from portico.kernel.commands import Caller
from portico.kernel.events import Message, Origin
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import Summary
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.host.plays import allowed, hang, idle

OWNER = Caller("owner", "owner", frozenset({"admin", "read", "drive"}))
STRANGER = Caller("t", "t", frozenset({"read"}), person="eve")


def line(modified: int, **fields: Any) -> Summary:
    given = {"agent": "loop", "model": "m", "cwd": "/w", "title": "T", "status": "idle", "created": 0, "pos": 1}
    return Summary(**{"id": f"session-{modified}", "modified": modified, **given, **fields})


HELPER = Origin("agent", "session-1", "t1", call="c")


@pytest.mark.parametrize(
    ("left", "days", "counts"),
    [
        ([], [], [0]),
        ([], [100], [0, 0]),
        ([line(50), line(150)], [], [2]),
        ([line(50), line(150)], [100], [1, 1]),
        ([line(100)], [100], [1, 0]),
        ([line(99)], [100], [0, 1]),
        ([line(50), line(150), line(250)], [200, 100], [1, 1, 1]),
        ([line(50), line(60), line(250)], [200, 100, 0], [1, 0, 2, 0]),
        ([line(50, by="task:task-1"), line(60)], [], [1]),
        ([line(50, origin=HELPER), line(60, origin=Origin("fork", "session-1", "t1"))], [], [1]),
    ],
    ids=[
        "nothing",
        "no day has any",
        "all together",
        "before and after",
        "at that very time",
        "just before",
        "three days",
        "an empty day between",
        "without those of jobs",
        "without helpers",
    ],
)
def test_how_many_rows_the_older_ones_will_be(left: list[Summary], days: list[int], counts: list[int]) -> None:
    assert BoardPart([], left, 0).by_day(days) == counts


@pytest.mark.parametrize(
    ("words", "called"),
    [
        ([], True),
        (["fix"], True),
        (["fix", "login"], True),
        (["login", "loop"], True),
        (["gpt"], True),
        (["/work"], True),
        (["session-7"], True),
        (["fix", "nothing"], False),
        (["FIX"], False),
    ],
)
def test_a_session_is_found_by_all_words_of_its_names(words: list[str], called: bool) -> None:
    """Words come in lower case."""
    assert _is_called(line(7, title="Fix the Login", model="GPT-x", cwd="/Work"), words) is called


@pytest.fixture
async def host(open_host: HostOpener, clock: FakeClock) -> Host:
    return await open_host(PlayAgent(idle), PlayAgent(hang, "busy"), PlayAgent(allowed, "asks"), clock=clock)


async def made(host: Host, clock: FakeClock, *titles: str) -> None:
    for title in titles:
        clock.advance(1)
        await host.start(by="test", title=title, cwd="/")


def titles(part: BoardPart) -> list[str]:
    return [row.session.title for row in part.rows]


async def test_the_newest_stand_on_the_first_page_and_the_next_begins_behind_them(host: Host, clock: FakeClock) -> None:
    await made(host, clock, "a", "b", "c", "d")
    board, view = Board(host), View(host, OWNER)
    first = board.page(view, 2)
    assert (titles(first), [each.title for each in first.left]) == (["d", "c"], ["b", "a"])
    second = board.page(view, 2, first.before)
    assert (titles(second), second.left, second.before) == (["b", "a"], [], 0)
    whole = board.page(view, 4)
    assert (titles(whole), whole.before) == (["d", "c", "b", "a"], 0)


async def test_those_of_the_same_millisecond_stay_together(host: Host, clock: FakeClock) -> None:
    """Who asks for what was before it would miss the others."""
    await made(host, clock, "old")
    clock.advance(1)
    for title in ("a", "b", "c"):
        await host.start(by="test", title=title, cwd="/")
    first = Board(host).page(View(host, OWNER), 1)
    assert sorted(titles(first)) == ["a", "b", "c"]
    assert titles(Board(host).page(View(host, OWNER), 1, first.before)) == ["old"]


async def test_what_runs_is_on_the_first_page_however_old(host: Host, clock: FakeClock) -> None:
    clock.advance(1)
    busy = await host.start(by="test", agent="busy", title="busy", cwd="/")
    await busy.send(Message("go"), by="test")
    await busy.wait_until(lambda state: bool(state.active and state.active.parts))
    await made(host, clock, "a", "b")
    board, view = Board(host), View(host, OWNER)
    assert titles(board.page(view, 1)) == ["b", "busy"]
    assert [each.title for each in board.page(view, 1).left] == ["a"]
    assert titles(board.page(view, 1, words=["b"])) == ["b"], "a search shows what it has found, in its order"
    (row,) = [row for row in board.page(view, 9).rows if row.session.title == "busy"]
    assert (row.activity, row.queued, row.after) == ("Writing", False, "")
    await busy.cancel(by="test")


async def test_a_search_and_the_archive(host: Host, clock: FakeClock) -> None:
    await made(host, clock, "Fix the login", "Fix the logout", "Other")
    session = next(each for each in host.catalogue.live() if each.summary.title == "Other")
    await session.archive(True, by="test")
    board, view = Board(host), View(host, OWNER)
    assert titles(board.page(view, 9)) == ["Fix the logout", "Fix the login"]
    assert titles(board.page(view, 9, words=["fix", "login"])) == ["Fix the login"]
    assert titles(board.page(view, 9, archived=True)) == ["Other"]


async def test_a_reader_hears_what_has_changed_since(host: Host, clock: FakeClock) -> None:
    board, view = Board(host), View(host, OWNER)
    await made(host, clock, "a", "b")
    version = board.version
    await board.wait(version - 1)
    assert board.since(version, view).rows == []
    session = next(each for each in host.catalogue.live() if each.summary.title == "a")
    await session.rename("A", by="test")
    changed = board.since(version, view)
    assert ([row.session.title for row in changed.rows], changed.removed) == (["A"], [])
    await host.delete(session.id, by="test")
    gone = board.since(changed.version, view)
    assert (gone.rows, gone.removed) == ([], [session.id])


async def test_what_one_may_not_see_counts_as_removed(host: Host, clock: FakeClock) -> None:
    board = Board(host)
    session = await host.start(by="person:ada", title="secret", cwd="/", owner="ada")
    changed = board.since(0, View(host, STRANGER))
    assert (changed.rows, changed.removed) == ([], [session.id])
    assert board.page(View(host, STRANGER), 9).rows == []


async def asking(host: Host, clock: FakeClock, title: str) -> Session:
    clock.advance(1)
    session = await host.start(by="test", agent="asks", title=title, cwd="/", owner="ada")
    await session.send(Message("go"), by="test")
    await session.wait_until(lambda state: state.status == "waiting")
    return session


async def test_the_inbox_has_what_waits_oldest_first(host: Host, clock: FakeClock) -> None:
    board = Board(host)
    first, second = await asking(host, clock, "first"), await asking(host, clock, "second")
    found = board.inbox(View(host, OWNER))
    assert [(each.title, each.session, each.text) for each in found] == [
        ("first", first.id, "Wants to run make"),
        ("second", second.id, "Wants to run make"),
    ]
    assert found[0].since < found[1].since
    assert found[0].approval is not None
    assert found[0].call is not None
    assert found[0].question is None
    assert board.inbox(View(host, STRANGER)) == []
    (waiting,) = waiting_of(first.state)
    await first.approvals.answer(waiting.id, allow=True, by="test")
    await first.wait_until(lambda state: state.status == "idle")
    assert [each.title for each in board.inbox(View(host, OWNER))] == ["second"]
