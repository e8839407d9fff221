"""What clients send, after the schema v1-seed. Written by `tools/ahp_types.py`: change that."""

from typing import Any, Literal, NotRequired, TypedDict

from portico.doors.ahp.wire import types


class MessageAttachment(TypedDict):
    type: str
    uri: str
    displayName: NotRequired[str]


class UserMessage(TypedDict):
    text: str
    attachments: NotRequired[list[MessageAttachment]]


class SessionTurnStartedAction(TypedDict):
    session: NotRequired[str]
    turnId: str
    userMessage: UserMessage
    queuedMessageId: NotRequired[str]


class SessionToolCallConfirmedAction(TypedDict):
    session: NotRequired[str]
    turnId: str
    toolCallId: str
    _meta: NotRequired[dict[str, Any]]
    approved: bool
    confirmed: NotRequired[str]
    editedToolInput: NotRequired[str]
    selectedOptionId: NotRequired[str]
    reason: NotRequired[Literal["denied", "skipped"]]
    userSuggestion: NotRequired[UserMessage]
    reasonMessage: NotRequired[types.StringOrMarkdown]


class ToolResultResourceContent(TypedDict):
    uri: str
    sizeHint: NotRequired[int]
    contentType: NotRequired[str]
    type: Literal["resource"]


class ToolResultTerminalContent(TypedDict):
    type: Literal["terminal"]
    resource: str
    title: str


ToolResultContent = (
    types.ToolResultTextContent
    | types.ToolResultEmbeddedResourceContent
    | ToolResultResourceContent
    | types.ToolResultFileEditContent
    | ToolResultTerminalContent
    | types.ToolResultSubagentContent
)


class ToolCallResult(TypedDict):
    success: bool
    pastTenseMessage: types.StringOrMarkdown
    content: NotRequired[list[ToolResultContent]]
    structuredContent: NotRequired[dict[str, Any]]
    error: NotRequired[types.ToolCallResultError]


class SessionToolCallCompleteAction(TypedDict):
    session: NotRequired[str]
    turnId: str
    toolCallId: str
    _meta: NotRequired[dict[str, Any]]
    result: ToolCallResult
    requiresResultConfirmation: NotRequired[bool]


class SessionToolCallResultConfirmedAction(TypedDict):
    session: NotRequired[str]
    turnId: str
    toolCallId: str
    _meta: NotRequired[dict[str, Any]]
    approved: bool


class SessionToolCallContentChangedAction(TypedDict):
    session: NotRequired[str]
    turnId: str
    toolCallId: str
    _meta: NotRequired[dict[str, Any]]
    content: list[ToolResultContent]


class SessionTurnCancelledAction(TypedDict):
    session: NotRequired[str]
    turnId: str


class SessionTitleChangedAction(TypedDict):
    session: NotRequired[str]
    title: str


class ModelSelection(TypedDict):
    id: str
    config: NotRequired[dict[str, str]]


class SessionModelChangedAction(TypedDict):
    session: NotRequired[str]
    model: ModelSelection


class SessionIsReadChangedAction(TypedDict):
    session: NotRequired[str]
    isRead: bool


class SessionIsArchivedChangedAction(TypedDict):
    session: NotRequired[str]
    isArchived: bool


class SessionConfigChangedAction(TypedDict):
    session: NotRequired[str]
    config: dict[str, Any]
    replace: NotRequired[bool]


class CustomizationRef(TypedDict):
    uri: str
    displayName: NotRequired[str]
    description: NotRequired[str]
    icons: NotRequired[list[Any]]
    nonce: NotRequired[str]


class SessionActiveClient(TypedDict):
    clientId: str
    displayName: NotRequired[str]
    tools: NotRequired[list[types.ToolDefinition]]
    customizations: NotRequired[list[CustomizationRef]]


class SessionActiveClientChangedAction(TypedDict):
    session: NotRequired[str]
    activeClient: NotRequired[SessionActiveClient]


class SessionActiveClientToolsChangedAction(TypedDict):
    session: NotRequired[str]
    tools: list[types.ToolDefinition]


class SessionCustomizationToggledAction(TypedDict):
    session: NotRequired[str]
    uri: str
    enabled: bool


class SessionTruncatedAction(TypedDict):
    session: NotRequired[str]
    turnId: NotRequired[str]


class SessionInputAnswerChangedAction(TypedDict):
    session: NotRequired[str]
    requestId: str
    questionId: str
    answer: NotRequired[types.ChatInputAnswer]


class SessionInputCompletedAction(TypedDict):
    session: NotRequired[str]
    requestId: str
    response: str
    answers: NotRequired[dict[str, types.ChatInputAnswer]]


class SessionPendingMessageSetAction(TypedDict):
    session: NotRequired[str]
    kind: str
    id: str
    userMessage: UserMessage


class SessionPendingMessageRemovedAction(TypedDict):
    session: NotRequired[str]
    kind: str
    id: str


class SessionQueuedMessagesReorderedAction(TypedDict):
    session: NotRequired[str]
    order: list[str]


class TerminalInputAction(TypedDict):
    terminal: NotRequired[str]
    data: str


class TerminalResizedAction(TypedDict):
    terminal: NotRequired[str]
    cols: int
    rows: int


class TerminalSessionClaim(TypedDict):
    kind: Literal["session"]
    session: str
    turnId: NotRequired[str]
    toolCallId: NotRequired[str]


TerminalClaim = types.TerminalClientClaim | TerminalSessionClaim


class TerminalClaimedAction(TypedDict):
    terminal: NotRequired[str]
    claim: TerminalClaim


class TerminalTitleChangedAction(TypedDict):
    terminal: NotRequired[str]
    title: str


class TerminalClearedAction(TypedDict):
    terminal: NotRequired[str]


ACTIONS: dict[str, Any] = {
    "root/configChanged": types.RootConfigChangedAction,
    "session/turnStarted": SessionTurnStartedAction,
    "session/toolCallConfirmed": SessionToolCallConfirmedAction,
    "session/toolCallComplete": SessionToolCallCompleteAction,
    "session/toolCallResultConfirmed": SessionToolCallResultConfirmedAction,
    "session/toolCallContentChanged": SessionToolCallContentChangedAction,
    "session/turnCancelled": SessionTurnCancelledAction,
    "session/titleChanged": SessionTitleChangedAction,
    "session/modelChanged": SessionModelChangedAction,
    "session/isReadChanged": SessionIsReadChangedAction,
    "session/isArchivedChanged": SessionIsArchivedChangedAction,
    "session/configChanged": SessionConfigChangedAction,
    "session/activeClientChanged": SessionActiveClientChangedAction,
    "session/activeClientToolsChanged": SessionActiveClientToolsChangedAction,
    "session/customizationToggled": SessionCustomizationToggledAction,
    "session/truncated": SessionTruncatedAction,
    "session/inputAnswerChanged": SessionInputAnswerChangedAction,
    "session/inputCompleted": SessionInputCompletedAction,
    "session/pendingMessageSet": SessionPendingMessageSetAction,
    "session/pendingMessageRemoved": SessionPendingMessageRemovedAction,
    "session/queuedMessagesReordered": SessionQueuedMessagesReorderedAction,
    "terminal/input": TerminalInputAction,
    "terminal/resized": TerminalResizedAction,
    "terminal/claimed": TerminalClaimedAction,
    "terminal/titleChanged": TerminalTitleChangedAction,
    "terminal/cleared": TerminalClearedAction,
}
"""What a client may dispatch."""
