"""Which actions exist, since when, and which of them a client may dispatch.

A host must not send an action type that the negotiated version does not know; the types that are not listed in
`_INTRODUCED` are as old as the oldest version we speak.
"""

from functools import lru_cache

from portico.doors.ahp.wire.versions import SEED, SUPPORTED, Dialect


def _named(channel: str, names: str) -> frozenset[str]:
    return frozenset(f"{channel}/{name}" for name in names.split())


SEED_ACTIONS = (
    _named("root", "agentsChanged activeSessionsChanged terminalsChanged configChanged")
    | _named(
        "session",
        "ready creationFailed turnStarted delta responsePart reasoning toolCallStart toolCallDelta toolCallReady"
        " toolCallConfirmed toolCallComplete toolCallResultConfirmed toolCallContentChanged turnComplete turnCancelled"
        " error titleChanged usage modelChanged isReadChanged isArchivedChanged activityChanged diffsChanged"
        " configChanged metaChanged serverToolsChanged activeClientChanged activeClientToolsChanged"
        " customizationsChanged customizationToggled truncated inputRequested inputAnswerChanged inputCompleted"
        " pendingMessageSet pendingMessageRemoved queuedMessagesReordered",
    )
    | _named(
        "terminal",
        "data input resized claimed titleChanged cwdChanged exited cleared commandDetectionAvailable commandExecuted"
        " commandFinished",
    )
)

_SEED_DISPATCHABLE = (
    _named("root", "configChanged")
    | _named(
        "session",
        "turnStarted toolCallConfirmed toolCallComplete toolCallResultConfirmed toolCallContentChanged turnCancelled"
        " titleChanged modelChanged isReadChanged isArchivedChanged configChanged activeClientChanged"
        " activeClientToolsChanged customizationToggled truncated inputAnswerChanged inputCompleted pendingMessageSet"
        " pendingMessageRemoved queuedMessagesReordered",
    )
    | _named("terminal", "input resized claimed titleChanged cleared")
)

ACTIONS = (
    _named("root", "agentsChanged activeSessionsChanged terminalsChanged configChanged")
    | _named(
        "session",
        "ready creationFailed chatAdded chatRemoved chatUpdated chatsReordered defaultChatChanged titleChanged"
        " isReadChanged isArchivedChanged activityChanged changesetsChanged serverToolsChanged activeClientSet"
        " activeClientRemoved workingDirectorySet workingDirectoryRemoved workingDirectoryReplaced inputNeededSet"
        " inputNeededRemoved customizationsChanged customizationToggled customizationUpdated customizationRemoved"
        " mcpServerStateChanged mcpServerStartRequested mcpServerStopRequested mcpServerBackgroundRequested"
        " configChanged metaChanged",
    )
    | _named(
        "chat",
        "turnStarted delta responsePart toolCallStart toolCallDelta toolCallReady toolCallConfirmed toolCallComplete"
        " toolCallResultConfirmed toolCallContentChanged toolCallAuthRequired toolCallAuthResolved turnComplete"
        " turnCancelled error turnResume activityChanged workingDirectorySet workingDirectoryRemoved usage reasoning"
        " truncated turnsLoaded pendingMessageSet pendingMessageRemoved queuedMessagesReordered draftChanged"
        " inputRequested inputAnswerChanged inputCompleted isReadChanged isArchivedChanged changesetsChanged"
        " backgroundWorkSet backgroundWorkRemoved movableChanged canvasesChanged",
    )
    | _named(
        "terminal",
        "data input resized claimed titleChanged cwdChanged exited cleared commandDetectionAvailable commandExecuted"
        " commandFinished",
    )
    | _named(
        "changeset",
        "statusChanged fileSet fileRemoved filesReviewChanged contentChanged operationsChanged operationStatusChanged"
        " cleared",
    )
    | _named("annotations", "set updated removed entrySet entryRemoved")
    | _named("resourceWatch", "changed")
    | _named("automation", "createRequested updateRequested set removed")
    | _named("automationRun", "lifecycleChanged sessionSet sessionRemoved primarySessionChanged cancelRequested")
)

_DISPATCHABLE = (
    _named("root", "configChanged")
    | _named(
        "session",
        "titleChanged activeClientSet activeClientRemoved workingDirectorySet workingDirectoryRemoved"
        " workingDirectoryReplaced customizationToggled mcpServerStartRequested mcpServerStopRequested"
        " mcpServerBackgroundRequested isReadChanged isArchivedChanged configChanged",
    )
    | _named(
        "chat",
        "turnStarted toolCallConfirmed toolCallComplete toolCallResultConfirmed toolCallContentChanged turnCancelled"
        " turnResume workingDirectorySet workingDirectoryRemoved pendingMessageSet pendingMessageRemoved"
        " queuedMessagesReordered draftChanged inputAnswerChanged inputCompleted truncated isReadChanged"
        " isArchivedChanged",
    )
    | _named("changeset", "filesReviewChanged")
    | _named("annotations", "set updated removed entrySet entryRemoved")
    | _named("terminal", "input resized claimed titleChanged cleared")
    | _named("automation", "createRequested updateRequested removed")
    | _named("automationRun", "cancelRequested")
)

_INTRODUCED: dict[str, frozenset[str]] = {
    "0.6.0": _named("chat", "toolCallAuthRequired toolCallAuthResolved"),
    "0.8.0": _named("session", "workingDirectoryReplaced"),
    "0.9.0": _named("chat", "turnResume") | frozenset(action for action in ACTIONS if action.startswith("automation")),
    "1.0.0": _named("session", "chatsReordered mcpServerBackgroundRequested")
    | _named(
        "chat",
        "isReadChanged isArchivedChanged changesetsChanged backgroundWorkSet backgroundWorkRemoved movableChanged"
        " canvasesChanged",
    ),
}

INTRODUCED_IN: dict[str, str] = dict.fromkeys(ACTIONS, SUPPORTED[-1]) | {
    action: version for version, actions in _INTRODUCED.items() for action in actions
}
"""The first version of the channel dialect that knows an action type."""


def knows(dialect: Dialect, action_type: str) -> bool:
    """Whether a client that speaks this dialect knows the action; others must not be sent to it."""
    if dialect.seed:
        return action_type in SEED_ACTIONS
    introduced = INTRODUCED_IN.get(action_type)
    return introduced is not None and dialect.since(introduced)


@lru_cache(maxsize=64)
def _known(version: str) -> frozenset[str]:
    dialect = Dialect(version, lambda: 0)
    return frozenset(action for action in SEED_ACTIONS | ACTIONS if knows(dialect, action))


def known(dialect: Dialect) -> frozenset[str]:
    """All action types for which `knows` holds; one set for all who speak this version."""
    return _known(dialect.version)


def dispatchable(dialect: Dialect) -> frozenset[str]:
    """Action types that a client may dispatch; only the host sends the others."""
    return _says(dialect.version)


@lru_cache(maxsize=64)
def _says(version: str) -> frozenset[str]:
    return _known(version) & (_SEED_DISPATCHABLE if version == SEED else _DISPATCHABLE)
