"""What a session's own channel says of each event: of the whole from its default chat, of its chats from each."""

from typing import Any

import pytest

from portico.doors.ahp.view import catalogue, names
from portico.doors.ahp.view.catalogue import ChatLine
from portico.kernel import events as e
from portico.kernel.customization import KEY, PLUGIN
from portico.kernel.decide.approval import OPTIONS
from portico.kernel.events import Event, Json, Message, Origin, Record
from portico.kernel.state import CHANGES, Approval, CallPart, QuestionPart, SessionState, TextPart, TurnState

FILE = "file:///w"


def state(*parts: Any, **fields: Any) -> SessionState:
    turns = [TurnState("t1", Message("hi"), "token:me", 1, 1, list(parts))] if parts else []
    return SessionState(
        "session-1", **{"agent": "loop", "title": "Title", "cwd": "/w", "turns": turns, "begun": 1, **fields}
    )


def no_line(ident: str) -> Json | None:
    return None


def line(ident: str) -> Json | None:
    return {"resource": f"c:/{ident}", "status": 1}


def said(event: Event, of: SessionState, lines: ChatLine = no_line, pos: int = 9) -> list[tuple[str, Json]]:
    record = Record(pos, "session/session-1", pos, 2_000, b"", event)
    return [(each.name, each.fields) for each in catalogue.catalogue(record, of, lines)]


ROOT, CHILD = state(), state(parent="session-0")
WHOLE: dict[str, tuple[Event, str, Json]] = {
    "renamed": (e.SessionRenamed(title="New", by="me"), "titleChanged", {"title": "New"}),
    "read": (e.SessionRead(read=True, by="me"), "isReadChanged", {"isRead": True}),
    "archived": (e.SessionArchived(archived=True, by="me"), "isArchivedChanged", {"isArchived": True}),
    "a client leaves": (e.ClientLeft(client="c1", by="me"), "activeClientRemoved", {"clientId": "c1"}),
    "a client joins": (
        e.ClientJoined(client="c1", name="Editor"),
        "activeClientSet",
        {"activeClient": {"clientId": "c1", "tools": [], "displayName": "Editor"}},
    ),
    "a folder": (e.FolderAdded(folder="/x", by="me"), "workingDirectorySet", {"directory": "file:///x"}),
    "a folder goes": (e.FolderRemoved(folder="/x", by="me"), "workingDirectoryRemoved", {"directory": "file:///x"}),
    "settings": (e.SessionConfigured(values={"a": 1}, by="me"), "configChanged", {"config": {"a": 1}}),
}


@pytest.mark.parametrize(("event", "name", "fields"), WHOLE.values(), ids=WHOLE)
def test_what_concerns_the_session_comes_from_its_default_chat(event: Event, name: str, fields: Json) -> None:
    assert said(event, ROOT)[0] == (name, fields)
    assert name not in [each for each, _ in said(event, CHILD)]


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (e.SessionRead(read=True, by="me", only="chat"), []),
        (e.SessionArchived(archived=True, by="me", only="chat"), []),
        (e.SessionRead(read=True, by="me", only="session"), ["isReadChanged"]),
        (e.SessionArchived(archived=True, by="me", only="session"), ["isArchivedChanged"]),
    ],
    ids=["a chat was read", "a chat was archived", "only the session was read", "only the session was archived"],
)
def test_flags_of_a_chat_are_not_the_sessions(event: Event, told: list[str]) -> None:
    names_of = [name for name, _ in said(event, ROOT)]
    assert [name for name in names_of if name in ("isReadChanged", "isArchivedChanged")] == told
    assert ("chatUpdated" in names_of) is (getattr(event, "only", None) != "session")


def test_a_chats_new_title_is_in_its_line() -> None:
    event = e.SessionRenamed(title="New", by="me")
    updated = ("chatUpdated", {"chat": names.chat_uri(CHILD), "changes": {"title": "Title"}})
    assert said(event, CHILD) == [updated]
    assert said(event, ROOT)[1][0] == "chatUpdated"


def test_a_new_session_is_ready_when_its_first_event_is_told() -> None:
    event = e.SessionRenamed(title="New", by="me")
    assert said(event, ROOT, pos=1)[-1] == ("ready", {})
    assert "ready" not in [name for name, _ in said(event, ROOT, pos=2)]
    assert "ready" not in [name for name, _ in said(event, CHILD, pos=1)]


@pytest.mark.parametrize(
    ("of", "told"),
    [
        (line, [("chatAdded", {"summary": {"resource": "c:/session-2", "status": 1}})]),
        (no_line, []),
    ],
    ids=["there", "gone again"],
)
def test_a_new_chat(of: ChatLine, told: list[tuple[str, Json]]) -> None:
    assert said(e.ChildStarted(session="session-2", kind="fork"), ROOT, of) == told


