"""Where a conversation may go, and what is written down of it: the decision by itself."""

from typing import Any

import pytest
from msgspec.structs import replace

from portico.features.chats.move import Addressed, Family, Moving, move, ordered
from portico.kernel import events as e
from portico.kernel.errors import BadRequest, NotFound, PorticoError, TurnInProgress
from portico.kernel.events import Origin
from portico.kernel.ownership import Access
from portico.kernel.state import Summary


def session(ident: str, **more: Any) -> Summary:
    fields = {"agent": "a", "model": "m", "cwd": "/w", "title": "", "status": "idle", "created": 0, "modified": 0}
    return Summary(**{"id": ident, "pos": 1, **fields, **more})


CHAT = session("c", parent="s")
MOVING = Moving(CHAT, [session("d", parent="c")], ["/w"])
SOURCE = Family(session("s", folders=["/x"]), ["s", "c", "d", "e"], Access("ada", {"bob": ["read"], "*": ["drive"]}))
TARGET = Family(session("t", folders=["/x"]), ["t", "u"], Access("ada"))


def written(events: list[Addressed]) -> list[tuple[str, str]]:
    return [(channel, e.tag(event)) for channel, event in events]


def order_of(events: list[Addressed]) -> list[str]:
    [found] = [event.order for _, event in events if isinstance(event, e.ChatsOrdered)]
    return found


@pytest.mark.parametrize(
    ("after", "order"),
    [(None, ["c", "d", "t", "u"]), ("t", ["t", "c", "d", "u"]), ("u", ["t", "u", "c", "d"])],
)
def test_into_another_session(after: str | None, order: list[str]) -> None:
    """Its own channel, that of the session above and that of the new one hear the same fact; all below comes along."""
    events = move(MOVING, SOURCE, TARGET, after, "ada")
    moved = e.ChatMoved(session="c", source="s", to="t", below=["d"], by="ada")
    assert events[:3] == [("session/c", moved), ("session/s", moved), ("session/t", moved)]
    assert order_of(events) == order
    assert events[3][0] == "session/t"


@pytest.mark.parametrize(
    ("after", "order"),
    [(None, ["c", "s", "d", "e"]), ("d", ["s", "d", "c", "e"]), ("e", ["s", "d", "e", "c"])],
)
def test_within_its_session_only_this_one_moves(after: str | None, order: list[str]) -> None:
    busy = replace(MOVING, chat=replace(CHAT, status="running"))
    for moving in (MOVING, busy):
        events = move(moving, SOURCE, SOURCE, after, "ada")
        assert written(events) == [("session/s", "chats.ordered")]
        assert order_of(events) == order


def test_where_it_stands_already_nothing_is_written() -> None:
    assert move(MOVING, SOURCE, SOURCE, "s", "ada") == []


def test_a_session_of_its_own_keeps_folders_owner_and_shares() -> None:
    events = move(MOVING, SOURCE, None, None, "ada")
    moved = e.ChatMoved(session="c", source="s", below=["d"], owner="ada", by="ada")
    assert events == [
        ("session/c", moved),
        ("session/c", e.FolderAdded(folder="/x", by="ada")),
        ("session/c", e.SessionShared(person="bob", rights=["read"], by="ada")),
        ("session/c", e.SessionShared(person="*", rights=["drive"], by="ada")),
        ("session/s", moved),
    ]


def test_one_in_a_folder_of_its_own_gets_no_other() -> None:
    moving = replace(MOVING, chat=replace(CHAT, cwd="/tree"))
    assert "folder.added" not in [kind for _, kind in written(move(moving, SOURCE, None, None, "ada"))]


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(
    ("moving", "error"),
    [
        (replace(MOVING, chat=session("c")), BadRequest),
        (replace(MOVING, chat=replace(CHAT, origin=Origin("agent", "s", "t1"))), BadRequest),
        (replace(MOVING, chat=replace(CHAT, status="running")), TurnInProgress),
        (replace(MOVING, chat=replace(CHAT, status="waiting")), TurnInProgress),
        (replace(MOVING, below=[session("d", parent="c", status="waiting")]), TurnInProgress),
    ],
)
def test_what_stays_where_it_is(moving: Moving, error: type[PorticoError], alone: bool) -> None:
    with pytest.raises(error):
        move(moving, SOURCE, None if alone else TARGET, None, "ada")


@pytest.mark.parametrize(
    ("target", "after", "error", "words"),
    [
        (replace(TARGET, root=session("t", parent="r")), None, NotFound, "conversation of one"),
        (replace(TARGET, root=replace(TARGET.root, closed=True)), None, BadRequest, "closed"),
        (replace(TARGET, root=replace(TARGET.root, draft=True)), None, BadRequest, "Nothing was said"),
        (replace(TARGET, root=replace(TARGET.root, agent="b")), None, BadRequest, "one with 'b'"),
        (replace(TARGET, root=replace(TARGET.root, cwd="/v")), None, BadRequest, "works in /w; give that to 't'"),
        (replace(TARGET, access=Access("eve")), None, BadRequest, "somebody else"),
        (TARGET, "s", BadRequest, "'s' is no other conversation of 't'"),
        (SOURCE, "c", BadRequest, "'c' is no other conversation of 's'"),
    ],
)
def test_where_it_cannot_go(target: Family, after: str | None, error: type[PorticoError], words: str) -> None:
    with pytest.raises(error, match=words):
        move(MOVING, SOURCE, target, after, "ada")


def test_lists_show_first_what_somebody_has_put() -> None:
    assert ordered(["a", "b", "c", "d"], ["c", "gone", "a"], str) == ["c", "a", "b", "d"]
