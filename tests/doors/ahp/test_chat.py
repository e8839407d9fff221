"""The chat channel: what differs from version 1, and what differs between 0.7 and 1.0."""

from typing import Any

import pytest

from portico.doors.ahp.wire.versions import Dialect
from tests.doors.ahp.fixtures import dialect, fold

Json = dict[str, Any]
V7, V9, V10 = dialect("0.7.0"), dialect("0.9.0"), dialect("1.0.0")
EACH = pytest.mark.parametrize("spoken", [V7, V9, V10], ids=["0.7.0", "0.9.0", "1.0.0"])
HELLO = {"text": "Hello", "origin": {"kind": "user"}}
START, MODIFIED, NOW = "2026-01-01T00:00:00.000Z", "2025-12-31T00:00:00.000Z", "1970-01-01T00:00:09.999Z"
ERROR = {"errorType": "x", "message": "broke"}


def chat(*, status: int = 1, **fields: Any) -> Json:
    return {"resource": "ahp-chat:/c", "title": "T", "status": status, "modifiedAt": MODIFIED, "turns": [], **fields}


def running(*parts: Json, status: int = 8, **fields: Any) -> Json:
    turn = {"id": "t", "startedAt": START, "message": HELLO, "responseParts": list(parts)}
    return chat(status=status, activeTurn=turn, **fields)


def after(spoken: Dialect, state: Json, kind: str, /, **payload: Any) -> Json:
    changed = fold("chat", state, [{"type": f"chat/{kind}", **payload}], spoken)
    assert isinstance(changed, dict)
    return changed


def done(turn: str, **fields: Any) -> Json:
    return {"id": turn, "message": HELLO, "responseParts": [], "state": "complete", **fields}


def question(**fields: Any) -> Json:
    return {"kind": "inputRequest", "request": {"id": "r", "message": "?"}, **fields}


@EACH
def test_a_turn_starts(spoken: Dialect) -> None:
    started = after(spoken, chat(status=1 | 32 | 64), "turnStarted", turnId="t", startedAt=START, message=HELLO)
    modified = START if spoken.since("0.9.0") else NOW
    assert started == running(status=8 | 64) | {"modifiedAt": modified}


def test_only_1_0_ignores_the_replay_of_a_known_turn() -> None:
    said = running({"kind": "markdown", "id": "m", "content": "x"}, turns=[done("old")])
    for turn in ("t", "old"):
        assert after(V10, said, "turnStarted", turnId=turn, startedAt=START, message=HELLO) == said
        assert after(V9, said, "turnStarted", turnId=turn, startedAt=START, message=HELLO)["activeTurn"] == {
            "id": turn,
            "startedAt": START,
            "message": HELLO,
            "responseParts": [],
        }


@EACH
@pytest.mark.parametrize(("kind", "outcome"), [("turnComplete", "complete"), ("turnCancelled", "cancelled")])
def test_a_turn_ends_with_its_duration(spoken: Dialect, kind: str, outcome: str) -> None:
    ended = after(spoken, running(status=24 | 64), kind, turnId="t", duration=1500)
    modified = "2026-01-01T00:00:01.500Z" if spoken.since("0.9.0") else NOW
    turn = done("t", startedAt=START, duration=1500, state=outcome)
    assert ended == chat(status=1 | 64, turns=[turn], modifiedAt=modified)


def test_a_negative_duration_counts_as_none() -> None:
    assert after(V9, running(), "turnComplete", turnId="t", duration=-5)["modifiedAt"] == START


def test_a_turn_without_a_usable_start_leaves_the_time_alone() -> None:
    before = running()
    before["activeTurn"]["startedAt"] = "soon"
    assert after(V9, before, "turnComplete", turnId="t", duration=5)["modifiedAt"] == MODIFIED


