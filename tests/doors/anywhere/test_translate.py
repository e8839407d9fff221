"""What a reader of `/events` gets for each event: its name, what it says, and the cursor behind it."""

from typing import Any

import msgspec
import pytest

from portico.doors.anywhere.translate import (
    FRAME_CHARS,
    Watched,
    compacted,
    drafted,
    frames,
    removed,
    resumed,
    start_of,
)
from portico.kernel import events as e
from portico.kernel.events import ErrorInfo, Event, Json, Message, Record
from portico.kernel.state import CallPart, Part, TextPart, TurnState

Frame = tuple[str, str, Json]


def watched(**fields: Any) -> Watched:
    return Watched("project-1", "t1", "s.t1", "small", **fields)


def record(event: Event, seq: int = 7) -> Record:
    return Record(seq, "session/s", 3, 0, b"", event)


def read(data: list[bytes]) -> list[Frame]:
    found = []
    for each in data:
        ident, name, text = (line.split(b": ", 1)[1] for line in each.strip().split(b"\n"))
        found.append((ident.decode(), name.decode(), msgspec.json.decode(text)))
    return found


def one(event: Event, known: Watched | None = None) -> tuple[str, Json]:
    ((ident, name, data),) = read(frames(record(event), known or watched()))
    assert ident == "7"
    assert data.pop("sessionId") == "project-1"
    return name, data


def asked(**fields: Any) -> e.ApprovalAsked:
    given = {"kind": "write", "input": "{}", "expires": 0, "options": [], **fields}
    return e.ApprovalAsked(turn="t1", approval="a1", call="c1", tool="edit", title="Edit x", **given)


