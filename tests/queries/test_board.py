"""The board: who waits for a place and after whom, since when things wait, and who sees what of it."""

import asyncio
from pathlib import Path

import pytest

from portico import limits
from portico.features.board.board import Board, BoardRow
from portico.features.people.view import View
from portico.kernel import events as e
from portico.kernel.agent import QUEUED, STARTED, Opening
from portico.kernel.commands import Caller
from portico.kernel.events import Json, Message
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import CHANGES
from portico.kernel.turn import Turn
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent, PlayConversation
from tests.host.plays import idle
from tests.host.test_recovery import crash

OWNER = Caller("owner", "owner", frozenset({"admin", "read", "drive"}))


class Places(PlayAgent):
    """One place: whoever comes later is told that it waits, and starts when it is let in."""

    def __init__(self) -> None:
        super().__init__(self.play)
        self.doors: dict[str, asyncio.Event] = {}
        self.ends: dict[str, asyncio.Event] = {}

    async def open(self, wanted: Opening) -> PlayConversation:
        if self.ends:
            door = self.doors[wanted.session] = asyncio.Event()
            wanted.tell(f"{QUEUED}: 1 of 1 processes are busy.")
            await door.wait()
            wanted.tell(STARTED)
        return await super().open(wanted)

    async def play(self, message: Message, turn: Turn) -> None:
        end = self.ends[turn.session.id] = asyncio.Event()
        turn.text("Here.")
        await end.wait()
        del self.ends[turn.session.id]


@pytest.fixture
def agent() -> Places:
    return Places()


async def begin(host: Host, title: str) -> Session:
    session = await host.start(by="test", title=title)
    await session.send(Message("go"), by="test")
    await session.wait_until(lambda state: bool(state.active and state.active.parts))
    return session


def rows(board: Board, host: Host, caller: Caller = OWNER) -> dict[str, BoardRow]:
    return {row.session.title: row for row in board.page(View(host, caller), 50).rows}


async def test_a_queue_names_whom_each_starts_after(open_host: HostOpener, agent: Places) -> None:
    host = await open_host(agent)
    board = Board(host)
    first, second, third = [await begin(host, title) for title in ("first", "second", "third")]
    seen = rows(board, host)
    assert [(seen[name].queued, seen[name].after) for name in ("first", "second", "third")] == [
        (False, ""),
        (True, first.id),
        (True, second.id),
    ]
    assert [seen[name].activity for name in ("first", "second")] == ["Writing", QUEUED]
    version = board.version
    agent.doors[second.id].set()
    await second.wait_until(lambda state: len(state.active.parts) > 2 if state.active else False)
    changed = board.since(version, View(host, OWNER))
    told = {row.session.title: (row.queued, row.after) for row in changed.rows}
    assert told == {"second": (False, ""), "third": (True, "")}  # two work now: nobody knows which is done first
    await third.cancel(by="test")
    assert not rows(board, host)["third"].queued
    for each in agent.ends.values():
        each.set()


@pytest.mark.parametrize(("git", "counts"), [(False, {}), (True, {}), (False, {"files": 2}), (True, {"files": 2})])
async def test_a_row_says_where_nobody_counts_files(host: Host, tmp_path: Path, git: bool, counts: Json) -> None:
    """The list said that no files were changed, of a folder in which nobody looks."""
    folder = tmp_path / "project"
    folder.mkdir()
    if git:
        (folder / ".git").mkdir()
    session = await host.start(by="test", cwd=str(folder))
    if counts:
        await session.keep(CHANGES, counts, by="host")
    assert rows(Board(host), host)[""].uncounted is (not git and not counts)


INTERRUPTED = e.TurnEnded(turn="t1", outcome="interrupted", error=e.ErrorInfo("interrupted", "The host ended."))
CANCELLED = e.TurnEnded(turn="t1", outcome="cancelled", by="token:ada")


@pytest.mark.parametrize(
    ("end", "fields", "later", "listed"),
    [
        (None, {}, [], True),
        (INTERRUPTED, {}, [], True),
        (INTERRUPTED, {}, [e.SessionArchived(archived=True, by="ada")], False),
        (INTERRUPTED, {"by": "task:task-1"}, [], False),
        (INTERRUPTED, {"origin": e.Origin("agent", "session-9", "t1", call="c"), "parent": "session-9"}, [], False),
        (INTERRUPTED, {"owner": "ben"}, [], True),
        (CANCELLED, {}, [], False),
        (e.TurnEnded(turn="t1", outcome="failed"), {}, [], False),
        (e.TurnEnded(turn="t1", outcome="completed"), {}, [], False),
    ],
    ids=["killed", "ended", "archived", "of a job", "of a helper", "of a person", "stopped", "failed", "done"],
)
async def test_the_inbox_lists_what_the_end_of_the_host_interrupted(
    open_host: HostOpener, end: e.Event | None, fields: Json, later: list[e.Event], listed: bool
) -> None:
    """After a kill the inbox was empty: nothing reported that work had stopped."""
    given = {"session": "session-1", "agent": "play", "model": "small", "cwd": "/w", "title": "Mine", "by": "ada"}
    turn = e.TurnStarted(turn="t1", message=Message("go"), by="ada")
    await crash(open_host.path, e.SessionStarted(**{**given, **fields}), turn, *([end] if end else []), *later)
    host = await open_host(PlayAgent(idle))
    found = [each.session for each in Board(host).interrupted(View(host, OWNER))]
    assert found == (["session-1"] if listed else [])
    stranger = Board(host).interrupted(View(host, Caller("t", "t", frozenset({"read"}), person="eve")))
    assert [each.session for each in stranger] == ([] if "owner" in fields else found)
    assert (await host.get("session-1")).summary.stopped == ("token:ada" if end is CANCELLED else "")


async def test_interrupted_work_leaves_the_inbox_when_it_is_resumed_or_a_week_old(
    open_host: HostOpener, clock: FakeClock
) -> None:
    turn = e.TurnStarted(turn="t1", message=Message("go"), by="ada")
    for number in (1, 2):
        started = e.SessionStarted(session=f"session-{number}", agent="play", model="small", cwd="/", by="ada")
        await crash(open_host.path, started, turn, channel=f"session/session-{number}")
    host = await open_host(PlayAgent(idle), clock=clock)
    board, view = Board(host), View(host, OWNER)
    assert [each.session for each in board.interrupted(view)] == ["session-1", "session-2"]
    session = await host.get("session-1")
    await session.resume(by="ada")
    await session.wait_until(lambda state: state.status == "idle")
    (left,) = board.interrupted(view)
    assert left.session == "session-2"
    clock.advance((left.since - host.now()) / 1000 + limits.INTERRUPTED_DAYS * 86_400 + 1)
    assert board.interrupted(view) == []