def test_an_error_is_a_field_up_to_0_8_and_a_part_later() -> None:
    part = {"kind": "error", "error": ERROR, "resumable": True}
    said = {"kind": "markdown", "id": "m", "content": "x"}
    old = after(V7, running(said), "error", turnId="t", duration=1, error=ERROR, part=part)
    new = after(V9, running(said), "error", turnId="t", duration=1, error=ERROR, part=part)
    base = {"startedAt": START, "duration": 1, "state": "error"}
    assert old["turns"] == [done("t", **base, responseParts=[said], error=ERROR)]
    assert new["turns"] == [done("t", **base, responseParts=[said, part])]
    assert old["status"] == new["status"] == 2


def test_either_form_of_an_error_is_understood() -> None:
    part = {"kind": "error", "error": ERROR}
    assert after(V9, running(), "error", turnId="t", error=ERROR)["turns"][0]["responseParts"] == [part]
    assert after(V7, running(), "error", turnId="t", part=part)["turns"][0]["error"] == ERROR


def test_from_0_9_an_error_part_cannot_be_slipped_in() -> None:
    part = {"kind": "error", "error": ERROR}
    assert after(V9, running(), "responsePart", turnId="t", part=part) == running()
    assert after(V7, running(), "responsePart", turnId="t", part=part) == running(part)


def test_a_resumable_turn_is_taken_up_again() -> None:
    part = {"kind": "error", "error": ERROR, "resumable": True}
    failed = done("t", startedAt=START, duration=5, state="error", responseParts=[part])
    resumed = after(V9, chat(status=2 | 32, turns=[done("a"), failed]), "turnResume", turnId="t")
    assert resumed == running(part, turns=[done("a")])


@pytest.mark.parametrize(
    "state",
    [
        chat(),
        chat(turns=[done("t")]),
        chat(turns=[done("t", state="error")]),
        chat(turns=[done("t", state="error", responseParts=[{"kind": "error", "error": ERROR}])]),
        chat(turns=[done("t", state="error", responseParts=[{"kind": "error", "resumable": True}]), done("u")]),
        running(turns=[done("t", state="error", responseParts=[{"kind": "error", "resumable": True}])]),
    ],
)
def test_other_turns_are_not_taken_up(state: Json) -> None:
    assert after(V9, state, "turnResume", turnId="t") == state


@EACH
def test_a_question_stays_in_the_transcript(spoken: Dialect) -> None:
    answer = {"state": "submitted", "value": {"kind": "text", "value": "y"}}
    asked = after(spoken, running(status=8 | 32), "inputRequested", request={"id": "r", "message": "?"})
    modified = {"modifiedAt": MODIFIED if spoken.since("0.9.0") else NOW}
    assert asked == running(question(), status=24) | modified
    drafted = after(spoken, asked, "inputAnswerChanged", requestId="r", questionId="q", answer={"state": "skipped"})
    assert drafted["activeTurn"]["responseParts"][0]["request"]["answers"] == {"q": {"state": "skipped"}}
    answered = after(spoken, drafted, "inputCompleted", requestId="r", response="accept", answers={"p": answer})
    request = {"id": "r", "message": "?", "answers": {"q": {"state": "skipped"}, "p": answer}}
    assert answered == running({"kind": "inputRequest", "request": request, "response": "accept"}) | modified


@EACH
def test_an_answered_question_is_closed(spoken: Dialect) -> None:
    before = running(question(response="accept"))
    assert (
        after(spoken, before, "inputAnswerChanged", requestId="r", questionId="q", answer={"state": "skipped"})
        == before
    )
    assert after(spoken, before, "inputCompleted", requestId="r", response="decline") == before
    asked = after(spoken, before, "inputRequested", request={"id": "r", "message": "?"})
    assert asked["activeTurn"]["responseParts"] == [question(response="accept"), question()]
    assert asked["status"] == 24


def test_a_question_without_a_turn_is_nobodys() -> None:
    assert after(V7, chat(), "inputRequested", request={"id": "r"}) == chat()
    assert after(V7, chat(), "inputCompleted", requestId="r", response="accept") == chat()


