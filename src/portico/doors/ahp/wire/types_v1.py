"""What clients send, after the schema v1-seed. Written by `tools/ahp_types.py`: change that."""

from typing import Any, Literal, NotRequired, TypedDict


class RootConfigChangedAction(TypedDict):
    type: Literal["root/configChanged"]
    config: dict[str, Any]
    replace: NotRequired[bool]


class MessageAttachment(TypedDict):
    type: str
    uri: str
    displayName: NotRequired[str]


class UserMessage(TypedDict):
    text: str
    attachments: NotRequired[list[MessageAttachment]]


class SessionTurnStartedAction(TypedDict):
    type: Literal["session/turnStarted"]
    session: NotRequired[str]
    turnId: str
    userMessage: UserMessage
    queuedMessageId: NotRequired[str]


class StringOrMarkdownObject(TypedDict):
    markdown: str


StringOrMarkdown = str | StringOrMarkdownObject


class SessionToolCallConfirmedAction(TypedDict):
    session: NotRequired[str]
    turnId: str
    toolCallId: str
    _meta: NotRequired[dict[str, Any]]
    type: Literal["session/toolCallConfirmed"]
    approved: bool
    confirmed: NotRequired[str]
    editedToolInput: NotRequired[str]
    selectedOptionId: NotRequired[str]
    reason: NotRequired[Literal["denied", "skipped"]]
    userSuggestion: NotRequired[UserMessage]
    reasonMessage: NotRequired[StringOrMarkdown]


class ToolResultTextContent(TypedDict):
    type: Literal["text"]
    text: str


class ToolResultEmbeddedResourceContent(TypedDict):
    type: Literal["embeddedResource"]
    data: str
    contentType: str


class ToolResultResourceContent(TypedDict):
    uri: str
    sizeHint: NotRequired[int]
    contentType: NotRequired[str]
    type: Literal["resource"]


class ToolResultFileEditContentDiff(TypedDict):
    added: NotRequired[float]
    removed: NotRequired[float]


class ToolResultFileEditContent(TypedDict):
    before: NotRequired[dict[str, Any]]
    after: NotRequired[dict[str, Any]]
    diff: NotRequired[ToolResultFileEditContentDiff]
    type: Literal["fileEdit"]


class ToolResultTerminalContent(TypedDict):
    type: Literal["terminal"]
    resource: str
    title: str


class ToolResultSubagentContent(TypedDict):
    type: Literal["subagent"]
    resource: str
    title: str
    agentName: NotRequired[str]
    description: NotRequired[str]


ToolResultContent = (
    ToolResultTextContent
    | ToolResultEmbeddedResourceContent
    | ToolResultResourceContent
    | ToolResultFileEditContent
    | ToolResultTerminalContent
    | ToolResultSubagentContent
)


class ToolCallResultError(TypedDict):
    message: str
    code: NotRequired[str]


class ToolCallResult(TypedDict):
    success: bool
    pastTenseMessage: StringOrMarkdown
    content: NotRequired[list[ToolResultContent]]
    structuredContent: NotRequired[dict[str, Any]]
    error: NotRequired[ToolCallResultError]


class SessionToolCallCompleteAction(TypedDict):
    session: NotRequired[str]
    turnId: str
    toolCallId: str
    _meta: NotRequired[dict[str, Any]]
    type: Literal["session/toolCallComplete"]
    result: ToolCallResult
    requiresResultConfirmation: NotRequired[bool]


class SessionToolCallResultConfirmedAction(TypedDict):
    session: NotRequired[str]
    turnId: str
    toolCallId: str
    _meta: NotRequired[dict[str, Any]]
    type: Literal["session/toolCallResultConfirmed"]
    approved: bool


class SessionToolCallContentChangedAction(TypedDict):
    session: NotRequired[str]
    turnId: str
    toolCallId: str
    _meta: NotRequired[dict[str, Any]]
    type: Literal["session/toolCallContentChanged"]
    content: list[ToolResultContent]


class SessionTurnCancelledAction(TypedDict):
    type: Literal["session/turnCancelled"]
    session: NotRequired[str]
    turnId: str


class SessionTitleChangedAction(TypedDict):
    type: Literal["session/titleChanged"]
    session: NotRequired[str]
    title: str


class ModelSelection(TypedDict):
    id: str
    config: NotRequired[dict[str, str]]


class SessionModelChangedAction(TypedDict):
    type: Literal["session/modelChanged"]
    session: NotRequired[str]
    model: ModelSelection


class SessionIsReadChangedAction(TypedDict):
    type: Literal["session/isReadChanged"]
    session: NotRequired[str]
    isRead: bool


class SessionIsArchivedChangedAction(TypedDict):
    type: Literal["session/isArchivedChanged"]
    session: NotRequired[str]
    isArchived: bool