TOOLS = {"tools": {"c1": "edit"}}
TOLD: dict[str, tuple[Event, dict[str, Any], str, Json]] = {
    "a turn begins": (
        e.TurnStarted(turn="t1", message=Message("hi"), by="token:me"),
        {},
        "inbound",
        {"id": "s.t1", "text": "hi", "source": "token:me"},
    ),
    "a piece of the answer": (
        e.PartDelta(turn="t1", part="p1", text="Hel"),
        {"kinds": {"p1": "text"}},
        "fragment",
        {"id": "s.t1", "fragment": "Hel", "model": "small"},
    ),
    "a piece of a part that nobody saw begin": (
        e.PartDelta(turn="t1", part="p1", text="Hel"),
        {},
        "fragment",
        {"id": "s.t1", "fragment": "Hel", "model": "small"},
    ),
    "a notice": (
        e.PartDelta(turn="t1", part="p1", text="now"),
        {"kinds": {"p1": "notice"}},
        "fragment",
        {"id": "s.t1", "fragment": "now", "model": "small", "kind": "notice"},
    ),
    "a call with a title": (
        e.ToolStarted(turn="t1", call="c1", tool="edit", title="Edit x"),
        {},
        "action",
        {"id": "s.t1", "tool": "edit", "summary": "Edit x"},
    ),
    "a call that is known by now": (
        e.ToolReady(turn="t1", call="c1", input="{}", title="Edit x"),
        TOOLS,
        "action",
        {"id": "s.t1", "tool": "edit", "summary": "Edit x"},
    ),
    "a call without any title": (
        e.ToolReady(turn="t1", call="c1", input="{}"),
        TOOLS,
        "action",
        {"id": "s.t1", "tool": "edit", "summary": "edit"},
    ),
    "a call that has ended": (
        e.ToolEnded(turn="t1", call="c1", ok=True, output="done"),
        TOOLS,
        "action",
        {"id": "s.t1", "tool": "edit", "ok": True, "detail": "done"},
    ),
    "a call of no known name": (
        e.ToolEnded(turn="t1", call="c9", ok=False),
        {},
        "action",
        {"id": "s.t1", "tool": "tool", "ok": False, "detail": ""},
    ),
    "a call with an error": (
        e.ToolEnded(turn="t1", call="c1", ok=False, output="out", error=ErrorInfo("x", "broke")),
        TOOLS,
        "action",
        {"id": "s.t1", "tool": "edit", "ok": False, "detail": "broke"},
    ),
    "a call with a detail of its own": (
        e.ToolEnded(turn="t1", call="c1", ok=True, output="out", detail="3 lines"),
        TOOLS,
        "action",
        {"id": "s.t1", "tool": "edit", "ok": True, "detail": "3 lines"},
    ),
    "a call with much output": (
        e.ToolEnded(turn="t1", call="c1", ok=True, output="x" * 401),
        TOOLS,
        "action",
        {"id": "s.t1", "tool": "edit", "ok": True, "detail": "x" * 399 + "…"},
    ),
    "an approval": (
        asked(),
        {},
        "approvalRequest",
        {"approvalId": "a1", "id": "s.t1", "action": "edit", "title": "Edit x"},
    ),
    "an approval with all that there is": (
        asked(path="/x", command="make", diff="+1", input='{"content": "new"}'),
        {},
        "approvalRequest",
        {
            "approvalId": "a1",
            "id": "s.t1",
            "action": "edit",
            "title": "Edit x",
            "path": "/x",
            "command": "make",
            "diff": "+1",
            "contentPreview": "new",
        },
    ),
    "an answer": (
        e.ApprovalAnswered(turn="t1", approval="a1", allowed=True, by="token:me"),
        {},
        "approvalDecision",
        {"approvalId": "a1", "id": "s.t1", "approved": True, "by": "token:me"},
    ),
    "a question": (
        e.QuestionAsked(turn="t1", question="q1", text="Which?"),
        {},
        "questionRequest",
        {"questionId": "q1", "id": "s.t1", "text": "Which?"},
    ),
    "a question with fields": (
        e.QuestionAsked(turn="t1", question="q1", text="Which?", fields=[{"id": "a"}], url="https://x"),
        {},
        "questionRequest",
        {"questionId": "q1", "id": "s.t1", "text": "Which?", "fields": [{"id": "a"}], "url": "https://x"},
    ),
    "its answer": (
        e.QuestionAnswered(turn="t1", question="q1", response="decline", by="token:me"),
        {},
        "questionAnswer",
        {"questionId": "q1", "id": "s.t1", "response": "decline", "by": "token:me"},
    ),
    "the end": (
        e.TurnEnded(turn="t1", outcome="completed"),
        {},
        "done",
        {"id": "s.t1", "model": "small", "outcome": "completed"},
    ),
    "a failure": (
        e.TurnEnded(turn="t1", outcome="failed", error=ErrorInfo("x", "broke")),
        {},
        "done",
        {"id": "s.t1", "model": "small", "outcome": "failed", "error": "broke"},
    ),
}


@pytest.mark.parametrize(("event", "known", "name", "data"), TOLD.values(), ids=TOLD)
def test_what_a_reader_is_told(event: Event, known: dict[str, Any], name: str, data: Json) -> None:
    assert one(event, watched(**known)) == (name, data)


SILENT: dict[str, tuple[Event, dict[str, Any]]] = {
    "thinking": (e.PartDelta(turn="t1", part="p1", text="hm"), {"kinds": {"p1": "reasoning"}}),
    "the start of a part": (e.PartStarted(turn="t1", part="p1", kind="text"), {}),
    "the end of a part that was shown": (e.PartEnded(turn="t1", part="p1", text="Hello"), {"kinds": {"p1": "text"}}),
    "a call whose title says nothing": (e.ToolStarted(turn="t1", call="c1", tool="edit", title="edit"), {}),
    "a call without a title": (e.ToolStarted(turn="t1", call="c1", tool="edit"), {}),
    "a call that was shown": (e.ToolReady(turn="t1", call="c1", input="{}", title="X"), {"announced": {"c1"}}),
    "usage": (e.UsageReported(turn="t1", input=1), {}),
    "output": (e.ToolOutput(turn="t1", part="c1", text="out"), {}),
}


