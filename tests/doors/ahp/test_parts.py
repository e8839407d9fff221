"""A turn and its parts as clients see them: each state of a tool call, each end of a turn, in every dialect."""

from typing import Any

import pytest

from portico.doors.ahp.view import parts
from portico.doors.ahp.wire.versions import SEED, Dialect
from portico.kernel.decide.approval import OPTIONS
from portico.kernel.events import ErrorInfo, Json, Message, Option, SignInAsked
from portico.kernel.state import Approval, CallPart, QuestionPart, Stop, TextPart, TurnState, Usage
from portico.kernel.tool import ToolResult

V1, V05, V08, V09, V10 = (Dialect(each, lambda: 0) for each in (SEED, "0.5.2", "0.8.0", "0.9.0", "1.0.0"))
ALLOW, DENY = OPTIONS[0], OPTIONS[-1]


def call(**fields: Any) -> CallPart:
    return CallPart("c1", "look", **fields)


def asked(**fields: Any) -> Approval:
    return Approval("a1", "other", "May I?", "{}", 0, OPTIONS, **fields)


def answered(*, allowed: bool, **fields: Any) -> Approval:
    option = ALLOW.id if allowed else DENY.id
    return asked(**{"answered": True, "allowed": allowed, "option": option, **fields})


SIGN_IN = SignInAsked(turn="t1", call="c1", resource={"resource": "https://x"}, reason="required")
DONE: dict[str, Any] = {"ready": True, "done": True, "ok": True, "outcome": "completed"}
CALLS: dict[str, tuple[CallPart, Json]] = {
    "its input streams": (call(input='{"a'), {"status": "streaming", "partialInput": '{"a'}),
    "nothing of it is known": (call(), {"status": "streaming"}),
    "it runs unasked": (call(ready=True), {"status": "running", "confirmed": "not-needed"}),
    "a rule let it run": (call(ready=True, rule="the rule"), {"status": "running", "confirmed": "setting"}),
    "it waits for a yes": (call(ready=True, approvals=[asked()]), {"status": "pending-confirmation"}),
    "a person let it run": (
        call(ready=True, approvals=[answered(allowed=True)]),
        {"status": "running", "confirmed": "user-action"},
    ),
    "a client's setting let it run": (
        call(ready=True, approvals=[answered(allowed=True, meta={"confirmed": "setting"})]),
        {"status": "running", "confirmed": "setting"},
    ),
    "a person refused it": (
        call(ready=True, approvals=[answered(allowed=False, reason="no")]),
        {"status": "cancelled", "reason": "denied", "reasonMessage": "no"},
    ),
    "a person skipped it": (
        call(ready=True, approvals=[answered(allowed=False, meta={"reason": "skipped"})]),
        {"status": "cancelled", "reason": "skipped"},
    ),
    "a rule refused it": (
        call(ready=True, done=True, denied=True, rule="*never*", outcome="failed"),
        {"status": "cancelled", "reason": "denied", "reasonMessage": {"markdown": r"\*never\*"}},
    ),
    "the turn's end took it": (
        call(ready=True, done=True, outcome="cancelled"),
        {"status": "cancelled", "reason": "skipped"},
    ),
    "the host's end took it": (
        call(ready=True, done=True, outcome="interrupted"),
        {"status": "cancelled", "reason": "skipped"},
    ),
    "it is done": (call(**DONE, output="out"), {"status": "completed", "success": True, "confirmed": "not-needed"}),
    "it failed": (
        call(**{**DONE, "ok": False}, error=ErrorInfo("x", "broke")),
        {"status": "completed", "success": False, "error": {"message": "broke", "code": "x"}},
    ),
    "its result waits": (
        call(ready=True, output="out", approvals=[asked(result=True)]),
        {"status": "pending-result-confirmation", "success": True},
    ),
    "its result was refused": (
        call(ready=True, approvals=[answered(allowed=False, result=True)]),
        {"status": "cancelled", "reason": "result-denied"},
    ),
    "it waits for a sign-in": (
        call(ready=True, sign_in=SIGN_IN),
        {"status": "auth-required", "confirmed": "not-needed"},
    ),
    "the turn's end answered": (
        call(ready=True, approvals=[answered(allowed=False, option=None)]),
        {"status": "running", "confirmed": "not-needed"},
    ),
}