class SessionConfigChangedAction(TypedDict):
    type: Literal["session/configChanged"]
    session: NotRequired[str]
    config: dict[str, Any]
    replace: NotRequired[bool]


class ToolDefinition(TypedDict):
    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    inputSchema: NotRequired[dict[str, Any]]
    outputSchema: NotRequired[dict[str, Any]]
    annotations: NotRequired[Any]
    _meta: NotRequired[dict[str, Any]]


class CustomizationRef(TypedDict):
    uri: str
    displayName: NotRequired[str]
    description: NotRequired[str]
    icons: NotRequired[list[Any]]
    nonce: NotRequired[str]


class SessionActiveClient(TypedDict):
    clientId: str
    displayName: NotRequired[str]
    tools: NotRequired[list[ToolDefinition]]
    customizations: NotRequired[list[CustomizationRef]]


class SessionActiveClientChangedAction(TypedDict):
    type: Literal["session/activeClientChanged"]
    session: NotRequired[str]
    activeClient: NotRequired[SessionActiveClient]


class SessionActiveClientToolsChangedAction(TypedDict):
    type: Literal["session/activeClientToolsChanged"]
    session: NotRequired[str]
    tools: list[ToolDefinition]


class SessionCustomizationToggledAction(TypedDict):
    type: Literal["session/customizationToggled"]
    session: NotRequired[str]
    uri: str
    enabled: bool


class SessionTruncatedAction(TypedDict):
    type: Literal["session/truncated"]
    session: NotRequired[str]
    turnId: NotRequired[str]


class SessionInputTextAnswerValue(TypedDict):
    kind: Literal["text"]
    value: str


class SessionInputNumberAnswerValue(TypedDict):
    kind: Literal["number"]
    value: float


class SessionInputBooleanAnswerValue(TypedDict):
    kind: Literal["boolean"]
    value: bool


class SessionInputSelectedAnswerValue(TypedDict):
    kind: Literal["selected"]
    value: str
    freeformValues: NotRequired[list[str]]


class SessionInputSelectedManyAnswerValue(TypedDict):
    kind: Literal["selected-many"]
    value: list[str]
    freeformValues: NotRequired[list[str]]


SessionInputAnswerValue = (
    SessionInputTextAnswerValue
    | SessionInputNumberAnswerValue
    | SessionInputBooleanAnswerValue
    | SessionInputSelectedAnswerValue
    | SessionInputSelectedManyAnswerValue
)


class SessionInputAnswered(TypedDict):
    state: Literal["draft", "submitted"]
    value: SessionInputAnswerValue


class SessionInputSkipped(TypedDict):
    state: Literal["skipped"]
    freeformValues: NotRequired[list[str]]


SessionInputAnswer = SessionInputAnswered | SessionInputSkipped


class SessionInputAnswerChangedAction(TypedDict):
    type: Literal["session/inputAnswerChanged"]
    session: NotRequired[str]
    requestId: str
    questionId: str
    answer: NotRequired[SessionInputAnswer]


class SessionInputCompletedAction(TypedDict):
    type: Literal["session/inputCompleted"]
    session: NotRequired[str]
    requestId: str
    response: str
    answers: NotRequired[dict[str, SessionInputAnswer]]


class SessionPendingMessageSetAction(TypedDict):
    type: Literal["session/pendingMessageSet"]
    session: NotRequired[str]
    kind: str
    id: str
    userMessage: UserMessage


class SessionPendingMessageRemovedAction(TypedDict):
    type: Literal["session/pendingMessageRemoved"]
    session: NotRequired[str]
    kind: str
    id: str


class SessionQueuedMessagesReorderedAction(TypedDict):
    type: Literal["session/queuedMessagesReordered"]
    session: NotRequired[str]
    order: list[str]


class TerminalInputAction(TypedDict):
    type: Literal["terminal/input"]
    terminal: NotRequired[str]
    data: str


class TerminalResizedAction(TypedDict):
    type: Literal["terminal/resized"]
    terminal: NotRequired[str]
    cols: int
    rows: int


class TerminalClientClaim(TypedDict):
    kind: Literal["client"]
    clientId: str


class TerminalSessionClaim(TypedDict):
    kind: Literal["session"]
    session: str
    turnId: NotRequired[str]
    toolCallId: NotRequired[str]


TerminalClaim = TerminalClientClaim | TerminalSessionClaim


class TerminalClaimedAction(TypedDict):
    type: Literal["terminal/claimed"]
    terminal: NotRequired[str]
    claim: TerminalClaim


class TerminalTitleChangedAction(TypedDict):
    type: Literal["terminal/titleChanged"]
    terminal: NotRequired[str]
    title: str


class TerminalClearedAction(TypedDict):
    type: Literal["terminal/cleared"]
    terminal: NotRequired[str]


ACTIONS: dict[str, Any] = {
    "root/configChanged": RootConfigChangedAction,
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
