"""The rows of the version 1 table, as a session sees them."""

from typing import Any

import pytest

from tests.doors.ahp.fixtures import NOW, V1, fold

Json = dict[str, Any]
HELLO = {"text": "Hello"}


def session(*, status: int = 1, **fields: Any) -> Json:
    summary = {"resource": "x:/1", "provider": "x", "title": "T", "status": status, "createdAt": 1, "modifiedAt": 2}
    return {"summary": summary, "lifecycle": "ready", "turns": [], **fields}


def running(*parts: Json, status: int = 8, **fields: Any) -> Json:
    turn = {"id": "t", "userMessage": HELLO, "responseParts": list(parts)}
    return session(status=status, activeTurn=turn, **fields)


def after(state: Json, kind: str, /, **payload: Any) -> Json:
    changed = fold("session", state, [{"type": f"session/{kind}", "session": "x:/1", **payload}], V1)
    assert isinstance(changed, dict)
    return changed


def summary(state: Json, **fields: Any) -> Json:
    return {**state["summary"], **fields}


def done(turn: str, **fields: Any) -> Json:
    return {"id": turn, "userMessage": HELLO, "responseParts": [], "state": "complete", **fields}


def test_ready_is_idle_and_nothing_else() -> None:
    before = session(status=24 | 32 | 64, lifecycle="creating")
    assert after(before, "ready") == {**before, "lifecycle": "ready", "summary": summary(before, status=1)}


def test_creation_failed() -> None:
    error = {"errorType": "x", "message": "no"}
    before = session(lifecycle="creating")
    assert after(before, "creationFailed", error=error) == {
        **before,
        "lifecycle": "creationFailed",
        "creationError": error,
    }


def test_a_turn_starts_unread_and_keeps_the_archived_flag() -> None:
    started = after(session(status=1 | 32 | 64), "turnStarted", turnId="t", userMessage=HELLO)
    assert started["activeTurn"] == {"id": "t", "userMessage": HELLO, "responseParts": []}
    assert started["summary"]["status"] == 8 | 64
    assert started["summary"]["modifiedAt"] == NOW


def test_a_turn_that_starts_replaces_the_active_one() -> None:
    started = after(
        running({"kind": "markdown", "id": "m", "content": "x"}), "turnStarted", turnId="u", userMessage=HELLO
    )
    assert started["activeTurn"]["id"] == "u"
    assert started["activeTurn"]["responseParts"] == []


def test_a_turn_takes_its_message_out_of_the_queue() -> None:
    queue = [{"id": "a", "userMessage": HELLO}, {"id": "b", "userMessage": HELLO}]
    before = session(queuedMessages=queue, steeringMessage={"id": "s", "userMessage": HELLO})
    started = after(before, "turnStarted", turnId="t", userMessage=HELLO, queuedMessageId="a")
    assert started["queuedMessages"] == queue[1:]
    assert started["steeringMessage"]["id"] == "s"


@pytest.mark.parametrize(
    ("kind", "state", "status"),
    [("turnComplete", "complete", 1), ("turnCancelled", "cancelled", 1), ("error", "error", 2)],
)
def test_a_turn_ends(kind: str, state: str, status: int) -> None:
    before = running(status=24 | 32 | 64, inputRequests=[{"id": "r"}])
    before["activeTurn"]["usage"] = {"inputTokens": 1}
    ended = after(before, kind, turnId="t", **({"error": {"message": "m"}} if kind == "error" else {}))
    turn = done("t", state=state, usage={"inputTokens": 1})
    if kind == "error":
        turn["error"] = {"message": "m"}
    assert ended["turns"] == [turn]
    assert "activeTurn" not in ended
    assert "inputRequests" not in ended
    assert ended["summary"] == summary(before, status=status | 32 | 64, modifiedAt=NOW)


@pytest.mark.parametrize("kind", ["turnComplete", "turnCancelled", "error", "usage", "responsePart", "toolCallStart"])
def test_a_wrong_or_missing_turn_changes_nothing(kind: str) -> None:
    """Cancelling with a wrong turn id once froze a chat."""
    for state in (running(), session()):
        assert after(state, kind, turnId="other", part={"kind": "markdown"}, usage={}, toolCallId="c") == state


def test_text_goes_to_the_first_part_of_that_id() -> None:
    parts = [{"kind": "markdown", "id": "m", "content": "a"}, {"kind": "markdown", "id": "m", "content": "b"}]
    changed = after(running(*parts), "delta", turnId="t", partId="m", content="!")
    assert [part["content"] for part in changed["activeTurn"]["responseParts"]] == ["a!", "b"]


@pytest.mark.parametrize(("kind", "part"), [("delta", "reasoning"), ("reasoning", "markdown")])
def test_text_does_not_cross_kinds(kind: str, part: str) -> None:
    state = running({"kind": part, "id": "m", "content": "a"})
    assert after(state, kind, turnId="t", partId="m", content="!") == state


def test_a_delta_without_part_does_not_find_parts_without_id() -> None:
    state = running({"kind": "markdown", "content": "a"})
    assert after(state, "delta", turnId="t", content="!") == state


@pytest.mark.parametrize(("field", "kind"), [("title", "titleChanged"), ("model", "modelChanged")])
def test_summary_fields_that_count_as_a_change(field: str, kind: str) -> None:
    value = "New" if field == "title" else {"id": "gpt"}
    before = session()
    assert after(before, kind, **{field: value})["summary"] == summary(before, **{field: value, "modifiedAt": NOW})