@pytest.mark.parametrize(("part", "shown"), CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("dialect", [V1, V05, V09, V10], ids=lambda each: each.version)
def test_the_state_of_a_call(part: CallPart, shown: Json, dialect: Dialect) -> None:
    found = parts.call(part, dialect)
    if shown["status"] == "auth-required" and not dialect.since("0.6.0"):
        shown = {**shown, "status": "running"}  # older clients know no such state
    assert {key: found.get(key) for key in shown} == shown
    assert (found["toolCallId"], found["toolName"]) == ("c1", "look")


@pytest.mark.parametrize(
    ("part", "seed", "modern"),
    [
        (call(), {}, {}),
        (call(owner="editor"), {"toolClientId": "editor"}, {"contributor": {"kind": "client", "clientId": "editor"}}),
        (call(server="server/x"), {}, {"contributor": {"kind": "mcp", "customizationId": "server/x"}}),
        (
            call(server="server/x", owner="editor"),
            {"toolClientId": "editor"},
            {"contributor": {"kind": "client", "clientId": "editor"}},
        ),
    ],
    ids=["ours", "a client's", "a server's", "a client's first"],
)
def test_whose_tool_it_is(part: CallPart, seed: Json, modern: Json) -> None:
    names = ("toolClientId", "contributor")
    assert {key: value for key, value in parts.identity(part, True).items() if key in names} == seed
    assert {key: value for key, value in parts.identity(part, False).items() if key in names} == modern


@pytest.mark.parametrize(
    ("option", "kind", "group"),
    [
        (Option("a", "A", True, "once"), "approve", 0),
        (Option("a", "A", True, "session"), "approve", 1),
        (Option("a", "A", True, "project"), "approve", 1),
        (Option("a", "A", False, "once"), "deny", 2),
        (Option("a", "A", False, "session"), "deny", 2),
    ],
)
def test_an_option_stands_in_its_group(option: Option, kind: str, group: int) -> None:
    assert parts.option(option) == {"id": "a", "label": "A", "kind": kind, "group": group}


DIFF = "--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n one\n-two\n+three\n+four\n"
NEW = "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+one\n"
GONE = "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"


@pytest.mark.parametrize(
    ("diff", "counts", "sides"),
    [
        (DIFF, {"added": 2, "removed": 1}, ["before", "after"]),
        (NEW, {"added": 1, "removed": 0}, ["after"]),
        (GONE, {"added": 0, "removed": 1}, ["before"]),
        ("", {"added": 0, "removed": 0}, ["before", "after"]),
        ("--- a\n+++ b\n", {"added": 0, "removed": 0}, ["before", "after"]),
    ],
    ids=["changed", "new", "deleted", "empty", "without a hunk"],
)
def test_an_edit_before_anybody_said_yes(diff: str, counts: Json, sides: list[str]) -> None:
    """Its head is no line that was added or removed."""
    shown = parts.edit("a1", "/w/x", diff)
    assert shown["diff"] == counts
    assert [side for side in ("before", "after") if side in shown] == sides
    assert all(shown[side]["uri"] == "file:///w/x" for side in sides)


@pytest.mark.parametrize(
    ("fields", "present", "absent"),
    [
        ({}, [], ["edits", "riskAssessment", "editable"]),
        ({"file": "/w/x", "diff": DIFF}, ["edits"], []),
        ({"diff": DIFF}, [], ["edits"]),
        ({"why": "No rule lets it pass."}, ["riskAssessment"], []),
        ({"editable": True}, ["editable"], []),
    ],
    ids=["plain", "an edit", "an edit of no file", "a reason", "editable"],
)
def test_what_a_confirmation_shows(fields: Json, present: list[str], absent: list[str]) -> None:
    shown = parts.confirmation(call(ready=True), asked(**fields), False)
    assert [each["id"] for each in shown["options"]] == [each.id for each in OPTIONS]
    assert all(name in shown for name in present)
    assert not any(name in shown for name in absent)
    assert "riskAssessment" not in parts.confirmation(call(ready=True), asked(**fields), True)


def turn(*of: Any, **fields: Any) -> TurnState:
    return TurnState("t1", Message("hi"), "token:me", 1_000, 1, list(of), **fields)


FAILED = ErrorInfo("agent_failed", "It broke.")
TURNS: dict[str, tuple[TurnState, Dialect, Json]] = {
    "running": (turn(), V10, {"state": None, "duration": None, "startedAt": "1970-01-01T00:00:01.000Z"}),
    "running in version 1": (turn(), V1, {"state": None, "startedAt": None}),
    "completed": (turn(outcome="completed", ended=3_500), V10, {"state": "complete", "duration": 2_500, "error": None}),
    "completed in version 1": (turn(outcome="completed", ended=3_500), V1, {"state": "complete", "duration": None}),
    "cancelled": (turn(outcome="cancelled", ended=2_000), V10, {"state": "cancelled", "error": None}),
    "failed": (turn(outcome="failed", ended=2_000, error=FAILED), V10, {"state": "error", "error": None}),
    "failed before 0.9": (
        turn(outcome="failed", ended=2_000, error=FAILED),
        V08,
        {"state": "error", "error": {"errorType": "agent_failed", "message": "It broke."}},
    ),
    "failed without a word": (
        turn(outcome="failed", ended=2_000),
        V1,
        {"state": "error", "error": {"errorType": "failed", "message": "The turn failed."}},
    ),
    "ended before it began": (turn(outcome="completed", ended=0), V10, {"duration": 0}),
    "used": (
        turn(usage=Usage(10, 5, 2, 0.5, "m")),
        V10,
        {"usage": {"inputTokens": 10, "outputTokens": 5, "model": "m", "cacheReadTokens": 2, "_meta": {"cost": 0.5}}},
    ),
    "used in version 1": (
        turn(usage=Usage(10, 5, 0, 0.5)),
        V1,
        {"usage": {"inputTokens": 10, "outputTokens": 5}},
    ),
}


@pytest.mark.parametrize(("of", "dialect", "shown"), TURNS.values(), ids=TURNS)
def test_a_turn(of: TurnState, dialect: Dialect, shown: Json) -> None:
    found = parts.turn(of, dialect)
    assert {key: found.get(key) for key in shown} == shown
    assert found[dialect.message]["text"] == "hi"


TEXT = TextPart("p1", "text", "words", done=True)
THOUGHT = TextPart("p2", "reasoning", "hm", done=True)
NOTICE = TextPart("p3", "notice", "*now*", done=True)
QUESTION = QuestionPart("q1", "Which?")


@pytest.mark.parametrize(
    ("part", "seed", "modern"),
    [
        (
            TEXT,
            {"kind": "markdown", "id": "p1", "content": "words"},
            {"kind": "markdown", "id": "p1", "content": "words"},
        ),
        (
            THOUGHT,
            {"kind": "reasoning", "id": "p2", "content": "hm"},
            {"kind": "reasoning", "id": "p2", "content": "hm"},
        ),
        (
            NOTICE,
            {"kind": "markdown", "id": "p3", "content": r"\*now\*"},
            {"kind": "systemNotification", "content": {"markdown": r"\*now\*"}},
        ),
        (TextPart("p3", "notice", "half"), None, None),
        (
            QUESTION,
            None,
            {
                "kind": "inputRequest",
                "request": {
                    "id": "q1",
                    "message": "Which?",
                    "questions": [{"kind": "text", "id": "answer", "message": "Which?"}],
                },
            },
        ),
    ],
    ids=["text", "reasoning", "a notice", "half a notice", "a question"],
)
def test_a_part_in_both_dialects(part: Any, seed: Json | None, modern: Json | None) -> None:
    assert parts.response_part(part, V1) == seed
    assert parts.response_part(part, V10) == modern


def kinds(of: TurnState, dialect: Dialect) -> list[str]:
    return [each["kind"] for each in parts.response_parts(of, dialect)]


@pytest.mark.parametrize(
    ("of", "since", "before"),
    [
        (turn(TEXT, outcome="failed", error=FAILED), ["markdown", "error"], ["markdown"]),
        (turn(TEXT, outcome="interrupted", error=FAILED), ["markdown", "error"], ["markdown"]),
        (turn(TEXT, outcome="completed"), ["markdown"], ["markdown"]),
        (turn(TEXT, THOUGHT, stops=[Stop(1, FAILED)]), ["markdown", "error", "reasoning"], ["markdown", "reasoning"]),
        (turn(TEXT, stops=[Stop(0, FAILED)]), ["error", "markdown"], ["markdown"]),
        (turn(TEXT, stops=[Stop(1, FAILED)]), ["markdown", "error"], ["markdown"]),
        (turn(TEXT, stops=[Stop(1, FAILED), Stop(1, FAILED)]), ["markdown", "error", "error"], ["markdown"]),
    ],
    ids=["failed", "interrupted", "completed", "stopped in between", "at the start", "at the end", "twice"],
)
def test_an_error_stands_where_the_turn_stopped(of: TurnState, since: list[str], before: list[str]) -> None:
    assert (kinds(of, V09), kinds(of, V08)) == (since, before)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (None, "failed"),
        (ErrorInfo("interrupted", "x"), "executionInterrupted"),
        (ErrorInfo("agent_died", "x"), "agent_died"),
    ],
)
def test_what_an_error_is_called(error: ErrorInfo | None, kind: str) -> None:
    """Editors show one of them as something to be expected, with a button to go on."""
    assert parts.error_info(error)["errorType"] == kind
    assert parts.error_part(error, turn())["resumable"] is True


