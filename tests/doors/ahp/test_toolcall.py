"""The tool-call state machine in both dialects, through the sessions and chats that hold the calls."""

from typing import Any

import pytest

from portico.doors.ahp.wire.versions import Dialect
from tests.doors.ahp.fixtures import V1, dialect, fold

Json = dict[str, Any]
MODERN = dialect("0.7.0")
BOTH = pytest.mark.parametrize("spoken", [V1, MODERN], ids=["1", "0.7.0"])
BASE = {"toolCallId": "c", "toolName": "bash", "displayName": "Run"}
RUNNING = {**BASE, "status": "running", "invocationMessage": "Run", "toolInput": "ls", "confirmed": "user-action"}
PENDING = {**BASE, "status": "pending-confirmation", "invocationMessage": "Run", "toolInput": "ls"}
REVIEW = {**RUNNING, "status": "pending-result-confirmation", "success": True, "pastTenseMessage": "Ran"}
COMPLETED = {**REVIEW, "status": "completed"}
CANCELLED = {**BASE, "status": "cancelled", "invocationMessage": "Run", "reason": "denied"}
STREAMING = {**BASE, "status": "streaming"}
AUTH = {**RUNNING, "status": "auth-required", "auth": {"reason": "required"}}
RESULT = {"success": True, "pastTenseMessage": "Ran"}


def holder(spoken: Dialect, call: Json, status: int) -> Json:
    turn = {"id": "t", spoken.message: {"text": "Hi"}, "responseParts": [{"kind": "toolCall", "toolCall": call}]}
    state: Json = {"turns": [], "activeTurn": turn}
    return {**state, "summary": {"status": status}} if spoken.seed else {**state, "status": status}


def step(spoken: Dialect, call: Json, kind: str, **payload: Any) -> tuple[Json, int]:
    """The call and the status after one action."""
    channel, state = ("session" if spoken.seed else "chat"), holder(spoken, call, 8 | 32)
    action = {"type": f"{channel}/{kind}", "turnId": "t", "toolCallId": "c", **payload}
    after = fold(channel, state, [action], spoken)  # type: ignore[arg-type]  # one of two literals
    return after["activeTurn"]["responseParts"][-1]["toolCall"], (after["summary"] if spoken.seed else after)["status"]


@BOTH
def test_a_call_starts_streaming(spoken: Dialect) -> None:
    extra = {"toolClientId": "me"} if spoken.seed else {"contributor": {"kind": "client", "clientId": "me"}}
    call, status = step(spoken, COMPLETED, "toolCallStart", toolName="n", displayName="N", _meta={"a": 1}, **extra)
    assert call == {
        "status": "streaming",
        "toolCallId": "c",
        "toolName": "n",
        "displayName": "N",
        "_meta": {"a": 1},
        **extra,
    }
    assert status == 8 | 32


@BOTH
def test_input_streams_in(spoken: Dialect) -> None:
    once, _ = step(spoken, STREAMING, "toolCallDelta", content='{"a":', invocationMessage="Working")
    twice, _ = step(spoken, once, "toolCallDelta", content="1}")
    assert twice == {**STREAMING, "partialInput": '{"a":1}', "invocationMessage": "Working"}


@BOTH
def test_ready_asks(spoken: Dialect) -> None:
    asked = {"confirmationTitle": "Sure?", "edits": {"items": []}, "editable": True, "options": [{"id": "y"}]}
    call, status = step(
        spoken, {**STREAMING, "partialInput": "l"}, "toolCallReady", invocationMessage="Run", toolInput="ls", **asked
    )
    assert call == {**PENDING, **asked}
    assert status == 24 | 32


@BOTH
def test_ready_and_confirmed_runs(spoken: Dialect) -> None:
    call, status = step(
        spoken, STREAMING, "toolCallReady", invocationMessage="Run", toolInput="ls", confirmed="setting"
    )
    assert call == {**RUNNING, "confirmed": "setting"}
    assert status == 8 | 32


@BOTH
def test_a_running_call_asks_again(spoken: Dialect) -> None:
    before = {**RUNNING, "content": [{"type": "text"}], "selectedOption": {"id": "y"}}
    call, status = step(spoken, before, "toolCallReady", invocationMessage="More", toolInput="rm")
    assert call == {**PENDING, "invocationMessage": "More", "toolInput": "rm"}
    assert status == 24 | 32


def test_only_the_modern_dialect_remembers_the_input_of_a_running_call() -> None:
    assert step(V1, RUNNING, "toolCallReady", invocationMessage="More")[0].get("toolInput") is None
    assert step(MODERN, RUNNING, "toolCallReady", invocationMessage="More")[0]["toolInput"] == "ls"