@pytest.mark.parametrize(("event", "known"), SILENT.values(), ids=SILENT)
def test_what_is_not_for_readers(event: Event, known: dict[str, Any]) -> None:
    assert frames(record(event), watched(**known)) == []


def test_a_call_is_shown_once() -> None:
    known = watched()
    assert len(frames(record(e.ToolStarted(turn="t1", call="c1", tool="edit", title="Edit x")), known)) == 1
    assert frames(record(e.ToolReady(turn="t1", call="c1", input="{}", title="Edit x")), known) == []


def test_the_model_is_the_one_that_answered() -> None:
    known = watched()
    frames(record(e.UsageReported(turn="t1", model="large")), known)
    assert one(e.TurnEnded(turn="t1", outcome="completed"), known)[1]["model"] == "large"


def test_who_has_missed_the_pieces_gets_the_whole() -> None:
    """Old deltas are compacted away; the part's end has its text."""
    known = watched()
    frames(record(e.PartStarted(turn="t1", part="p1", kind="text")), known)
    end = e.PartEnded(turn="t1", part="p1", text="Hello")
    assert one(end, known) == ("fragment", {"id": "s.t1", "fragment": "Hello", "model": "small"})
    assert frames(record(end), known) == [], "and only once"


def test_who_has_heard_a_piece_gets_no_whole() -> None:
    known = watched()
    for event in (e.PartStarted(turn="t1", part="p1", kind="text"), e.PartDelta(turn="t1", part="p1", text="Hel")):
        frames(record(event), known)
    assert frames(record(e.PartEnded(turn="t1", part="p1", text="Hello")), known) == []


@pytest.mark.parametrize(("text", "fragment"), [("better", "better"), ("", "")])
def test_a_correction_says_how_much_it_replaces(text: str, fragment: str) -> None:
    event = e.PartEnded(turn="t1", part="p1", text=text, replaces=5)
    name, data = one(event, watched(kinds={"p1": "text"}))
    assert (name, data["fragment"], data["replaces"]) == ("fragment", fragment, 5)


def test_a_long_correction_replaces_with_its_first_piece() -> None:
    event = e.PartEnded(turn="t1", part="p1", text="x" * (FRAME_CHARS + 1), replaces=5)
    first, second = read(frames(record(event), watched(kinds={"p1": "text"})))
    assert (first[2]["replaces"], "replaces" in second[2]) == (5, False)


@pytest.mark.parametrize(
    ("characters", "cursors"),
    [
        (0, []),
        (1, ["7"]),
        (FRAME_CHARS, ["7"]),
        (FRAME_CHARS + 1, ["7-1", "7"]),
        (2 * FRAME_CHARS + 1, ["7-1", "7-2", "7"]),
    ],
)
def test_a_long_piece_comes_in_frames_with_cursors_of_their_own(characters: int, cursors: list[str]) -> None:
    text = "ä" * characters
    found = read(frames(record(e.PartDelta(turn="t1", part="p1", text=text)), watched(kinds={"p1": "text"})))
    assert [ident for ident, _, _ in found] == cursors
    assert "".join(data["fragment"] for _, _, data in found) == text


@pytest.mark.parametrize(
    "input",
    ["", "no json", "[]", '"text"', "{}", '{"content": 7}', '{"content": null}', "[" * 100_000],
    ids=lambda text: text[:20],
)
def test_an_approval_without_content_has_no_preview(input: str) -> None:
    assert "contentPreview" not in one(asked(input=input))[1]


def test_a_preview_is_short() -> None:
    shown = one(asked(input=msgspec.json.encode({"content": "x" * 3000}).decode()))[1]["contentPreview"]
    assert shown == "x" * 2000