FIELDS = [{"kind": "text", "id": "a", "message": "A?"}]


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (QuestionPart("q", "Which?"), "Which?"),
        (
            QuestionPart("q", "Which?", evidence=[{"type": "text", "title": "Log", "text": "x\n"}]),
            "Which?\n\n**Log**\n````\nx\n````",
        ),
        (
            QuestionPart("q", "Which?", evidence=[{"type": "diff", "title": "D", "text": "+x"}]),
            "Which?\n\n**D**\n````diff\n+x\n````",
        ),
        (QuestionPart("q", "Which?", evidence=[{"type": "image", "title": "Screen"}]), "Which?\n\n**Screen**"),
        (
            QuestionPart("q", "Which?", evidence=[{"type": "text", "title": "T", "text": "````"}]),
            "Which?\n\n**T**\n````\n\u200b````\n````",
        ),
    ],
    ids=["plain", "a log", "a diff", "a picture is named", "nothing ends the block early"],
)
def test_a_question_shows_its_evidence(part: QuestionPart, message: str) -> None:
    assert parts.request(part)["message"] == message


def test_a_question_with_fields_of_its_own() -> None:
    shown = parts.request(QuestionPart("q", "Which?", FIELDS, url="https://x", answers={"a": {"v": 1}}))
    assert shown == {
        "id": "q",
        "message": "Which?",
        "questions": FIELDS,
        "url": "https://x",
        "answers": {"a": {"v": 1}},
    }


