"""What clients send, after the schema v0.7.0. Written by `tools/ahp_types.py`: change that."""

from typing import Any, Literal, NotRequired, TypedDict


class RootConfigChangedAction(TypedDict):
    config: dict[str, Any]
    replace: NotRequired[bool]


class SessionTitleChangedAction(TypedDict):
    title: str


class ToolDefinition(TypedDict):
    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    inputSchema: NotRequired[dict[str, Any]]
    outputSchema: NotRequired[dict[str, Any]]
    annotations: NotRequired[Any]
    _meta: NotRequired[dict[str, Any]]


class TextPosition(TypedDict):
    line: int
    character: int


class TextRange(TypedDict):
    start: TextPosition
    end: TextPosition


class EnablementDecision(TypedDict):
    kind: str
    enabled: bool


class ClientPluginCustomization(TypedDict):
    id: NotRequired[str]
    uri: str
    name: NotRequired[str]
    icons: NotRequired[list[Any]]
    range: NotRequired[TextRange]
    _meta: NotRequired[dict[str, Any]]
    enabled: NotRequired[bool]
    clientId: NotRequired[str]
    load: NotRequired[Any]
    children: NotRequired[list[Any]]
    type: NotRequired[Literal["plugin"]]
    version: NotRequired[str]
    nonce: NotRequired[str]
    displayName: NotRequired[str]
    enablement: NotRequired[list[EnablementDecision]]
    childEnablement: NotRequired[dict[str, list[EnablementDecision]]]


class SessionActiveClient(TypedDict):
    clientId: str
    displayName: NotRequired[str]
    tools: NotRequired[list[ToolDefinition]]
    customizations: NotRequired[list[ClientPluginCustomization]]


class SessionActiveClientSetAction(TypedDict):
    activeClient: SessionActiveClient


class SessionActiveClientRemovedAction(TypedDict):
    clientId: str


class SessionWorkingDirectorySetAction(TypedDict):
    directory: str


class SessionWorkingDirectoryReplacedAction(TypedDict):
    directory: str
    replacement: str


class SessionCustomizationToggledAction(TypedDict):
    id: str
    enabled: NotRequired[bool]
    enablement: NotRequired[list[EnablementDecision]]


class SessionMcpServerStartRequestedAction(TypedDict):
    id: str


class SessionIsReadChangedAction(TypedDict):
    isRead: bool


class SessionIsArchivedChangedAction(TypedDict):
    isArchived: bool


class MessageOrigin(TypedDict):
    kind: str


class SimpleMessageAttachment(TypedDict):
    label: str
    range: NotRequired[TextRange]
    displayKind: NotRequired[str]
    _meta: NotRequired[dict[str, Any]]
    type: Literal["simple"]
    modelRepresentation: NotRequired[str]


class TextSelection(TypedDict):
    range: TextRange


class MessageEmbeddedResourceAttachment(TypedDict):
    label: str
    range: NotRequired[TextRange]
    displayKind: NotRequired[str]
    _meta: NotRequired[dict[str, Any]]
    type: Literal["embeddedResource"]
    data: str
    contentType: str
    selection: NotRequired[TextSelection]


class MessageResourceAttachment(TypedDict):
    label: str
    range: NotRequired[TextRange]
    displayKind: NotRequired[str]
    _meta: NotRequired[dict[str, Any]]
    uri: str
    sizeHint: NotRequired[int]
    contentType: NotRequired[str]
    nonce: NotRequired[str]
    type: Literal["resource"]
    selection: NotRequired[TextSelection]


class MessageAnnotationsAttachment(TypedDict):
    label: str
    range: NotRequired[TextRange]
    displayKind: NotRequired[str]
    _meta: NotRequired[dict[str, Any]]
    type: Literal["annotations"]
    resource: str
    annotationIds: NotRequired[list[str]]


class MessageChatAttachment(TypedDict):
    label: str
    range: NotRequired[TextRange]
    displayKind: NotRequired[str]
    _meta: NotRequired[dict[str, Any]]
    type: Literal["chat"]
    resource: str
    endTurn: NotRequired[str]


MessageAttachment = (
    SimpleMessageAttachment
    | MessageEmbeddedResourceAttachment
    | MessageResourceAttachment
    | MessageAnnotationsAttachment
    | MessageChatAttachment
)


class ModelSelection(TypedDict):
    id: str
    config: NotRequired[dict[str, str | float | bool | None]]


class AgentSelection(TypedDict):
    uri: str


class Message(TypedDict):
    text: str
    origin: NotRequired[MessageOrigin]
    attachments: NotRequired[list[MessageAttachment]]
    model: NotRequired[ModelSelection]
    agent: NotRequired[AgentSelection]
    _meta: NotRequired[dict[str, Any]]


class ChatTurnStartedAction(TypedDict):
    turnId: str
    startedAt: NotRequired[str]
    message: Message
    queuedMessageId: NotRequired[str]
    _meta: NotRequired[dict[str, Any]]


