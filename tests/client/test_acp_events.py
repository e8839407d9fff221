"""What an editor that speaks ACP is told of each event, and of a history that it loads."""

from typing import Any

import pytest

from portico.client.acp.content import OUTPUT_CHARS, files_of, hunks
from portico.client.acp.update import (
    TAIL_CHARS,
    KnownParts,
    commands_of,
    ending,
    replayed,
    updates,
    user_message,
)
from portico.kernel import events as e
from portico.kernel.events import ErrorInfo, Event, Message
from portico.kernel.state import Approval, CallPart, QuestionPart, TextPart, TurnState


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
    known.reset()
    assert (known.kinds, known.texts) == ({}, {}), "nothing of what is over is kept"


REPLACED = "\nThe agent replaced its text above by:\n"


@pytest.mark.parametrize(
    ("kind", "texts", "shown"),
    [
        ("text", ["Hello"], []),
        ("text", ["Hello, world"], [", world"]),
        ("text", ["Good day"], [REPLACED, "Good day"]),
        ("text", ["Hello", "Good day"], [REPLACED, "Good day"]),
        ("text", ["Howdy", "Salut"], [REPLACED, "Howdy", REPLACED, "Salut"]),
        ("text", [""], ["\nThe agent discarded its text above.\n"]),
        ("reasoning", ["Good day"], []),
    ],
)
def test_a_text_that_the_agent_corrects_is_sent_again(kind: Any, texts: list[str], shown: list[str]) -> None:
    """The editor kept the first text until it loaded the session again."""
    known = KnownParts()
    told(e.PartStarted(turn="t", part="p", kind=kind), known)
    told(e.PartDelta(turn="t", part="p", text="Hel"), known)
    joined = KnownParts()
    joined.join(TurnState("t", Message("hi"), "me", 0, 0, [TextPart("p", kind, "Hel")]))
    for each in (known, joined):
        told(e.PartDelta(turn="t", part="p", text="lo"), each)
        found = [
            update
            for text in texts
            for update in told(e.PartEnded(turn="t", part="p", text=text, replaces=text != "Hello"), each)
        ]
        assert [text(update) for update in found] == shown
        ids = [update["message_id"] for update in found]
        assert len({*ids}) == len(ids), "each text is a message of its own"


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
    known = KnownParts()
    known.join(turn(*parts))
    assert (known.kinds, {call: len(shown) for call, shown in known.output.items()}) == (
        {"p1": "reasoning", "p2": "text"},
        {"c1": TAIL_CHARS},
    ), "also what has ended: the agent may correct it"
    known.reset()
    known.join(None)
    assert known == KnownParts()


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


def test_a_text_without_pieces_is_shown_when_it_ends() -> None:
    """A notice that an agent reported as a whole was in the history, but not shown live."""
    known = KnownParts()
    told(e.PartStarted(turn="t", part="p", kind="notice"), known)
    (found,) = told(e.PartEnded(turn="t", part="p", text="Retrying."), known)
    assert (text(found), found["message_id"]) == ("\nRetrying.\n", "p")


def test_a_message_has_the_same_id_live_and_in_the_history() -> None:
    known = KnownParts()
    told(e.PartStarted(turn="t", part="p", kind="text"), known)
    (live,) = told(e.PartDelta(turn="t", part="p", text="hi"), known)
    first, loaded = [each.model_dump(exclude_none=True) for each in replayed(turn(TextPart("p", "text", "hi")))]
    assert (first["message_id"], live) == ("t", loaded)


PICTURE = {"type": "embeddedResource", "data": "aGk=", "contentType": "image/png", "label": "shot"}


@pytest.mark.parametrize(
    ("attachment", "kinds"),
    [
        (PICTURE, ["text", "image"]),
        ({**PICTURE, "contentType": "audio/wav"}, ["text", "audio"]),
        ({"type": "resource", "uri": "file:///w/a.py", "label": "a.py"}, ["text", "resource_link"]),
        ({"type": "embeddedResource", "data": "aGk=", "contentType": "text/plain", "uri": "untitled:1"}, None),
        ({"type": "simple", "label": "words"}, ["text"]),
    ],
)
def test_what_was_attached_to_a_message(attachment: dict[str, Any], kinds: list[str] | None) -> None:
    found = user_message(Message("look", attachments=[attachment]), "t")
    assert [each.content.type for each in found] == (kinds or ["text", "resource_link"])
    assert {each.message_id for each in found} == {"t"}
    assert replayed(TurnState("t", Message("look", attachments=[attachment]), "me", 0, 1)) == found


def test_a_picture_that_a_tool_shows() -> None:
    (found,) = told(e.ToolEnded(turn="t", call="c", ok=True, content=[PICTURE]))
    assert [each["content"]["type"] for each in found["content"]] == ["image"]


@pytest.mark.parametrize(
    ("outcome", "error", "shown"),
    [
        ("failed", ErrorInfo("x", "it broke"), "This turn failed: it broke"),
        ("failed", None, "This turn failed."),
        ("interrupted", ErrorInfo("interrupted", "The host was stopped."), "This turn was interrupted: The host was"),
        ("cancelled", None, "This turn was cancelled."),
        ("completed", None, ""),
        (None, None, ""),
    ],
)
def test_why_a_turn_ended(outcome: Any, error: ErrorInfo | None, shown: str) -> None:
    found = [each.content.text.strip() for each in ending("t", outcome, error)]
    assert [each[: len(shown)] for each in found] == ([shown] if shown else [])