SAID: Json = {"success": True, "pastTenseMessage": "Looked", "content": [{"type": "text", "text": "out"}]}


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        (SAID, True),
        ({**SAID, "success": False}, False),
        ({**SAID, "pastTenseMessage": {"markdown": "Looked"}}, False),
        ({**SAID, "_meta": {"x": 1}}, False),
        ({**SAID, "content": [*SAID["content"], {"type": "hologram"}]}, False),
    ],
    ids=["all is understood", "another end", "markdown", "something more", "content of no known kind"],
)
def test_whether_a_clients_words_have_to_be_kept(said: Json, plain: bool) -> None:
    understood = ToolResult(True, "out", None, [{"type": "text", "text": "out"}])
    assert parts.is_plain(said, understood, "Looked") is plain


def test_the_words_of_the_client_that_ran_it_come_first() -> None:
    assert parts.result(call(**DONE, result=SAID)) == SAID
    assert parts.provisional(call(ready=True), asked(result=True, proposed=SAID)) == SAID


def test_structured_content_has_a_field_of_its_own() -> None:
    part = call(**DONE, content=[{"type": "structured", "value": {"a": 1}}])
    assert parts.result(part)["structuredContent"] == {"a": 1}
    assert "structuredContent" not in parts.result(call(**DONE))
