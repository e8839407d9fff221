"""What the reducers make is what the published schema of 0.7.0 describes."""

from typing import Any

from tests.doors.ahp.fixtures import conforms, dialect, fold, needs_fixtures

Json = dict[str, Any]
TIME = "2026-01-01T00:00:00.000Z"
HELLO = {"text": "Hello", "origin": {"kind": "user"}}
CALL = {"turnId": "t", "toolCallId": "c"}
STORY: list[Json] = [
    {"type": "chat/turnStarted", "turnId": "t", "startedAt": TIME, "message": HELLO},
    {"type": "chat/responsePart", "turnId": "t", "part": {"kind": "markdown", "id": "m", "content": ""}},
    {"type": "chat/delta", "turnId": "t", "partId": "m", "content": "Hi"},
    {"type": "chat/toolCallStart", **CALL, "toolName": "n", "displayName": "N"},
    {"type": "chat/toolCallDelta", **CALL, "content": "{"},
    {"type": "chat/toolCallReady", **CALL, "invocationMessage": "Run", "toolInput": "{}", "confirmationTitle": "?"},
    {"type": "chat/toolCallConfirmed", **CALL, "approved": True, "confirmed": "user-action"},
    {"type": "chat/toolCallContentChanged", **CALL, "content": [{"type": "text", "text": "half"}]},
    {"type": "chat/toolCallComplete", **CALL, "result": {"success": True, "pastTenseMessage": "Ran"}},
    {"type": "chat/inputRequested", "request": {"id": "r", "message": "?"}},
    {"type": "chat/inputCompleted", "requestId": "r", "response": "accept"},
    {"type": "chat/toolCallStart", "turnId": "t", "toolCallId": "d", "toolName": "n", "displayName": "N"},
    {"type": "chat/pendingMessageSet", "kind": "queued", "id": "q", "message": HELLO},
    {"type": "chat/usage", "turnId": "t", "usage": {"inputTokens": 1}},
    {"type": "chat/error", "turnId": "t", "duration": 5, "error": {"errorType": "x", "message": "no"}},
]


@needs_fixtures
def test_a_chat_conforms_at_every_step() -> None:
    state: Json = {"resource": "ahp-chat:/c", "title": "T", "status": 1, "modifiedAt": TIME, "turns": []}
    for action in STORY:
        state = fold("chat", state, [action], dialect("0.7.0"))
        conforms(state, "ChatState")
    assert [part["kind"] for part in state["turns"][0]["responseParts"]] == [
        "markdown",
        "toolCall",
        "inputRequest",
        "toolCall",
    ]