@pytest.mark.parametrize(
    ("given", "files"),
    [
        ({"path": "a.py"}, ["/w/a.py"]),
        ({"file_path": "/x/a.py", "line": 3}, ["/x/a.py"]),
        ({"filePath": "../a.py"}, ["/a.py"]),
        ({"files": ["a", 7, "b"]}, ["/w/a", "/w/b"]),
        ({"path": "file:///x/a.py"}, ["/x/a.py"]),
        ({"path": ""}, []),
        ({"path": "a\0b"}, []),
        ({"command": "make"}, []),
        ([1], []),
        (None, []),
    ],
)
def test_the_files_of_a_call(given: Any, files: list[str]) -> None:
    assert files_of(given, "/w") == files


def test_a_call_has_its_files_live_and_in_the_history() -> None:
    (live,) = told(e.ToolReady(turn="t", call="c", input='{"path": "a.py", "line": 3}'), KnownParts(cwd="/w"))
    part = CallPart("c", "read", input='{"path": "a.py", "line": 3}', done=True, ok=True)
    start = replayed(turn(part), KnownParts(cwd="/w"))[1].model_dump(exclude_none=True)
    assert [live["locations"], start["locations"]] == [[{"path": "/w/a.py", "line": 3}]] * 2
    edit = [{"type": "diff", "path": "/w/b.py", "old": "1", "new": "2"}]
    (end,) = told(e.ToolEnded(turn="t", call="c", ok=True, content=edit))
    assert end["locations"] == [{"path": "/w/b.py"}]


TWO = """--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@
 one
-two
+2
@@ -9 +9,2 @@
 nine
+ten
"""
NEW = "--- /dev/null\n+++ b/a.py\n@@ -0,0 +1 @@\n+hello\n"
NO_END = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"
SEPARATOR = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\x0cb\n+c\n"


@pytest.mark.parametrize(
    ("diff", "sides"),
    [
        (TWO, [("one\ntwo\n", "one\n2\n"), ("nine\n", "nine\nten\n")]),
        (NEW, [(None, "hello\n")]),
        (NO_END, [("a", "b")]),
        (SEPARATOR, [("a\x0cb\n", "c\n")]),
        (TWO[:-6], []),
        (TWO + "--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-x\n+y\n", []),
        ("... cut", []),
        ("", []),
    ],
    ids=["two hunks", "a new file", "without a last line end", "a form feed", "cut", "two files", "no diff", "nothing"],
)
def test_the_hunks_of_a_diff(diff: str, sides: list[tuple[str | None, str]]) -> None:
    assert [(each.old_text, each.new_text) for each in hunks("/w/a.py", diff)] == sides


def test_an_edit_of_which_only_the_diff_is_known() -> None:
    (found,) = told(e.ToolContent(turn="t", call="c", content=[{"type": "diff", "path": "/w/a.py", "diff": TWO}]))
    assert [(each["type"], each["new_text"]) for each in found["content"]] == [
        ("diff", "one\n2\n"),
        ("diff", "nine\nten\n"),
    ]


def commands(**fields: Any) -> list[dict[str, Any]]:
    """What an editor with terminals gets of a command."""
    known = KnownParts(cwd="/w", terminals=True)
    events: list[Event] = [
        e.ToolStarted(turn="t", call="c", tool="bash", kind="execute"),
        *([e.ToolOutput(turn="t", part="c", text="one\n")] if fields.pop("printed", False) else []),
        e.ToolEnded(turn="t", call="c", **fields),
    ]
    return [update for event in events for update in told(event, known)]


@pytest.mark.parametrize(
    ("fields", "printed", "code"),
    [
        ({"ok": True, "output": "one\n", "printed": True}, ["one\n"], 0),
        ({"ok": True, "output": "one\n"}, ["one\n"], 0),
        ({"ok": True}, [], 0),
        ({"ok": False, "exit_code": 2, "printed": True}, ["one\n"], 2),
        ({"ok": False, "error": ErrorInfo("x", "no shell")}, ["no shell"], 1),
    ],
)
def test_a_command_in_a_terminal(fields: dict[str, Any], printed: list[str], code: int) -> None:
    start, *rest = commands(**fields)
    assert start["content"] == [{"type": "terminal", "terminal_id": "c"}]
    assert start["field_meta"] == {"terminal_info": {"terminal_id": "c", "cwd": "/w"}}
    pieces = [each["field_meta"]["terminal_output"]["data"] for each in rest[:-1]]
    assert (pieces, rest[-1]["field_meta"]["terminal_exit"]["exit_code"]) == (printed, code)


def test_a_command_of_the_history_in_a_terminal() -> None:
    part = CallPart("c", "bash", kind="execute", output="one\n", done=True, ok=True, exit_code=0)
    found = [each.model_dump(exclude_none=True) for each in replayed(turn(part), KnownParts(cwd="/w", terminals=True))]
    assert found[1:] == commands(ok=True, output="one\n", exit_code=0)


def test_the_text_of_a_sub_agent_is_in_its_call() -> None:
    part = CallPart("c", "task", output="done", done=True, ok=True)
    (*_, end) = [each.model_dump(exclude_none=True) for each in replayed(turn(part), None, {"c": "I looked.\n\n"})]
    assert output(end) == ["I looked.", "done"]
    repeated = CallPart("c", "task", output="I looked.", done=True, ok=True)
    (*_, end) = [each.model_dump(exclude_none=True) for each in replayed(turn(repeated), None, {"c": "I looked."})]
    assert output(end) == ["I looked."]