def test_a_new_chat_with_flags_is_told_without_them_before_1_0() -> None:
    def read(ident: str) -> Json:
        return {"resource": f"c:/{ident}", "status": 1 | 32}

    record = Record(9, "session/session-1", 9, 0, b"", e.ChildStarted(session="session-2", kind="fork"))
    added, plain = catalogue.catalogue(record, ROOT, read)
    assert (added.fields["summary"]["status"], added.before) == (33, None)
    assert (plain.fields, plain.before) == ({"chat": "c:/session-2", "changes": {"status": 1}}, "1.0.0")


@pytest.mark.parametrize(
    ("ident", "told"),
    [
        ("session-9", ["chatAdded", "chatAdded"]),
        ("session-1", ["chatRemoved", "chatRemoved"]),
        ("session-2", []),
    ],
    ids=["where it comes to", "where it was", "the chat itself"],
)
def test_a_chat_moves_with_all_below_it(ident: str, told: list[str]) -> None:
    event = e.ChatMoved(session="session-2", source="session-1", to="session-9", below=["session-3"], by="me")
    of = SessionState(ident, agent="loop", begun=1)
    assert [name for name, _ in said(event, of, line)] == told


def test_chats_in_a_new_order() -> None:
    of = state(children=["session-2", "session-3"])
    ((name, fields),) = said(e.ChatsOrdered(order=["session-3", "session-1"], by="me"), of, line)
    assert name == "chatsReordered"
    assert fields["chats"] == ["c:/session-3", "c:/session-1", "c:/session-2"], "the others stand behind them"


def asking(**fields: Any) -> CallPart:
    return CallPart("c1", "look", ready=True, approvals=[Approval("a1", "other", "", "", 0, OPTIONS, **fields)])


ASKED = e.ApprovalAsked(
    turn="t1", approval="a1", call="c1", tool="look", title="", kind="other", input="", expires=0, options=[]
)
NEEDED: dict[str, tuple[Event, SessionState, str, Any]] = {
    "asked": (ASKED, state(asking()), "inputNeededSet", "toolConfirmation"),
    "answered": (
        e.ApprovalAnswered(turn="t1", approval="a1", allowed=True, by="me"),
        state(asking(answered=True, allowed=True)),
        "inputNeededRemoved",
        "session-1.c1",
    ),
    "its call is over": (
        e.ToolEnded(turn="t1", call="c1", ok=True),
        state(CallPart("c1", "look", done=True)),
        "inputNeededRemoved",
        "session-1.c1",
    ),
    "a question": (
        e.QuestionAsked(turn="t1", question="q1", text="Which?"),
        state(QuestionPart("q1", "Which?")),
        "inputNeededSet",
        "chatInput",
    ),
    "a question answered": (
        e.QuestionAnswered(turn="t1", question="q1", response="accept", by="me"),
        state(QuestionPart("q1", "Which?", response="accept")),
        "inputNeededRemoved",
        "q1",
    ),
    "asked in a turn that is gone": (ASKED, state(), "inputNeededRemoved", "session-1.c1"),
}


@pytest.mark.parametrize(("event", "of", "name", "about"), NEEDED.values(), ids=NEEDED)
def test_what_waits_is_told_to_who_watches_the_session(event: Event, of: SessionState, name: str, about: str) -> None:
    (fields,) = [fields for each, fields in said(event, of) if each == name]
    assert (fields.get("id") or fields["request"]["kind"]) == about


@pytest.mark.parametrize(
    ("event", "of"),
    [
        (e.PartDelta(turn="t1", part="p1", text="x"), state(TextPart("p1", "text", "x"))),
        (e.PartStarted(turn="t1", part="p1", kind="text"), state(TextPart("p1", "text"))),
        (e.ToolOutput(turn="t1", part="c1", text="x"), state(CallPart("c1", "look"))),
        (e.UsageReported(turn="t1", input=1), state(TextPart("p1", "text"))),
    ],
    ids=["a piece of text", "a part begins", "output", "usage"],
)
def test_what_is_only_the_chats_own(event: Event, of: SessionState) -> None:
    assert said(event, of) == []


@pytest.mark.parametrize(
    "event", [e.TurnStarted(turn="t1", message=Message("hi"), by="me"), e.TurnEnded(turn="t1", outcome="completed")]
)
def test_a_turn_moves_the_line_of_its_chat(event: Event) -> None:
    (fields,) = [
        fields
        for name, fields in said(event, state(TextPart("p1", "text")))
        if name == "chatUpdated" and "modifiedAt" in fields["changes"]
    ]
    assert fields["changes"]["modifiedAt"] == "1970-01-01T00:00:00.000Z"


