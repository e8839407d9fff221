"""The connection to one ACP process, shared by its conversations: framing, requests, and dispatch of messages.

The JSON-RPC engine is the SDK's; messages stay plain dictionaries, since agents send fields and kinds of updates that
no schema knows yet, and none of that may break a turn.
"""

import asyncio
import logging
from typing import Any, Protocol

from acp import PROTOCOL_VERSION
from acp.connection import Connection
from acp.exceptions import RequestError

from portico import __version__
from portico.agents.acp.error_text import wants_sign_in
from portico.agents.acp.frames import Frames
from portico.agents.supervisor import Connected, Process
from portico.kernel.errors import AgentDied, AgentError, NotFound, PorticoError, SignInRequired
from portico.kernel.events import Json

logger = logging.getLogger("portico.agents.acp")

AUTH_REQUIRED, NOT_FOUND, INTERNAL = -32000, -32002, -32603
_AUTH_STATUS = "_auth/status_update"
"""Claude's notification of the sign-in status, before the first session."""
_DEATH_SECONDS = 0.3
"""A dying process exits within this time after EOF on its output."""


class UpdateListener(Protocol):
    """A conversation, as its link sees it."""

    async def update(self, update: Json) -> None: ...

    async def serve(self, method: str, params: Json) -> Json: ...

    def expects(self, tool: str, arguments: Json) -> bool:
        """Whether the agent has announced this call of a session tool here."""


class AgentLink(Connected):
    def __init__(self, process: Process, *, files: bool = True, terminals: bool = True) -> None:
        super().__init__(process)
        self.about: Json = {}
        """The agent's answer to `initialize`."""
        self.says_signed_out = False
        """As reported by the agent (`_auth/status_update`). It need not know every way to sign in."""
        self.auth_known = asyncio.Event()
        """The agent has reported its sign-in status."""
        self._files = files
        self._terminals = terminals
        self._sessions: dict[str, UpdateListener] = {}
        self._frames = Frames(process, self._hear)
        self._connection = Connection(self._handle, self._frames)

    @property
    def usable(self) -> bool:
        return super().usable and not self._frames.ended

    @property
    def resumes(self) -> bool:
        return self.capability("loadSession") or self.capability("sessionCapabilities", "resume")

    @property
    def several_folders(self) -> bool:
        return self.capability("sessionCapabilities", "additionalDirectories")

    # -- requests to the agent ---------------------------------------------------------------------------------

    async def initialize(self) -> None:
        """Exchange names, versions and capabilities."""
        self.about = await self.request(
            "initialize",
            {
                "protocolVersion": PROTOCOL_VERSION,
                "clientCapabilities": {
                    "fs": {"readTextFile": self._files, "writeTextFile": self._files},
                    "terminal": self._terminals,
                    "elicitation": {"form": {}, "url": {}},
                },
                "clientInfo": {"name": "portico", "title": "Portico", "version": __version__},
            },
        )

    async def request(self, method: str, params: Json) -> Json:
        """Return the answer. Raises AgentDied as soon as the process exits, AgentError when the agent refuses."""
        try:
            result = await self.process.alive(self._connection.send_request(method, params))
        except RequestError as error:
            raise _refused(method, error, self.process.name) from error
        except ConnectionError as error:
            raise await self._lost() from error
        return result if isinstance(result, dict) else {}

    async def notify(self, method: str, params: Json) -> None:
        try:
            await self._connection.send_notification(method, params)
        except ConnectionError as error:
            raise await self._lost() from error

    async def _lost(self) -> AgentDied:
        """Its output ended. Usually the process has exited; one that only closed its output is not usable either."""
        await asyncio.wait({self.process.gone}, timeout=_DEATH_SECONDS)
        if not self.process.gone.done():
            return AgentDied(f"{self.process.name} closed its connection{self.process.last_words}")
        return AgentDied(self.process.reason)

    def capability(self, *path: str) -> bool:
        """Whether the agent has a capability. An empty object means yes: `{"sessionCapabilities": {"resume": {}}}`."""
        found: Any = self.about.get("agentCapabilities")
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found is not None and found is not False

    # -- dispatch ----------------------------------------------------------------------------------------------

    def join(self, session: str, ears: UpdateListener) -> None:
        self._sessions[session] = ears

    def part(self, session: str, ears: UpdateListener) -> None:
        if self._sessions.get(session) is ears:
            del self._sessions[session]

    def expected_elsewhere(self, ears: UpdateListener, tool: str, arguments: Json) -> bool:
        return any(each is not ears and each.expects(tool, arguments) for each in self._sessions.values())

    async def close(self) -> None:
        self._sessions.clear()
        await self._connection.close()

    async def _hear(self, params: Json) -> None:
        """Handle an update. An error in it, or in our code, must not close the connection: other sessions use it."""
        listener, update = self._sessions.get(str(params.get("sessionId"))), params.get("update")
        if listener is None or not isinstance(update, dict):
            return
        try:
            await listener.update(update)
        except Exception:  # any invalid update, or a bug in our handling of it
            logger.exception("%s: an update was not understood", self.process.name)

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Json | None:
        params = params if isinstance(params, dict) else {}
        ears = self._sessions.get(str(params.get("sessionId")))
        if is_notification:
            if method == _AUTH_STATUS and isinstance(status := params.get("authStatus"), dict):
                self.says_signed_out = status.get("kind") == "none"
                self.auth_known.set()
            return None
        if ears is None:
            raise RequestError.invalid_params({"details": f"no such session: {params.get('sessionId')!r}"})
        try:
            return await ears.serve(method, params)
        except PorticoError as error:
            if isinstance(error, NotFound):
                raise RequestError(NOT_FOUND, f"Resource not found: {error.name}", {"code": error.code}) from error
            raise RequestError(INTERNAL, error.message, {"code": error.code}) from error


def _refused(method: str, error: RequestError, name: str) -> AgentError:
    """Agents put the reason into the message or into the data, each its own way."""
    text = str(error).strip()
    reason = _reason(error.data)
    if reason and reason not in text:
        text = f"{text}: {reason}" if text else reason
    if error.code == AUTH_REQUIRED or wants_sign_in(text):
        return SignInRequired(f"{name} wants you to sign in: {text}")
    return AgentError(f"{name}: {text or f'{method} failed'} ({error.code})")


def _reason(data: Any) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, dict):
        for key in ("details", "message", "error", "reason"):
            if found := _reason(data.get(key)):
                return found
    return ""
