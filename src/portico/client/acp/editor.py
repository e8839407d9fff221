"""The editor as its sessions use it: updates, permissions and forms, as far as the editor supports them."""

from typing import Any, Literal, Protocol

from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    PermissionOption,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionNotification,
)
from msgspec import Struct

from portico.client.acp.connection import plain
from portico.kernel.events import Json


class EditorChannel(Protocol):
    """The part of a connection that is used here."""

    async def request(self, method: str, params: Json) -> Any: ...

    async def notify(self, method: str, params: Json) -> None: ...


class FormAnswer(Struct):
    """The editor's answer to `elicitation/create`."""

    action: Literal["accept", "decline", "cancel"]
    content: Json | None = None


class Editor:
    def __init__(self, channel: EditorChannel) -> None:
        self._channel = channel
        self.capabilities = ClientCapabilities()

    @property
    def has_forms(self) -> bool:
        offered = self.capabilities.elicitation
        return offered is not None and offered.form is not None

    @property
    def has_links(self) -> bool:
        offered = self.capabilities.elicitation
        return offered is not None and offered.url is not None

    @property
    def has_booleans(self) -> bool:
        session = self.capabilities.session
        return bool(session and session.config_options and session.config_options.boolean)

    @property
    def shows_terminals(self) -> bool:
        """Zed's extension: the output of a command arrives in `_meta` and is shown in a terminal of the editor."""
        return bool((self.capabilities.field_meta or {}).get("terminal_output"))

    async def update(self, session: str, update: Any) -> None:
        await self._channel.notify("session/update", plain(SessionNotification(session_id=session, update=update)))

    async def permission(self, session: str, call: Any, options: list[PermissionOption]) -> str | None:
        """Return the id of the chosen option; None if the editor dismissed the request."""
        request = RequestPermissionRequest(session_id=session, tool_call=call, options=options)
        answer = await self._channel.request("session/request_permission", plain(request))
        outcome = RequestPermissionResponse.model_validate(answer).outcome
        return outcome.option_id if isinstance(outcome, AllowedOutcome) else None

    async def elicit(self, params: Json) -> Json:
        answer: Json = await self._channel.request("elicitation/create", params)
        return answer
