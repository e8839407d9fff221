"""What an editor that speaks ACP is told of each event, and of a history that it loads."""

from typing import Any

import pytest

from portico import events as e
from portico.client.acp.update import OUTPUT_CHARS, TAIL_CHARS, KnownParts, commands_of, replayed, updates
from portico.events import ErrorInfo, Event, Message
from portico.host.state import Approval, CallPart, QuestionPart, TextPart, TurnState


def told(event: Event, known: KnownParts | None = None) -> list[dict[str, Any]]:
    return [each.model_dump(exclude_none=True) for each in updates(event, known or KnownParts())]


def text(update: dict[str, Any]) -> str:
    return str(update["content"]["text"])


def output(update: dict[str, Any]) -> list[str]:
    return [each["content"]["text"] for each in update["content"] if each["type"] == "content"]


@pytest.mark.parametrize(
    ("kind", "update", "shown"),
    [
        ("text", "agent_message_chunk", "hi"),
        ("reasoning", "agent_thought_chunk", "hi"),
        ("notice", "agent_message_chunk", "\nhi\n"),
    ],
)
def test_a_piece_of_each_kind(kind: Any, update: str, shown: str) -> None:
    known = KnownParts()
    assert told(e.PartStarted(turn="t", part="p", kind=kind), known) == []
    (found,) = told(e.PartDelta(turn="t", part="p", text="hi"), known)
    assert (found["session_update"], text(found)) == (update, shown)
    assert told(e.PartEnded(turn="t", part="p", text="hi"), known) == []
    assert known.kinds == {}, "nothing of what is over is kept"


@pytest.mark.parametrize(
    ("kind", "shown"), [("edit", "edit"), ("execute", "execute"), ("other", "other"), ("hologram", "other")]
)
def test_a_call_begins(kind: str, shown: str) -> None:
    (found,) = told(e.ToolStarted(turn="t", call="c", tool="look", kind=kind))
    assert (found["session_update"], found["tool_call_id"], found["title"]) == ("tool_call", "c", "look")
    assert (found["kind"], found["status"]) == (shown, "pending")


@pytest.mark.parametrize(
    ("input", "shown"), [('{"a": 1}', {"a": 1}), ("not json", "not json"), ("", None), ("[1]", [1])]
)
def test_a_call_runs_with_its_input(input: str, shown: Any) -> None:
    (found,) = told(e.ToolReady(turn="t", call="c", input=input, title="Look"))
    assert (found["status"], found["title"], found.get("raw_input")) == ("in_progress", "Look", shown)


def test_live_output_is_shown_by_its_end() -> None:
    """ACP replaces a call's content with every update."""
    known = KnownParts()
    (first,) = told(e.ToolOutput(turn="t", part="c", text="a"), known)
    (second,) = told(e.ToolOutput(turn="t", part="c", text="b"), known)
    assert (output(first), output(second)) == (["a"], ["ab"])
    (long,) = told(e.ToolOutput(turn="t", part="c", text="x" * TAIL_CHARS), known)
    assert output(long) == ["x" * TAIL_CHARS]
    told(e.ToolEnded(turn="t", call="c", ok=True), known)
    assert known.output == {}


DIFF = {"type": "diff", "path": "/x", "old": "1", "new": "2"}


@pytest.mark.parametrize(
    ("content", "kinds"),
    [
        ([DIFF], ["diff"]),
        ([{"type": "text", "text": "said"}], ["content"]),
        ([DIFF, {"type": "text", "text": "said"}], ["diff", "content"]),
        ([{"type": "terminal", "terminal": "t1"}], None),
        ([{"type": "diff"}], None),
        ([{"type": "text", "text": 7}], None),
        ([], None),
    ],
    ids=["a diff", "a text", "both", "a terminal of the host", "a diff of no file", "no text", "nothing"],
)
def test_what_a_call_reports(content: list[Any], kinds: list[str] | None) -> None:
    found = told(e.ToolContent(turn="t", call="c", content=content))
    assert [[each["type"] for each in update["content"]] for update in found] == ([kinds] if kinds else [])


ENDS: dict[str, tuple[e.ToolEnded, str, list[str]]] = {
    "well": (e.ToolEnded(turn="t", call="c", ok=True, output="out"), "completed", ["out"]),
    "without a word": (e.ToolEnded(turn="t", call="c", ok=True), "completed", []),
    "badly": (
        e.ToolEnded(turn="t", call="c", ok=False, output="out", error=ErrorInfo("x", "broke")),
        "failed",
        ["broke"],
    ),
    "with much output": (
        e.ToolEnded(turn="t", call="c", ok=True, output="a" + "x" * OUTPUT_CHARS),
        "completed",
        ["x" * OUTPUT_CHARS],
    ),
}


@pytest.mark.parametrize(("event", "status", "shown"), ENDS.values(), ids=ENDS)
def test_how_a_call_ends(event: e.ToolEnded, status: str, shown: list[str]) -> None:
    (found,) = told(event)
    assert found["status"] == status
    assert (output(found) if "content" in found else []) == shown