@EACH
def test_one_of_two_questions_keeps_the_chat_waiting(spoken: Dialect) -> None:
    other = {"kind": "inputRequest", "request": {"id": "s"}}
    answered = after(spoken, running(question(), other, status=24), "inputCompleted", requestId="r", response="cancel")
    assert answered["status"] == 24


@EACH
def test_truncation(spoken: Dialect) -> None:
    before = running(question(), status=24 | 32, turns=[done("a"), done("b")], turnsNextCursor="next")
    modified = {"modifiedAt": MODIFIED if spoken.since("0.9.0") else NOW}
    assert after(spoken, before, "truncated", turnId="a") == (
        chat(status=1 | 32, turns=[done("a")], turnsNextCursor="next") | modified
    )
    assert after(spoken, before, "truncated") == chat(status=1 | 32) | modified
    assert after(spoken, before, "truncated", turnId="x") == before


def test_older_turns_are_put_before() -> None:
    page = [done("a"), done("b", state="cancelled")]
    loaded = after(V7, chat(turns=[done("b")], turnsNextCursor="1"), "turnsLoaded", turns=page, turnsNextCursor="2")
    assert loaded == chat(turns=[done("a"), done("b")], turnsNextCursor="2")


def test_a_draft_is_no_modification() -> None:
    assert after(V7, chat(), "draftChanged", draft=HELLO) == chat(draft=HELLO)
    assert after(V7, chat(draft=HELLO), "draftChanged") == chat()


def test_pending_messages_carry_the_modern_message() -> None:
    queued = after(V7, chat(), "pendingMessageSet", kind="queued", id="a", message=HELLO)
    assert queued == chat(queuedMessages=[{"id": "a", "message": HELLO}])
    changed = after(V7, queued, "pendingMessageSet", kind="queued", id="a", message={**HELLO, "text": "Bye"})
    assert changed == chat(queuedMessages=[{"id": "a", "message": {**HELLO, "text": "Bye"}}])
    steering = after(V7, chat(), "pendingMessageSet", kind="steering", id="s", message=HELLO)
    assert after(V7, steering, "pendingMessageRemoved", kind="steering", id="s") == chat()


def test_working_directories_are_a_set() -> None:
    one = after(V7, chat(), "workingDirectorySet", directory="file:///a")
    assert one == chat(workingDirectories=["file:///a"])
    assert after(V7, one, "workingDirectorySet", directory="file:///a") == one
    assert after(V7, one, "workingDirectoryRemoved", directory="file:///b") == one
    assert after(V7, one, "workingDirectoryRemoved", directory="file:///a") == chat(workingDirectories=[])


def test_usage_is_kept_with_the_turn() -> None:
    used = after(V7, running(), "usage", turnId="t", usage={"inputTokens": 3})
    assert after(V7, used, "turnComplete", turnId="t")["turns"][0]["usage"] == {"inputTokens": 3}


def test_a_1_0_chat_has_flags_changesets_canvases_and_background_work() -> None:
    assert after(V10, chat(status=8), "isReadChanged", isRead=True)["status"] == 8 | 32
    assert after(V10, chat(status=8 | 64), "isArchivedChanged", isArchived=False)["status"] == 8
    assert after(V10, chat(), "changesetsChanged", changesets=[{"label": "x"}])["changesets"] == [{"label": "x"}]
    assert after(V10, chat(changesets=[]), "changesetsChanged") == chat()
    assert after(V10, chat(), "movableChanged", movable=True) == chat(movable=True)
    assert after(V10, chat(), "canvasesChanged", canvases=[{"id": "x"}]) == chat(canvases=[{"id": "x"}])
    working = after(V10, chat(), "backgroundWorkSet", work={"id": "w", "label": "a"})
    assert after(V10, working, "backgroundWorkSet", work={"id": "w", "label": "b"})["backgroundWork"] == [
        {"id": "w", "label": "b"}
    ]
    assert after(V10, working, "backgroundWorkRemoved", id="x") == working
    assert after(V10, working, "backgroundWorkRemoved", id="w") == chat()