def test_only_the_modern_dialect_refines_a_question() -> None:
    before = {**PENDING, "options": [{"id": "y"}], "confirmationTitle": "Old", "riskAssessment": {"status": "loading"}}
    assert step(V1, before, "toolCallReady", invocationMessage="New") == (before, 8 | 32)
    call, _ = step(MODERN, before, "toolCallReady", invocationMessage="New", confirmationTitle="Sure?")
    assert call == {**before, "invocationMessage": "New", "confirmationTitle": "Sure?"}


def test_a_question_can_be_withdrawn_by_confirming_it() -> None:
    before = {**PENDING, "options": [{"id": "y"}], "edits": {"items": []}}
    call, _ = step(MODERN, before, "toolCallReady", invocationMessage="Run", confirmed="setting")
    assert call == {**RUNNING, "confirmed": "setting"}


@pytest.mark.parametrize("before", [COMPLETED, CANCELLED, REVIEW, AUTH], ids=lambda call: call["status"])
def test_ready_does_not_wake_other_calls(before: Json) -> None:
    assert step(MODERN, before, "toolCallReady", invocationMessage="New")[0] == before
    assert step(V1, before, "toolCallReady", invocationMessage="New")[0] == before


@BOTH
def test_approval_runs_with_the_edited_input_and_the_chosen_option(spoken: Dialect) -> None:
    before = {**PENDING, "options": [{"id": "y", "label": "Yes"}], "confirmationTitle": "Sure?"}
    call, status = step(
        spoken,
        before,
        "toolCallConfirmed",
        approved=True,
        confirmed="user-action",
        editedToolInput="ls -l",
        selectedOptionId="y",
    )
    assert call == {**RUNNING, "toolInput": "ls -l", "selectedOption": {"id": "y", "label": "Yes"}}
    assert status == 8 | 32


@BOTH
def test_an_option_nobody_offered_is_not_chosen(spoken: Dialect) -> None:
    call, _ = step(spoken, PENDING, "toolCallConfirmed", approved=True, confirmed="setting", selectedOptionId="z")
    assert call == {**RUNNING, "confirmed": "setting"}


def test_referenced_input_is_not_replaced_by_an_edit() -> None:
    before = {**PENDING, "toolInput": {"uri": "file:///x"}}
    call, _ = step(MODERN, before, "toolCallConfirmed", approved=True, confirmed="user-action", editedToolInput="y")
    assert call["toolInput"] == {"uri": "file:///x"}


@BOTH
@pytest.mark.parametrize("reason", ["denied", "skipped", "unheard-of"])
def test_denial_cancels(spoken: Dialect, reason: str) -> None:
    before = {**PENDING, "options": [{"id": "n"}], "edits": {"items": []}}
    why = {"reason": reason, "reasonMessage": "No", "userSuggestion": {"text": "Do that"}}
    call, status = step(spoken, before, "toolCallConfirmed", approved=False, selectedOptionId="n", **why)
    assert call == {**CANCELLED, "toolInput": "ls", "selectedOption": {"id": "n"}, **why}
    assert status == 8 | 32


@BOTH
def test_completion_takes_the_result_and_not_the_partial_content(spoken: Dialect) -> None:
    before = {**RUNNING, "content": [{"type": "text", "text": "half"}], "selectedOption": {"id": "y"}}
    result = {**RESULT, "structuredContent": {"a": 1}, "novel": True}
    call, status = step(spoken, before, "toolCallComplete", result=result)
    assert call == {**COMPLETED, "selectedOption": {"id": "y"}, "structuredContent": {"a": 1}, "novel": True}
    assert status == 8 | 32


@BOTH
def test_completion_before_confirmation_needed_none(spoken: Dialect) -> None:
    call, _ = step(spoken, {**PENDING, "options": [{"id": "y"}]}, "toolCallComplete", result=RESULT)
    assert call == {**COMPLETED, "confirmed": "not-needed"}


@BOTH
def test_a_result_may_need_review(spoken: Dialect) -> None:
    call, status = step(spoken, RUNNING, "toolCallComplete", result=RESULT, requiresResultConfirmation=True)
    assert call == REVIEW
    assert status == 24 | 32
    assert step(spoken, call, "toolCallResultConfirmed", approved=True) == (COMPLETED, 8 | 32)
    denied, _ = step(spoken, {**call, "selectedOption": {"id": "y"}}, "toolCallResultConfirmed", approved=False)
    assert denied == {**CANCELLED, "toolInput": "ls", "reason": "result-denied", "selectedOption": {"id": "y"}}


@BOTH
def test_a_result_cannot_rewrite_the_call(spoken: Dialect) -> None:
    forged = {**RESULT, "status": "running", "toolCallId": "other", "confirmed": "user-action", "call": 1, "auth": {}}
    call, _ = step(spoken, PENDING, "toolCallComplete", result=forged)
    assert call == {**COMPLETED, "confirmed": "not-needed", "call": 1}


