"""Lines of the catalogue and whole states: what a list says of a session, its chats and what waits in them."""

from typing import Any

import pytest

from portico.doors.ahp.view import snapshots
from portico.doors.ahp.wire.status import ERROR, IDLE, IN_PROGRESS, INPUT_NEEDED, IS_ARCHIVED, IS_READ
from portico.doors.ahp.wire.versions import SEED, Dialect
from portico.kernel.agent import AgentInfo, Capabilities, Model, Resource
from portico.kernel.decide.approval import OPTIONS
from portico.kernel.events import Json, Message, Origin, Outcome, ToolSpec
from portico.kernel.state import (
    Approval,
    CallPart,
    ClientState,
    QuestionPart,
    SessionState,
    Status,
    Summary,
    TextPart,
    TurnState,
)

V1, V07, V10 = (Dialect(each, lambda: 0) for each in (SEED, "0.7.0", "1.0.0"))


def line(ident: str = "session-1", status: Status = "idle", **fields: Any) -> Summary:
    return Summary(ident, "loop", "", "/w", "Title", status, 1_000, 2_000, 9, **fields)


def state(*parts: Any, **fields: Any) -> SessionState:
    turns = [TurnState("t1", Message("hi"), "token:me", 1, 1, list(parts))] if parts else []
    return SessionState("session-1", agent="loop", cwd="/w", title="Title", turns=turns, **fields)


def ended(outcome: Outcome) -> SessionState:
    turn = TurnState("t1", Message("hi"), "token:me", 1, 1, outcome=outcome)
    return SessionState("session-1", agent="loop", turns=[turn])


def waiting(**fields: Any) -> CallPart:
    asked = Approval("a1", "other", "May I?", "{}", 0, OPTIONS)
    return CallPart("c1", "look", **{"ready": True, "approvals": [asked], **fields})


TEXT = TextPart("p1", "text", "hi")


@pytest.mark.parametrize(
    ("of", "bits"),
    [
        (state(), IDLE),
        (state(TEXT), IN_PROGRESS),
        (state(waiting()), INPUT_NEEDED),
        (state(waiting(done=True)), IN_PROGRESS),
        (state(QuestionPart("q1", "Which?")), INPUT_NEEDED),
        (state(QuestionPart("q1", "Which?", response="accept")), IN_PROGRESS),
        (state(TEXT, waiting()), INPUT_NEEDED),
        (ended("failed"), ERROR),
        (ended("interrupted"), ERROR),
        (ended("cancelled"), IDLE),
        (ended("completed"), IDLE),
    ],
    ids=[
        "idle",
        "writing",
        "asking",
        "its call is done",
        "a question",
        "answered",
        "text and a call",
        "failed",
        "cut off",
        "cancelled",
        "completed",
    ],
)
def test_what_a_session_is_doing(of: SessionState, bits: int) -> None:
    assert snapshots.activity(of) == bits


@pytest.mark.parametrize(("read", "archived"), [(False, False), (True, False), (False, True), (True, True)])
def test_flags_stand_beside_the_activity(read: bool, archived: bool) -> None:
    flags = (IS_READ if read else 0) | (IS_ARCHIVED if archived else 0)
    assert snapshots.status(state(read=read, archived=archived)) == IDLE | flags
    assert snapshots.summary(line(read=read, archived=archived), V10)["status"] == IDLE | flags


@pytest.mark.parametrize(
    ("own", "below", "shown"),
    [
        ("idle", [], IDLE),
        ("running", ["idle"], IN_PROGRESS),
        ("idle", ["running"], IDLE),
        ("idle", ["failed"], ERROR),
        ("running", ["failed"], ERROR),
        ("running", ["waiting"], INPUT_NEEDED),
        ("failed", ["waiting"], INPUT_NEEDED),
        ("idle", ["failed", "waiting", "idle"], INPUT_NEEDED),
    ],
    ids=str,
)
def test_a_session_is_as_its_chats_are(own: Status, below: list[Status], shown: int) -> None:
    """Who waits comes before what failed; that one of its chats runs is not the session's."""
    chats = [line(f"session-{number}", each, parent="session-1") for number, each in enumerate(below, 2)]
    assert snapshots.summary(line(status=own, read=False), V10, chats)["status"] == shown
    alone = snapshots.summary(line(status=own, read=False), V1, chats)["status"]
    assert alone == snapshots.summary(line(status=own, read=False), V1)["status"], "version 1 lists them by themselves"