def test_who_comes_in_the_middle_knows_what_has_begun() -> None:
    parts: list[Part] = [TextPart("p1", "reasoning"), CallPart("c1", "edit"), TextPart("p2", "text")]
    turn = TurnState("t1", Message("hi", model="large"), "me", 0, 1, parts)
    known = Watched.of("project-1", "s.t1", "small", turn)
    assert (known.model, known.kinds, known.tools, known.announced) == (
        "large",
        {"p1": "reasoning", "p2": "text"},
        {"c1": "edit"},
        {"c1"},
    )
    plain = TurnState("t1", Message("hi"), "me", 0, 1)
    assert Watched.of("project-1", "s.t1", "small", plain).model == "small"


TEXT = "abcdefghij"
TRAIL = [(10, 3), (12, 2), (20, 5)]


@pytest.mark.parametrize(
    ("low", "high", "pieces"),
    [
        (0, 99, [("20", "abcdefghij")]),
        (10, 99, [("20", "defghij")]),
        (12, 99, [("20", "fghij")]),
        (0, 20, [("12", "abcde")]),
        (10, 20, [("12", "de")]),
        (11, 12, []),
        (20, 99, []),
    ],
)
def test_what_was_compacted_is_cut_out_of_the_whole(low: int, high: int, pieces: list[tuple[str, str]]) -> None:
    """Each reader gets what lies behind its own cursor, and no character twice."""
    found = read(compacted("p1", TEXT, TRAIL, low, high, watched(kinds={"p1": "text"})))
    assert [(ident, data["fragment"]) for ident, _, data in found] == pieces


def test_compacted_pieces_stay_below_the_size_of_a_frame() -> None:
    trail = [(number, FRAME_CHARS // 2 + 1) for number in (1, 2, 3)]
    text = "".join(sign * size for sign, (_, size) in zip("abc", trail, strict=True))
    found = read(compacted("p1", text, trail, 0, 9, watched(kinds={"p1": "text"})))
    assert [ident for ident, _, _ in found] == ["1", "2", "3"]
    assert "".join(data["fragment"] for _, _, data in found) == text


@pytest.mark.parametrize(("reason", "outcome"), [("steered", "completed"), ("removed", "cancelled")])
def test_a_queued_message_that_never_ran_is_done(reason: Any, outcome: str) -> None:
    event = e.QueueRemoved(pending="m1", kind="queue", by="token:me", reason=reason)
    ((ident, name, data),) = read([removed(record(event), "project-1", "s")])
    assert (ident, name) == ("7", "done")
    assert data == {"id": "s.m1", "sessionId": "project-1", "outcome": outcome}


def test_a_turn_that_goes_on_is_an_inbound_message_again() -> None:
    event = e.TurnResumed(turn="t1", by="token:me")
    ((_, name, data),) = read([resumed(record(event), watched(), "hi")])
    assert (name, data["text"], data["source"]) == ("inbound", "hi", "token:me")


@pytest.mark.parametrize(
    ("event", "ident"),
    [
        (e.TurnStarted(turn="t1", message=Message("hi"), by=""), "s.t1"),
        (e.TurnStarted(turn="t1", message=Message("hi"), by="", pending="m4"), "s.m4"),
        (e.TurnResumed(turn="t1", by=""), "s.t1~3"),
        (e.TurnEnded(turn="t1", outcome="completed"), None),
    ],
    ids=["at once", "from the queue", "again", "no beginning"],
)
def test_the_id_of_what_begins(event: Event, ident: str | None) -> None:
    assert start_of(record(event), "s") == ident


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("draft", {"text": "try this", "offered": True}, None),
        ("something", {"text": "try this"}, None),
        ("draft", None, None),
    ],
)
def test_only_a_text_that_a_program_offered_is_a_draft(key: str, value: Json | None, text: str | None) -> None:
    """What people type in their editors is their own business."""
    event = e.ClientKept(key=key, value=value, by="token:me")
    assert [data["text"] for _, _, data in read(drafted(record(event), "project-1", "s"))] == ([text] if text else [])
