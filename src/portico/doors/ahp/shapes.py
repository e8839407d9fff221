"""The shapes of what comes over the wire, as tables, and the check that reads them.

A check is for the fields we know: it names the first one that is missing or of the wrong type. Fields, union variants
and enum values that we do not know pass through as they are, so a newer peer loses nothing by talking to us. What a
client may dispatch is checked in full, because reducers trust the types they are given.

    "string" "number" "integer" "boolean" "object" "any"     the JSON types
    "[X]" "{X}"                                              a list of X, a map to X
    any other name                                           a row of RECORDS or UNIONS; a name we do not have is "any"

A field name that ends in `?` may be absent, and null counts as absent (except for "any", which may be null).
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import msgspec

from portico.doors.ahp.versions import Dialect
from portico.errors import BadRequest

Fields = dict[str, str]

RECORDS: dict[str, Fields] = {
    "JsonRpcRequest": {"jsonrpc": "string", "id": "any", "method": "string", "params?": "any"},
    "JsonRpcNotification": {"jsonrpc": "string", "method": "string", "params?": "any"},
    "JsonRpcSuccess": {"jsonrpc": "string", "id": "any", "result?": "any"},
    "JsonRpcFailure": {"jsonrpc": "string", "id?": "any", "error": "JsonRpcError"},
    "JsonRpcError": {"code": "integer", "message": "string", "data?": "any"},
    "ActionEnvelope": {
        "channel?": "string",
        "action": "StateAction",
        "serverSeq": "integer",
        "origin?": "ActionOrigin",
        "rejectionReason?": "string",
    },
    "ActionOrigin": {"clientId": "string", "clientSeq": "integer"},
    "StateAction": {"type": "string"},
    "Implementation": {"name": "string", "version?": "string", "title?": "string"},
    "InitializeResult": {
        "protocolVersion": "any",
        "serverSeq": "integer",
        "snapshots": "[Snapshot]",
        "serverInfo?": "Implementation",
        "defaultDirectory?": "string",
        "completionTriggerCharacters?": "[string]",
        "terminalCommandPrefix?": "string",
        "telemetry?": "object",
        "_meta?": "object",
    },
    "Snapshot": {"resource": "string", "state": "object", "fromSeq": "integer"},
    "SessionSummary": {
        "resource": "string",
        "provider": "string",
        "title": "string",
        "status": "SessionStatus",
        "createdAt": "any",
        "modifiedAt": "any",
        "activity?": "string",
        "project?": "object",
        "workingDirectories?": "[string]",
        "changes?": "object",
        "_meta?": "object",
    },
    "ErrorInfo": {"errorType": "string", "message": "string", "stack?": "string", "_meta?": "object"},
    "Markdown": {"markdown": "string"},
    "ContentRef": {"uri": "string", "sizeHint?": "integer", "contentType?": "string"},
    "ModelSelection": {"id": "string", "config?": "object"},
    "MessageOrigin": {"kind": "string"},
    "Message": {
        "text": "string",
        "origin?": "MessageOrigin",
        "attachments?": "[MessageAttachment]",
        "model?": "ModelSelection",
        "agent?": "AgentSelection",
        "_meta?": "object",
    },
    "AgentSelection": {"uri": "string"},
    "SimpleAttachment": {"label": "string", "modelRepresentation?": "string"},
    "EmbeddedAttachment": {"label": "string", "data": "string", "contentType": "string"},
    "ResourceAttachment": {"label": "string", "uri": "string", "sizeHint?": "integer", "contentType?": "string"},
    "AnnotationsAttachment": {"label": "string", "resource": "string", "annotationIds?": "[string]"},
    "ChatAttachment": {"label": "string", "resource": "string", "endTurn?": "string"},
    "UserMessage": {"text": "string", "attachments?": "[SeedAttachment]"},
    "SeedAttachment": {"type": "string", "uri": "string", "displayName?": "string"},
    "ForkSource": {"chat": "string", "turnId": "string"},
    "SideChatSource": {"chat": "string", "turnId": "string", "selection?": "SideChatSelection"},
    "SideChatSelection": {"text": "string", "responsePartId?": "string"},
    "ResourceTarget": {"resource": "string", "side?": "string"},
    "RangeTarget": {"resource": "string", "side?": "string", "range": "TextRange"},
    "TextRange": {"start": "TextPosition", "end": "TextPosition"},
    "TextPosition": {"line": "integer", "character": "integer"},
    "TextQuestion": {"id": "string", "message": "string", "defaultValue?": "string"},
    "NumberQuestion": {"id": "string", "message": "string", "defaultValue?": "number"},
    "BooleanQuestion": {"id": "string", "message": "string", "defaultValue?": "boolean"},
    "SelectQuestion": {"id": "string", "message": "string", "options": "[InputOption]"},
    "InputOption": {"id": "string", "label": "string", "description?": "string", "recommended?": "boolean"},
    "GivenAnswer": {"value": "AnswerValue"},
    "SkippedAnswer": {"freeformValues?": "[string]"},
    "TextValue": {"value": "string"},
    "NumberValue": {"value": "number"},
    "BooleanValue": {"value": "boolean"},
    "SelectedValue": {"value": "string", "freeformValues?": "[string]"},
    "SelectedManyValue": {"value": "[string]", "freeformValues?": "[string]"},
    "ContainerCustomization": {"id": "string", "uri": "string", "name": "string", "children?": "[object]"},
    "McpServerCustomization": {"id": "string", "uri": "string", "name": "string", "state": "object"},
    "EnablementDecision": {"kind": "string", "enabled": "boolean"},
    "ActiveClient": {
        "clientId": "string",
        "displayName?": "string",
        "tools?": "[Tool]",
        "customizations?": "[ClientPlugin]",
    },
    "ClientPlugin": {"uri": "string", "id?": "string", "name?": "string", "displayName?": "string", "nonce?": "string"},
    "Tool": {"name": "string", "title?": "string", "description?": "string", "inputSchema?": "object"},
    "ToolResult": {
        "success": "boolean",
        "pastTenseMessage": "StringOrMarkdown",
        "content?": "[ToolContent]",
        "structuredContent?": "object",
        "error?": "ToolError",
    },
    "ToolContent": {"type": "string"},
    "ToolError": {"message": "string", "code?": "string"},
    "Annotation": {"id": "string", "resource": "string", "entries": "[AnnotationEntry]", "resolved?": "boolean"},
    "AnnotationEntry": {"id": "string", "text": "string", "_meta?": "object"},
    "ClientClaim": {"clientId": "string"},
    "SessionClaim": {"session": "string", "chat?": "string", "turnId?": "string", "toolCallId?": "string"},
}

UNIONS: dict[str, tuple[str, Fields]] = {
    "MessageAttachment": (
        "type",
        {
            "simple": "SimpleAttachment",
            "embeddedResource": "EmbeddedAttachment",
            "resource": "ResourceAttachment",
            "annotations": "AnnotationsAttachment",
            "chat": "ChatAttachment",
        },
    ),
    "ChatSource": ("kind", {"fork": "ForkSource", "sideChat": "SideChatSource"}),
    "ChangesetOperationTarget": ("kind", {"resource": "ResourceTarget", "range": "RangeTarget"}),
    "ChatInputQuestion": (
        "kind",
        {
            "text": "TextQuestion",
            "number": "NumberQuestion",
            "integer": "NumberQuestion",
            "boolean": "BooleanQuestion",
            "single-select": "SelectQuestion",
            "multi-select": "SelectQuestion",
        },
    ),
    "Answer": ("state", {"draft": "GivenAnswer", "submitted": "GivenAnswer", "skipped": "SkippedAnswer"}),
    "AnswerValue": (
        "kind",
        {
            "text": "TextValue",
            "number": "NumberValue",
            "boolean": "BooleanValue",
            "selected": "SelectedValue",
            "selected-many": "SelectedManyValue",
        },
    ),
    "Customization": (
        "type",
        {
            "plugin": "ContainerCustomization",
            "directory": "ContainerCustomization",
            "mcpServer": "McpServerCustomization",
        },
    ),
    "Claim": ("kind", {"client": "ClientClaim", "session": "SessionClaim"}),
}

_TURN: Fields = {"turnId": "string"}
_CALL: Fields = {"turnId": "string", "toolCallId": "string", "_meta?": "object"}

_CONVERSATION: dict[str, Fields] = {
    "toolCallConfirmed": _CALL
    | {
        "approved": "boolean",
        "confirmed?": "string",
        "editedToolInput?": "string",
        "selectedOptionId?": "string",
        "reason?": "string",
        "reasonMessage?": "StringOrMarkdown",
    },
    "toolCallComplete": _CALL | {"result": "ToolResult", "requiresResultConfirmation?": "boolean"},
    "toolCallResultConfirmed": _CALL | {"approved": "boolean"},
    "toolCallContentChanged": _CALL | {"content": "[ToolContent]"},
    "turnCancelled": _TURN | {"duration?": "number"},
    "truncated": {"turnId?": "string"},
    "inputAnswerChanged": {"requestId": "string", "questionId": "string", "answer?": "Answer"},
    "inputCompleted": {"requestId": "string", "response": "string", "answers?": "{Answer}"},
    "pendingMessageRemoved": {"kind": "string", "id": "string"},
    "queuedMessagesReordered": {"order": "[string]"},
}
_CONFIG: Fields = {"config": "object", "replace?": "boolean"}
_BOTH: dict[str, Fields] = {
    "root/configChanged": _CONFIG,
    "session/configChanged": _CONFIG,
    "session/titleChanged": {"title": "string"},
    "session/isReadChanged": {"isRead": "boolean"},
    "session/isArchivedChanged": {"isArchived": "boolean"},
    "terminal/input": {"data": "string"},
    "terminal/resized": {"cols": "integer", "rows": "integer"},
    "terminal/claimed": {"claim": "Claim"},
    "terminal/titleChanged": {"title": "string"},
    "terminal/cleared": {},
}

SEED_PAYLOADS: dict[str, Fields] = {
    **_BOTH,
    **{f"session/{name}": fields for name, fields in _CONVERSATION.items()},
    "session/turnStarted": _TURN | {"userMessage": "UserMessage", "queuedMessageId?": "string"},
    "session/pendingMessageSet": {"kind": "string", "id": "string", "userMessage": "UserMessage"},
    "session/toolCallConfirmed": _CONVERSATION["toolCallConfirmed"] | {"userSuggestion?": "UserMessage"},
    "session/modelChanged": {"model": "ModelSelection"},
    "session/activeClientChanged": {"activeClient?": "ActiveClient"},
    "session/activeClientToolsChanged": {"tools": "[Tool]"},
    "session/customizationToggled": {"uri": "string", "enabled": "boolean"},
}

_DIRECTORY: Fields = {"directory": "string"}
PAYLOADS: dict[str, Fields] = {
    **_BOTH,
    **{f"chat/{name}": fields for name, fields in _CONVERSATION.items()},
    # Clients before 0.7 send no times, so the host adds what is missing.
    "chat/turnStarted": _TURN | {"startedAt?": "string", "message": "Message", "queuedMessageId?": "string"},
    "chat/turnResume": _TURN,
    "chat/toolCallConfirmed": _CONVERSATION["toolCallConfirmed"] | {"userSuggestion?": "Message"},
    "chat/pendingMessageSet": {"kind": "string", "id": "string", "message": "Message"},
    "chat/draftChanged": {"draft?": "Message"},
    "chat/workingDirectorySet": _DIRECTORY,
    "chat/workingDirectoryRemoved": _DIRECTORY,
    "chat/isReadChanged": {"isRead": "boolean"},
    "chat/isArchivedChanged": {"isArchived": "boolean"},
    "session/activeClientSet": {"activeClient": "ActiveClient"},
    "session/activeClientRemoved": {"clientId": "string"},
    "session/workingDirectorySet": _DIRECTORY,
    "session/workingDirectoryRemoved": _DIRECTORY,
    "session/workingDirectoryReplaced": _DIRECTORY | {"replacement": "string"},
    "session/customizationToggled": {"id": "string", "enabled?": "boolean", "enablement?": "[EnablementDecision]"},
    "session/mcpServerStartRequested": {"id": "string"},
    "session/mcpServerStopRequested": {"id": "string"},
    "session/mcpServerBackgroundRequested": {"id": "string"},
    "changeset/filesReviewChanged": {"files": "[string]", "reviewed": "boolean"},
    "annotations/set": {"annotation": "Annotation"},
    "annotations/updated": {
        "annotationId": "string",
        "turnId?": "string",
        "origin?": "object",
        "resource?": "string",
        "range?": "TextRange",
        "resolved?": "boolean",
    },
    "annotations/removed": {"annotationId": "string"},
    "annotations/entrySet": {"annotationId": "string", "entry": "AnnotationEntry"},
    "annotations/entryRemoved": {"annotationId": "string", "entryId": "string"},
    "automation/createRequested": {},
    "automation/updateRequested": {},
    "automation/removed": {"resource?": "string", "automation?": "string"},
    "automationRun/cancelRequested": {},
}


def decode(name: str, text: bytes | str) -> Any:
    """JSON text as a checked value of this shape."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"This is not JSON: {error}.") from error
    return check(name, value)