@pytest.mark.parametrize(
    ("fields", "v1", "modern"),
    [
        ({}, 2_000, "1970-01-01T00:00:02.000Z"),
        ({"last_turn_at": 1_500}, 2_000, "1970-01-01T00:00:01.500Z"),
    ],
    ids=["of an older Portico", "by its last turn"],
)
def test_how_new_a_session_is(fields: Json, v1: int, modern: str) -> None:
    assert snapshots.summary(line(**fields), V1)["modifiedAt"] == v1
    assert snapshots.summary(line(**fields), V10)["modifiedAt"] == modern


def test_a_session_is_as_new_as_its_newest_chat() -> None:
    chat = line("session-2", parent="session-1", last_turn_at=9_000)
    assert snapshots.summary(line(last_turn_at=1_500), V10, [chat])["modifiedAt"] == "1970-01-01T00:00:09.000Z"


@pytest.mark.parametrize(
    ("dialect", "has", "lacks"),
    [
        (V1, [], ["chats", "defaultChat", "workingDirectories"]),
        (V07, ["workingDirectories"], ["chats", "defaultChat", "model"]),
        (V10, ["workingDirectories", "chats", "defaultChat"], ["model"]),
    ],
    ids=lambda each: each.version if isinstance(each, Dialect) else "",
)
def test_what_a_line_has_in_each_dialect(dialect: Dialect, has: list[str], lacks: list[str]) -> None:
    shown = snapshots.summary(line(folders=["/x"]), dialect, [line("session-2", parent="session-1")], "Writing")
    assert all(name in shown for name in has)
    assert not any(name in shown for name in lacks)
    assert (shown["workingDirectory"], shown["activity"]) == ("file:///w", "Writing")
    if "workingDirectories" in has:
        assert shown["workingDirectories"] == ["file:///w", "file:///x"]


def test_version_1_names_the_model() -> None:
    of = Summary("session-1", "loop", "m", "/w", "T", "idle", 0, 0, 0, model_config={"effort": "low"})
    assert snapshots.summary(of, V1)["model"] == {"id": "m", "config": {"effort": "low"}}


CHILD: dict[str, Any] = {"parent": "session-1"}
ORIGINS: dict[str, tuple[Summary, Json]] = {
    "begun by a person": (line(), {"kind": "user"}),
    "a chat of its own": (line("session-2", **CHILD), {"kind": "user"}),
    "a fork": (
        line("session-2", **CHILD, origin=Origin("fork", "session-1", "t1")),
        {"kind": "fork", "chat": "c:/1", "turnId": "t1"},
    ),
    "a side chat": (
        line("session-2", **CHILD, origin=Origin("side", "session-1", "t1", selection={"text": "x"})),
        {"kind": "sideChat", "chat": "c:/1", "turnId": "t1", "selection": {"text": "x"}},
    ),
    "a sub-agent": (
        line("session-2", **CHILD, origin=Origin("agent", "session-1", "t1", call="c9")),
        {"kind": "tool", "chat": "c:/1", "toolCallId": "c9"},
    ),
    "a session that was forked": (line("session-2", origin=Origin("fork", "session-1", "t1")), {"kind": "user"}),
}


@pytest.mark.parametrize(("of", "shown"), ORIGINS.values(), ids=ORIGINS)
def test_where_a_chat_comes_from(of: Summary, shown: Json) -> None:
    assert snapshots.origin(of, "c:/1") == shown


