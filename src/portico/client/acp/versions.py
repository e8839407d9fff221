"""The versions of ACP that Portico speaks. A version is an entry of this table: its methods, what it requires and what
the agent offers in it."""

from collections.abc import Mapping
from dataclasses import dataclass

from acp.schema import (
    AgentCapabilities,
    AuthenticateRequest,
    CancelNotification,
    CloseSessionRequest,
    DeleteSessionRequest,
    ForkSessionRequest,
    InitializeRequest,
    ListSessionsRequest,
    LoadSessionRequest,
    McpCapabilities,
    NewSessionRequest,
    PromptCapabilities,
    PromptRequest,
    ResumeSessionRequest,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionDeleteCapabilities,
    SessionForkCapabilities,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionBooleanRequest,
    SetSessionConfigOptionSelectRequest,
    SetSessionModeRequest,
)
from pydantic import BaseModel

REQUIRED_1 = frozenset({"initialize", "authenticate", "session/new", "session/prompt"})
REQUIRED_2 = REQUIRED_1 | {"session/list", "session/resume", "session/close"}
"""The draft of version 2 makes these mandatory: an editor calls them without looking at the capabilities."""


@dataclass(frozen=True)
class VersionMethod:
    attr: str
    """The method of `HostAgent`."""
    models: tuple[type[BaseModel], ...]
    """Of its params. Of several, the first one that they fit."""


@dataclass(frozen=True)
class Version:
    number: int
    requests: Mapping[str, VersionMethod]
    notifications: Mapping[str, VersionMethod]
    capabilities: AgentCapabilities
    required: frozenset[str]

    def __post_init__(self) -> None:
        missing = sorted(self.required - self.requests.keys())
        if missing:
            raise TypeError(f"Version {self.number} requires {', '.join(missing)}.")


def _method(attr: str, *models: type[BaseModel]) -> VersionMethod:
    return VersionMethod(attr, models)


VERSION_1 = Version(
    number=1,
    requests={
        "initialize": _method("initialize", InitializeRequest),
        "authenticate": _method("authenticate", AuthenticateRequest),
        "session/new": _method("new_session", NewSessionRequest),
        "session/load": _method("load_session", LoadSessionRequest),
        "session/resume": _method("resume_session", ResumeSessionRequest),
        "session/fork": _method("fork_session", ForkSessionRequest),
        "session/close": _method("close_session", CloseSessionRequest),
        "session/delete": _method("delete_session", DeleteSessionRequest),
        "session/list": _method("list_sessions", ListSessionsRequest),
        "session/prompt": _method("prompt", PromptRequest),
        "session/set_mode": _method("set_session_mode", SetSessionModeRequest),
        "session/set_config_option": _method(
            "set_config_option", SetSessionConfigOptionBooleanRequest, SetSessionConfigOptionSelectRequest
        ),
    },
    notifications={"session/cancel": _method("cancel", CancelNotification)},
    capabilities=AgentCapabilities(
        load_session=True,
        prompt_capabilities=PromptCapabilities(image=True, audio=True, embedded_context=True),
        mcp_capabilities=McpCapabilities(http=True, sse=False),
        session_capabilities=SessionCapabilities(
            list=SessionListCapabilities(),
            fork=SessionForkCapabilities(),
            resume=SessionResumeCapabilities(),
            close=SessionCloseCapabilities(),
            delete=SessionDeleteCapabilities(),
            additional_directories=SessionAdditionalDirectoriesCapabilities(),
        ),
    ),
    required=REQUIRED_1,
)

VERSIONS: dict[int, Version] = {VERSION_1.number: VERSION_1}


def negotiated(asked: int) -> Version:
    """The newest version that both sides speak. An editor that asks for an older one than any gets the oldest, and
    decides for itself whether to continue."""
    return VERSIONS[max((number for number in VERSIONS if number <= asked), default=min(VERSIONS))]