@pytest.mark.parametrize(
    "event",
    [
        e.TurnStarted(turn="t", message=Message("hi"), by="me"),
        e.TurnEnded(turn="t", outcome="completed"),
        e.UsageReported(turn="t", input=1),
        e.SessionRead(read=True, by="me"),
    ],
    ids=lambda event: e.tag(event),
)
def test_what_an_editor_is_not_told(event: Event) -> None:
    assert told(event) == []


def test_a_new_title_is_the_sessions() -> None:
    (found,) = told(e.SessionRenamed(title="New", by="me"))
    assert (found["session_update"], found["title"]) == ("session_info_update", "New")


def test_commands_behind_a_slash() -> None:
    found = commands_of([{"text": "/plan", "about": "Makes a plan."}, {"text": "/x"}]).available_commands
    assert [(each.name, each.description) for each in found] == [("plan", "Makes a plan."), ("x", "")]


def turn(*parts: Any) -> TurnState:
    return TurnState("t", Message("do it"), "me", 0, 1, list(parts))


def asked() -> Approval:
    return Approval("a", "other", "", "", 0, [])


@pytest.mark.parametrize(
    ("part", "status"),
    [
        (CallPart("c", "look", done=True, ok=True), "completed"),
        (CallPart("c", "look", done=True), "failed"),
        (CallPart("c", "look", ready=True), "in_progress"),
        (CallPart("c", "look", ready=True, approvals=[asked()]), "pending"),
    ],
    ids=["done", "failed", "running", "waiting"],
)
def test_a_call_of_the_history(part: CallPart, status: str) -> None:
    _, start, end = (each.model_dump(exclude_none=True) for each in replayed(turn(part)))
    assert (start["session_update"], end["status"]) == ("tool_call", status)


def test_a_turn_of_the_history_in_its_order() -> None:
    parts = [
        TextPart("p1", "reasoning", "hm"),
        TextPart("p2", "text", "An answer."),
        TextPart("p3", "text", ""),
        QuestionPart("q", "Which?"),
    ]
    found = [each.model_dump(exclude_none=True) for each in replayed(turn(*parts))]
    assert [(each["session_update"], text(each)) for each in found] == [
        ("user_message_chunk", "do it"),
        ("agent_thought_chunk", "hm"),
        ("agent_message_chunk", "An answer."),
        ("agent_message_chunk", "Which?"),
    ]


def test_who_comes_in_the_middle_knows_what_still_grows() -> None:
    parts = [
        TextPart("p1", "reasoning", "hm", done=True),
        TextPart("p2", "text", "An"),
        CallPart("c1", "look", output="x" * (TAIL_CHARS + 1)),
        CallPart("c2", "look", done=True, output="y"),
    ]
    known = KnownParts.of(turn(*parts))
    assert (known.kinds, {call: len(shown) for call, shown in known.output.items()}) == (
        {"p2": "text"},
        {"c1": TAIL_CHARS},
    )
    assert KnownParts.of(None) == KnownParts()


def test_a_plan_is_an_update_of_its_own_live_and_in_the_history() -> None:
    known = KnownParts()
    content = [{"type": "text", "text": "- [x] Look\n- [~] Change\n- [ ] Test"}]
    events: list[Event] = [
        e.ToolStarted(turn="t", call="c", tool="plan", kind="think", title="Plan"),
        e.ToolReady(turn="t", call="c", input="{}"),
        e.ToolContent(turn="t", call="c", content=content),
        e.ToolEnded(turn="t", call="c", ok=True, output="shown", content=content),
    ]
    live = [update for event in events for update in told(event, known)]
    part = CallPart("c", "plan", content=content, done=True, ok=True)
    turn = TurnState("t", Message("go"), "me", 0, 0, parts=[part], outcome="completed")
    _, loaded = [each.model_dump(exclude_none=True) for each in replayed(turn)]
    assert [live[0], loaded] == [live[1]] * 2
    assert loaded["session_update"] == "plan"
    assert [(each["content"], each["status"]) for each in loaded["entries"]] == [
        ("Look", "completed"),
        ("Change", "in_progress"),
        ("Test", "pending"),
    ]


@pytest.mark.parametrize(
    ("outcome", "error", "last"),
    [
        ("failed", ErrorInfo("agent_failed", "No model answered."), "\nThis turn failed: No model answered.\n"),
        ("interrupted", None, "\nThis turn was interrupted.\n"),
        ("cancelled", None, "\nThis turn was cancelled.\n"),
        ("completed", None, "go"),
    ],
)
def test_the_history_names_how_a_turn_ended(outcome: Any, error: ErrorInfo | None, last: str) -> None:
    turn = TurnState("t", Message("go"), "me", 0, 0, outcome=outcome, error=error)
    assert text(replayed(turn)[-1].model_dump(exclude_none=True)) == last