@BOTH
@pytest.mark.parametrize("before", [STREAMING, REVIEW, COMPLETED, CANCELLED], ids=lambda call: call["status"])
def test_completion_of_other_calls_is_ignored(spoken: Dialect, before: Json) -> None:
    assert step(spoken, before, "toolCallComplete", result={**RESULT, "pastTenseMessage": "Again"})[0] == before


@BOTH
@pytest.mark.parametrize("before", [STREAMING, PENDING, COMPLETED, CANCELLED, REVIEW], ids=lambda call: call["status"])
def test_only_a_running_call_shows_content(spoken: Dialect, before: Json) -> None:
    assert step(spoken, before, "toolCallContentChanged", content=[{"type": "text"}])[0] == before


@BOTH
def test_content_is_replaced(spoken: Dialect) -> None:
    before = {**RUNNING, "content": [{"type": "terminal"}]}
    assert step(spoken, before, "toolCallContentChanged", content=[{"type": "text"}])[0]["content"] == [
        {"type": "text"}
    ]
    assert step(spoken, before, "toolCallContentChanged", content=[])[0]["content"] == []


@BOTH
@pytest.mark.parametrize("kind", ["toolCallConfirmed", "toolCallResultConfirmed", "toolCallDelta"])
def test_a_wrong_status_changes_nothing(spoken: Dialect, kind: str) -> None:
    payload = {"approved": True, "confirmed": "setting", "content": "x", "_meta": {"a": 1}}
    assert step(spoken, RUNNING, kind, **payload) == (RUNNING, 8 | 32)


def test_meta_of_an_action_replaces_that_of_the_call_in_the_modern_dialect() -> None:
    before = {**RUNNING, "_meta": {"old": 1}}
    assert step(MODERN, before, "toolCallContentChanged", content=[], _meta={"new": 2})[0]["_meta"] == {"new": 2}
    assert step(MODERN, before, "toolCallContentChanged", content=[])[0]["_meta"] == {"old": 1}
    assert step(V1, before, "toolCallContentChanged", content=[], _meta={"new": 2})[0]["_meta"] == {"old": 1}


def test_a_sign_in_pauses_only_mcp_calls() -> None:
    mcp = {**RUNNING, "contributor": {"kind": "mcp", "customizationId": "m"}, "content": [{"type": "text"}]}
    paused, status = step(MODERN, mcp, "toolCallAuthRequired", auth={"reason": "required"})
    assert paused == {**mcp, "status": "auth-required", "auth": {"reason": "required"}}
    assert status == 24 | 32
    assert step(MODERN, paused, "toolCallAuthResolved") == (mcp, 8 | 32)
    assert step(MODERN, RUNNING, "toolCallAuthRequired", auth={}) == (RUNNING, 8 | 32)
    assert step(MODERN, {**PENDING, "contributor": mcp["contributor"]}, "toolCallAuthRequired", auth={})[1] == 8 | 32


def test_giving_up_a_sign_in_is_final_and_keeps_partial_content() -> None:
    before = {**AUTH, "content": [{"type": "text", "text": "half"}]}
    failure = {"success": False, "pastTenseMessage": "Gave up"}
    call, status = step(MODERN, before, "toolCallComplete", result=failure, requiresResultConfirmation=True)
    assert call == {**COMPLETED, **failure, "content": [{"type": "text", "text": "half"}]}
    assert status == 8 | 32
    assert step(MODERN, before, "toolCallComplete", result=RESULT)[0] == before


@BOTH
@pytest.mark.parametrize("before", [STREAMING, PENDING, RUNNING, REVIEW], ids=lambda call: call["status"])
def test_the_end_of_a_turn_skips_what_is_open(spoken: Dialect, before: Json) -> None:
    channel = "session" if spoken.seed else "chat"
    state = holder(spoken, {**before, "selectedOption": {"id": "y"}, "novel": 1}, 24)
    ended = fold(channel, state, [{"type": f"{channel}/turnComplete", "turnId": "t"}], spoken)  # type: ignore[arg-type]
    expected = {**CANCELLED, "reason": "skipped", "toolInput": "ls", "novel": 1}
    if before is STREAMING:
        expected = {**BASE, "status": "cancelled", "reason": "skipped", "invocationMessage": "", "novel": 1}
    assert ended["turns"][0]["responseParts"] == [{"kind": "toolCall", "toolCall": expected}]


@BOTH
@pytest.mark.parametrize("before", [COMPLETED, CANCELLED], ids=lambda call: call["status"])
def test_the_end_of_a_turn_keeps_what_is_finished(spoken: Dialect, before: Json) -> None:
    channel = "session" if spoken.seed else "chat"
    action = {"type": f"{channel}/turnComplete", "turnId": "t"}
    ended = fold(channel, holder(spoken, before, 8), [action], spoken)  # type: ignore[arg-type]
    assert ended["turns"][0]["responseParts"][0]["toolCall"] == before