def encode(value: Any) -> bytes:
    return msgspec.json.encode(value)


def check(name: str, value: Any, at: str = "") -> Any:
    """`value` without the nulls that mean absent, or BadRequest with the path of the first wrong field."""
    if name[0] == "[":
        return [check(name[1:-1], entry, f"{at}[{index}]") for index, entry in enumerate(_typed("array", value, at))]
    if name[0] == "{":
        return {key: check(name[1:-1], entry, f"{at}.{key}") for key, entry in _typed("object", value, at).items()}
    if name in _SPECIAL:
        return _SPECIAL[name](value, at)
    if name in _TYPES:
        return _typed(name, value, at)
    if name in UNIONS:
        return _union(*UNIONS[name], _typed("object", value, at), at)
    return _record(_shape_of(name), _typed("object", value, at), at) if name in RECORDS else value


def check_action(dialect: Dialect, action: Any) -> dict[str, Any]:
    """An action as a client sent it. Types that no client may dispatch are only checked to be an action at all."""
    if not isinstance(action, dict) or not isinstance(action.get("type"), str):
        check("StateAction", action, "action")  # it says what is wrong
    return _record(_payload(action["type"], dialect.seed), action, "action")


class _Shape(NamedTuple):
    """A table, taken apart once: the shapes of its fields, and those that must be there."""

    fields: Fields
    required: frozenset[str]