@pytest.mark.parametrize(
    ("of", "movable", "interactivity"),
    [
        (line(), False, None),
        (line("session-2", **CHILD), True, None),
        (line("session-2", **CHILD, origin=Origin("fork", "session-1", "t1")), True, None),
        (line("session-2", **CHILD, origin=Origin("agent", "session-1", "t1", call="c")), False, "read-only"),
    ],
    ids=["the default chat", "a chat", "a fork", "a sub-agent"],
)
def test_what_can_be_done_with_a_chat(of: Summary, movable: bool, interactivity: str | None) -> None:
    shown = snapshots.chat_line(of, "c:/1", V10)
    assert (shown.get("movable", False), shown.get("interactivity")) == (movable, interactivity)
    assert "movable" not in snapshots.chat_line(of, "c:/1", V07)


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (waiting(), "toolConfirmation"),
        (waiting(approvals=[], owner="editor"), "toolClientExecution"),
        (waiting(approvals=[], owner="editor", ready=False), None),
        (waiting(approvals=[]), None),
        (waiting(done=True), None),
        (QuestionPart("q1", "Which?"), "chatInput"),
        (QuestionPart("q1", "Which?", response="decline"), None),
        (TEXT, None),
    ],
    ids=["asks", "a client runs it", "not ready", "runs", "done", "a question", "an answered one", "text"],
)
def test_what_waits_for_somebody(part: Any, kind: str | None) -> None:
    found = snapshots.input_needed(state(part))
    assert [each["kind"] for each in found] == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("of", "shown"),
    [
        (ClientState("c1"), {"clientId": "c1", "tools": []}),
        (ClientState("c1", "Editor"), {"clientId": "c1", "tools": [], "displayName": "Editor"}),
        (
            ClientState("c1", tools=[ToolSpec("t", "Does.", {"type": "object"})]),
            {"clientId": "c1", "tools": [{"name": "t", "description": "Does.", "inputSchema": {"type": "object"}}]},
        ),
        (ClientState("c1", "Editor", meta={"ahp": {"clientId": "c1", "x": 1}}), {"clientId": "c1", "x": 1}),
    ],
    ids=["known by its id", "with a name", "with tools", "as it described itself"],
)
def test_a_client_is_shown_as_it_described_itself(of: ClientState, shown: Json) -> None:
    assert snapshots.client(of) == shown


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (AgentInfo("a", "A", "Helps."), "Helps."),
        (AgentInfo("a", "A", "Helps.", missing="Sign in."), "Helps. Sign in."),
        (AgentInfo("a", "A", "Helps.", label="demo"), "Helps. (demo)"),
        (AgentInfo("a", "A"), ""),
    ],
)
def test_an_agent_says_what_is_missing(of: AgentInfo, words: str) -> None:
    assert snapshots.agent(of)["description"] == words


def test_an_agent_with_all_that_it_offers() -> None:
    models = [Model("m", "M", context=1000, vision=True, multiplier=2.0)]
    resources = [Resource("https://x", "X", servers=["https://y"], scopes=["s"])]
    shown = snapshots.agent(
        AgentInfo("a", "A", models=models, resources=resources, capabilities=Capabilities(folders=True))
    )
    (model,) = shown["models"]
    assert (model["id"], model["provider"], model["supportsVision"], model["maxContextWindow"]) == (
        "m",
        "a",
        True,
        1000,
    )
    assert model["_meta"] == {"multiplier": 2.0}
    assert "multipleWorkingDirectories" in shown["capabilities"]
    assert shown["protectedResources"] == [
        {
            "resource": "https://x",
            "required": True,
            "resource_name": "X",
            "authorization_servers": ["https://y"],
            "scopes_supported": ["s"],
        }
    ]
    plain = snapshots.agent(AgentInfo("a", "A"))
    assert "protectedResources" not in plain
    assert "multipleWorkingDirectories" not in plain["capabilities"]


@pytest.mark.parametrize(
    ("last", "shown", "cursor"),
    [
        (None, ["t1", "t2", "t3"], None),
        (5, ["t1", "t2", "t3"], None),
        (3, ["t1", "t2", "t3"], None),
        (2, ["t2", "t3"], "t2"),
        (1, ["t3"], "t3"),
    ],
)
def test_a_long_chat_comes_in_pieces(last: int | None, shown: list[str], cursor: str | None) -> None:
    turns = [TurnState(f"t{number}", Message("hi"), "", 1, number, outcome="completed") for number in (1, 2, 3)]
    found = snapshots.chat(SessionState("session-1", agent="loop", turns=turns), V10, last=last)
    assert [each["id"] for each in found["turns"]] == shown
    assert found.get("turnsNextCursor") == cursor