def test_news_make_a_session_unread() -> None:
    told = said(e.TurnStarted(turn="t1", message=Message("hi"), by="me"), state(TextPart("p1", "text"), read=False))
    assert ("isReadChanged", {"isRead": False}) in told


REPLACED = e.FolderRemoved(folder="/w", replacement="/n", by="me")


@pytest.mark.parametrize(
    ("of", "older"),
    [
        (state(cwd="/n", folders=["/x"]), [("Removed", "/w"), ("Removed", "/x"), ("Set", "/n"), ("Set", "/x")]),
        (state(cwd="/other", folders=["/n", "/x"]), [("Removed", "/w"), ("Set", "/n")]),
    ],
    ids=["the first one", "one of the others"],
)
def test_a_replaced_folder_for_versions_that_know_no_replacing(of: SessionState, older: list[tuple[str, str]]) -> None:
    record = Record(9, "session/session-1", 9, 0, b"", REPLACED)
    first, *others = catalogue.catalogue(record, of, no_line)
    assert (first.name, first.fields) == ("workingDirectoryReplaced", {"directory": FILE, "replacement": "file:///n"})
    assert all(each.before == "0.8.0" for each in others)
    told = [
        (each.name.removeprefix("workingDirectory"), each.fields["directory"].removeprefix("file://"))
        for each in others
    ]
    assert told == older


KEPT: dict[str, tuple[e.ClientKept, list[tuple[str, Json]]]] = {
    "a switch": (
        e.ClientKept(
            key=f"{KEY}server/x",
            value={"enabled": False, "enablement": [], "uri": "x:/1"},
            action={"type": "session/customizationToggled"},
            by="me",
        ),
        [("customizationToggled", {"id": "server/x", "enabled": False, "enablement": []})],
    ),
    "a server was asked for": (
        e.ClientKept(
            key=f"{KEY}server/x",
            value={"state": {"kind": "stopped"}},
            action={"type": "session/mcpServerStopRequested"},
            by="me",
        ),
        [
            ("mcpServerStopRequested", {"id": "server/x"}),
            ("mcpServerStateChanged", {"id": "server/x", "state": {"kind": "stopped"}}),
        ],
    ),
    "a plugin": (
        e.ClientKept(key=f"{PLUGIN}p1", value={"id": "p1", "name": "P", "texts": ["secret"]}, by="me"),
        [("customizationUpdated", {"customization": {"id": "p1", "name": "P", "enabled": True}})],
    ),
    "a plugin goes": (e.ClientKept(key=f"{PLUGIN}p1", value=None, by="me"), [("customizationRemoved", {"id": "p1"})]),
    "something else": (e.ClientKept(key="other", value={}, by="me"), []),
}


@pytest.mark.parametrize(("event", "told"), KEPT.values(), ids=KEPT)
def test_what_clients_keep_in_a_session(event: e.ClientKept, told: list[tuple[str, Json]]) -> None:
    assert said(event, ROOT) == told
    assert said(event, CHILD) == [], "only the session's own counts"


def test_counted_changes_are_in_the_line_of_their_chat() -> None:
    counts = {"additions": 1, "deletions": 2, "files": 1, "edits": [{}]}
    of = state(client_data={CHANGES: counts}, parent="session-0")
    ((name, fields),) = said(e.ClientKept(key=CHANGES, value=counts, by="host"), of)
    assert (name, fields["changes"]) == ("chatUpdated", {"changes": {"additions": 1, "deletions": 2, "files": 1}})


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            e.ClientKept(key="annotation/a1", value={}, action={"type": "annotations/set", "id": "a1"}, by="me"),
            [("set", {"id": "a1"})],
        ),
        (e.ClientKept(key="other", value={}, action={"type": "annotations/set"}, by="me"), []),
        (e.SessionRenamed(title="x", by="me"), []),
    ],
    ids=["an annotation", "something else that is kept", "another event"],
)
def test_annotations_are_told_as_their_client_said_them(event: Event, told: list[tuple[str, Json]]) -> None:
    record = Record(9, "session/session-1", 9, 0, b"", event)
    assert [(each.name, each.fields) for each in catalogue.annotations(record)] == told


def test_a_sub_agents_chat_is_told_under_the_name_that_clients_derive() -> None:
    of = state(parent="session-0", uri="c:/sub", origin=Origin("agent", "session-0", "t1", call="c9"))
    ((_, fields),) = said(e.SessionRenamed(title="New", by="me"), of)
    assert fields["chat"] == "c:/sub"