def _shape(fields: Fields) -> _Shape:
    required = frozenset(name for name in fields if not name.endswith("?"))
    return _Shape({name.removesuffix("?"): shape for name, shape in fields.items()}, required)


@cache
def _shape_of(name: str) -> _Shape:
    return _shape(RECORDS[name])


_ANYTHING = _Shape({}, frozenset())


def _payload(kind: str, seed: bool) -> _Shape:
    return _payloads(seed).get(kind, _ANYTHING)


@cache
def _payloads(seed: bool) -> dict[str, _Shape]:
    return {kind: _shape(fields) for kind, fields in (SEED_PAYLOADS if seed else PAYLOADS).items()}


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


def _typed(name: str, value: Any, at: str) -> Any:
    if not isinstance(value, _TYPES[name]) or (isinstance(value, bool) and name != "boolean"):
        what = repr(at) if at else "The value"
        raise BadRequest(f"{what} must be of type {name}.", field=at or None)
    return value


def _record(shape: _Shape, value: dict[str, Any], at: str) -> dict[str, Any]:
    """The value itself when nothing has to go: every action of every client passes here."""
    fields, required = shape
    if not required <= value.keys():
        raise _missing(next(key for key in fields if key in required and key not in value), at)
    checked = value
    for key, found in value.items():
        kind = fields.get(key)
        if kind is None or kind == "any" or (kind == "string" and type(found) is str):
            continue
        if found is None:
            if key in required:
                raise _missing(key, at)
            checked = {name: each for name, each in checked.items() if name != key}
        elif (right := check(kind, found, f"{at}.{key}" if at else key)) is not found:
            checked = {**checked, key: right}
    return checked