class StringOrMarkdownObject(TypedDict):
    markdown: str


StringOrMarkdown = str | StringOrMarkdownObject


class ChatToolCallConfirmedAction(TypedDict):
    turnId: str
    toolCallId: str
    _meta: NotRequired[dict[str, Any]]
    approved: bool
    confirmed: NotRequired[str]
    editedToolInput: NotRequired[str]
    selectedOptionId: NotRequired[str]
    reason: NotRequired[Literal["denied", "skipped"]]
    userSuggestion: NotRequired[Message]
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
    nonce: NotRequired[str]
    type: Literal["resource"]


class ToolResultFileEditContentDiff(TypedDict):
    added: NotRequired[float]
    removed: NotRequired[float]


class ToolResultFileEditContent(TypedDict):
    before: NotRequired[dict[str, Any]]
    after: NotRequired[dict[str, Any]]
    diff: NotRequired[ToolResultFileEditContentDiff]
    type: Literal["fileEdit"]


class TerminalCommandResult(TypedDict):
    exitCode: NotRequired[float]
    preview: NotRequired[str]
    truncated: NotRequired[bool]


class ToolResultTerminalContent(TypedDict):
    type: Literal["terminal"]
    resource: str
    title: str
    isPty: NotRequired[bool]
    result: NotRequired[TerminalCommandResult]


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


class ChatToolCallCompleteAction(TypedDict):
    turnId: str
    toolCallId: str
    _meta: NotRequired[dict[str, Any]]
    result: ToolCallResult
    requiresResultConfirmation: NotRequired[bool]


class ChatToolCallResultConfirmedAction(TypedDict):
    turnId: str
    toolCallId: str
    _meta: NotRequired[dict[str, Any]]
    approved: bool


class ChatToolCallContentChangedAction(TypedDict):
    turnId: str
    toolCallId: str
    _meta: NotRequired[dict[str, Any]]
    content: list[ToolResultContent]


class ChatTurnCancelledAction(TypedDict):
    turnId: str
    duration: NotRequired[float]
    _meta: NotRequired[dict[str, Any]]


class ChatTurnResumeAction(TypedDict):
    turnId: str


class ChatPendingMessageSetAction(TypedDict):
    kind: str
    id: str
    message: Message


class ChatPendingMessageRemovedAction(TypedDict):
    kind: str
    id: str


class ChatQueuedMessagesReorderedAction(TypedDict):
    order: list[str]


class ChatDraftChangedAction(TypedDict):
    draft: NotRequired[Message]


class ChatInputTextAnswerValue(TypedDict):
    kind: Literal["text"]
    value: str


class ChatInputNumberAnswerValue(TypedDict):
    kind: Literal["number"]
    value: float


class ChatInputBooleanAnswerValue(TypedDict):
    kind: Literal["boolean"]
    value: bool


class ChatInputSelectedAnswerValue(TypedDict):
    kind: Literal["selected"]
    value: str
    freeformValues: NotRequired[list[str]]


class ChatInputSelectedManyAnswerValue(TypedDict):
    kind: Literal["selected-many"]
    value: list[str]
    freeformValues: NotRequired[list[str]]


ChatInputAnswerValue = (
    ChatInputTextAnswerValue
    | ChatInputNumberAnswerValue
    | ChatInputBooleanAnswerValue
    | ChatInputSelectedAnswerValue
    | ChatInputSelectedManyAnswerValue
)


class ChatInputAnswered(TypedDict):
    state: Literal["draft", "submitted"]
    value: ChatInputAnswerValue


class ChatInputSkipped(TypedDict):
    state: Literal["skipped"]
    freeformValues: NotRequired[list[str]]


ChatInputAnswer = ChatInputAnswered | ChatInputSkipped


class ChatInputAnswerChangedAction(TypedDict):
    requestId: str
    questionId: str
    answer: NotRequired[ChatInputAnswer]


class ChatInputCompletedAction(TypedDict):
    requestId: str
    response: str
    answers: NotRequired[dict[str, ChatInputAnswer]]


class ChatTruncatedAction(TypedDict):
    turnId: NotRequired[str]


class ChangesetFilesReviewChangedAction(TypedDict):
    files: list[str]
    reviewed: bool


class AnnotationEntry(TypedDict):
    id: str
    text: StringOrMarkdown
    _meta: NotRequired[dict[str, Any]]


class Annotation(TypedDict):
    id: str
    turnId: NotRequired[str]
    resource: str
    range: NotRequired[TextRange]
    resolved: NotRequired[bool]
    entries: list[AnnotationEntry]
    _meta: NotRequired[dict[str, Any]]


class AnnotationsSetAction(TypedDict):
    annotation: Annotation


class AnnotationsUpdatedAction(TypedDict):
    annotationId: str
    turnId: NotRequired[str]
    resource: NotRequired[str]
    range: NotRequired[TextRange]
    resolved: NotRequired[bool]
    origin: NotRequired[dict[str, Any]]