def test_activity_and_diffs_do_not_count_as_a_change() -> None:
    before = session()
    assert after(before, "activityChanged", activity="Thinking")["summary"] == summary(before, activity="Thinking")
    assert after(before, "diffsChanged", diffs=[])["summary"] == summary(before, diffs=[])


@pytest.mark.parametrize(
    ("kind", "field", "bit"), [("isReadChanged", "isRead", 32), ("isArchivedChanged", "isArchived", 64)]
)
def test_flags_are_set_and_cleared(kind: str, field: str, bit: int) -> None:
    assert after(session(status=8), kind, **{field: True})["summary"]["status"] == 8 | bit
    assert after(session(status=8 | bit), kind, **{field: False})["summary"]["status"] == 8


def test_meta_is_replaced_and_cleared() -> None:
    assert after(session(_meta={"a": 1}), "metaChanged", _meta={"b": 2})["_meta"] == {"b": 2}
    assert "_meta" not in after(session(_meta={"a": 1}), "metaChanged")


def test_tools_of_server_and_client() -> None:
    assert after(session(), "serverToolsChanged", tools=[{"name": "t"}])["serverTools"] == [{"name": "t"}]
    before = session(activeClient={"clientId": "c", "tools": []})
    assert after(before, "activeClientToolsChanged", tools=[{"name": "t"}])["activeClient"] == {
        "clientId": "c",
        "tools": [{"name": "t"}],
    }


def test_config_needs_a_config() -> None:
    assert after(session(), "configChanged", config={"a": 1}) == session()
    before = session(config={"schema": {}, "values": {"a": 1, "b": 2}})
    merged = after(before, "configChanged", config={"a": 3})
    assert merged["config"]["values"] == {"a": 3, "b": 2}
    assert merged["summary"]["modifiedAt"] == NOW
    assert after(before, "configChanged", config={"a": 3}, replace=True)["config"]["values"] == {"a": 3}


def test_customizations_are_replaced() -> None:
    assert after(session(customizations=[1]), "customizationsChanged", customizations=[])["customizations"] == []


def test_truncation_drops_what_is_running_and_waiting() -> None:
    before = running(status=24 | 32, turns=[done("a"), done("b")], inputRequests=[{"id": "r"}])
    cut = after(before, "truncated", turnId="a")
    assert cut == {**session(turns=[done("a")]), "summary": summary(before, status=1 | 32, modifiedAt=NOW)}
    assert after(before, "truncated", turnId="zzz") == before
    assert after(before, "truncated")["turns"] == []


def test_an_error_is_forgotten_by_truncation() -> None:
    assert after(session(status=2, turns=[done("a")]), "truncated")["summary"]["status"] == 1


def test_a_question_waits_until_it_is_answered() -> None:
    before = running(status=8 | 32)
    asked = after(before, "inputRequested", request={"id": "r", "message": "?"})
    assert asked["summary"] == summary(before, status=24, modifiedAt=NOW)
    twice = after(asked, "inputRequested", request={"id": "s"})
    once = after(twice, "inputCompleted", requestId="r", response="accept")
    assert once["inputRequests"] == [{"id": "s"}]
    assert once["summary"]["status"] == 24
    none = after(once, "inputCompleted", requestId="s", response="cancel")
    assert "inputRequests" not in none
    assert none["summary"]["status"] == 8


def test_drafts_come_and_go() -> None:
    draft = {"state": "draft", "value": {"kind": "text", "value": "x"}}
    before = session(status=24, inputRequests=[{"id": "r"}])
    drafted = after(before, "inputAnswerChanged", requestId="r", questionId="q", answer=draft)
    assert drafted["inputRequests"] == [{"id": "r", "answers": {"q": draft}}]
    assert drafted["summary"]["modifiedAt"] == NOW
    asked_again = after(drafted, "inputRequested", request={"id": "r", "message": "new"})
    assert asked_again["inputRequests"] == [{"id": "r", "message": "new", "answers": {"q": draft}}]
    assert after(drafted, "inputAnswerChanged", requestId="r", questionId="q")["inputRequests"] == [{"id": "r"}]


def test_an_idle_session_whose_question_is_answered_is_idle() -> None:
    before = session(status=24, inputRequests=[{"id": "r"}])
    assert after(before, "inputCompleted", requestId="r", response="decline")["summary"]["status"] == 1


def test_the_queue_keeps_what_a_stale_client_forgot() -> None:
    queue = [{"id": name, "userMessage": HELLO} for name in "abc"]
    changed = after(session(queuedMessages=queue), "queuedMessagesReordered", order=["c", "c", "x", "a"])
    assert [message["id"] for message in changed["queuedMessages"]] == ["c", "a", "b"]


def test_the_last_queued_message_takes_the_queue_with_it() -> None:
    before = session(queuedMessages=[{"id": "a", "userMessage": HELLO}])
    assert after(before, "pendingMessageRemoved", kind="queued", id="a") == session()


def test_a_pending_message_of_an_unknown_kind_is_ignored() -> None:
    assert after(session(), "pendingMessageSet", kind="telepathic", id="a", userMessage=HELLO) == session()
    assert after(session(), "pendingMessageRemoved", kind="telepathic", id="a") == session()