def _missing(key: str, at: str) -> BadRequest:
    path = f"{at}.{key}" if at else key
    return BadRequest(f"{path!r} is missing.", field=path)


def _union(tag: str, variants: Fields, value: dict[str, Any], at: str) -> dict[str, Any]:
    path = f"{at}.{tag}" if at else tag
    kind = _typed("string", value.get(tag), path)
    return _record(_shape_of(variants[kind]), value, at) if kind in variants else value


def _string_or_markdown(value: Any, at: str) -> Any:
    return value if isinstance(value, str) else check("Markdown", value, at)


def _tool_input(value: Any, at: str) -> Any:
    return value if isinstance(value, str) else check("ContentRef", value, at)


def _status(value: Any, at: str) -> Any:
    return _typed("integer", value, at)


def _partial_summary(value: Any, at: str) -> Any:
    return _record(_shape_of("SessionSummary")._replace(required=frozenset()), _typed("object", value, at), at)


def _message(value: Any, at: str) -> Any:
    """A JSON-RPC message is told by its fields: it has no tag."""
    message = _typed("object", value, at)
    if "method" in message:
        return check("JsonRpcRequest" if "id" in message else "JsonRpcNotification", message, at)
    return check("JsonRpcFailure" if "error" in message else "JsonRpcSuccess", message, at)


_SPECIAL: dict[str, Callable[[Any, str], Any]] = {
    "StringOrMarkdown": _string_or_markdown,
    "ToolInput": _tool_input,
    "SessionStatus": _status,
    "PartialSessionSummary": _partial_summary,
    "JsonRpcMessage": _message,
}