class AnnotationsRemovedAction(TypedDict):
    annotationId: str


class AnnotationsEntrySetAction(TypedDict):
    annotationId: str
    entry: AnnotationEntry


class AnnotationsEntryRemovedAction(TypedDict):
    annotationId: str
    entryId: str


class TerminalInputAction(TypedDict):
    data: str


class TerminalResizedAction(TypedDict):
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
    chat: NotRequired[str]


TerminalClaim = TerminalClientClaim | TerminalSessionClaim


class TerminalClaimedAction(TypedDict):
    claim: TerminalClaim


class TerminalClearedAction(TypedDict):
    pass


class AutomationCreateRequestedAction(TypedDict):
    resource: str
    definition: dict[str, Any]


class AutomationUpdateRequestedAction(TypedDict):
    resource: str
    changes: dict[str, Any]


class AutomationRemovedAction(TypedDict):
    resource: str


class ForkChatSource(TypedDict):
    kind: Literal["fork"]
    chat: str
    turnId: str


class SideChatSelection(TypedDict):
    text: str
    responsePartId: NotRequired[str]


class SideChatSource(TypedDict):
    kind: Literal["sideChat"]
    chat: str
    turnId: str
    selection: NotRequired[SideChatSelection]


ChatSource = ForkChatSource | SideChatSource


class ChangesetOperationTargetResource(TypedDict):
    kind: Literal["resource"]
    resource: str
    side: NotRequired[str]


class ChangesetOperationTargetRange(TypedDict):
    kind: Literal["range"]
    resource: str
    side: NotRequired[str]
    range: TextRange


ChangesetOperationTarget = ChangesetOperationTargetResource | ChangesetOperationTargetRange


ACTIONS: dict[str, Any] = {
    "root/configChanged": RootConfigChangedAction,
    "session/titleChanged": SessionTitleChangedAction,
    "session/activeClientSet": SessionActiveClientSetAction,
    "session/activeClientRemoved": SessionActiveClientRemovedAction,
    "session/workingDirectorySet": SessionWorkingDirectorySetAction,
    "session/workingDirectoryRemoved": SessionWorkingDirectorySetAction,
    "session/workingDirectoryReplaced": SessionWorkingDirectoryReplacedAction,
    "session/customizationToggled": SessionCustomizationToggledAction,
    "session/mcpServerStartRequested": SessionMcpServerStartRequestedAction,
    "session/mcpServerStopRequested": SessionMcpServerStartRequestedAction,
    "session/mcpServerBackgroundRequested": SessionMcpServerStartRequestedAction,
    "session/isReadChanged": SessionIsReadChangedAction,
    "session/isArchivedChanged": SessionIsArchivedChangedAction,
    "session/configChanged": RootConfigChangedAction,
    "chat/turnStarted": ChatTurnStartedAction,
    "chat/toolCallConfirmed": ChatToolCallConfirmedAction,
    "chat/toolCallComplete": ChatToolCallCompleteAction,
    "chat/toolCallResultConfirmed": ChatToolCallResultConfirmedAction,
    "chat/toolCallContentChanged": ChatToolCallContentChangedAction,
    "chat/turnCancelled": ChatTurnCancelledAction,
    "chat/turnResume": ChatTurnResumeAction,
    "chat/workingDirectorySet": SessionWorkingDirectorySetAction,
    "chat/workingDirectoryRemoved": SessionWorkingDirectorySetAction,
    "chat/pendingMessageSet": ChatPendingMessageSetAction,
    "chat/pendingMessageRemoved": ChatPendingMessageRemovedAction,
    "chat/queuedMessagesReordered": ChatQueuedMessagesReorderedAction,
    "chat/draftChanged": ChatDraftChangedAction,
    "chat/inputAnswerChanged": ChatInputAnswerChangedAction,
    "chat/inputCompleted": ChatInputCompletedAction,
    "chat/truncated": ChatTruncatedAction,
    "chat/isReadChanged": SessionIsReadChangedAction,
    "chat/isArchivedChanged": SessionIsArchivedChangedAction,
    "changeset/filesReviewChanged": ChangesetFilesReviewChangedAction,
    "annotations/set": AnnotationsSetAction,
    "annotations/updated": AnnotationsUpdatedAction,
    "annotations/removed": AnnotationsRemovedAction,
    "annotations/entrySet": AnnotationsEntrySetAction,
    "annotations/entryRemoved": AnnotationsEntryRemovedAction,
    "terminal/input": TerminalInputAction,
    "terminal/resized": TerminalResizedAction,
    "terminal/claimed": TerminalClaimedAction,
    "terminal/titleChanged": SessionTitleChangedAction,
    "terminal/cleared": TerminalClearedAction,
    "automation/createRequested": AutomationCreateRequestedAction,
    "automation/updateRequested": AutomationUpdateRequestedAction,
    "automation/removed": AutomationRemovedAction,
    "automationRun/cancelRequested": TerminalClearedAction,
}
"""What a client may dispatch."""
