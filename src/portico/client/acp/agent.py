"""The agent side of ACP: translates requests of an editor into calls of the REST door."""

import functools
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from acp import RequestError
from acp.schema import (
    ClientCapabilities,
    CloseSessionResponse,
    DeleteSessionResponse,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptResponse,
    ResumeSessionResponse,
    SessionInfo,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)
from pydantic import BaseModel, ValidationError

from portico import __version__
from portico.client import Client
from portico.client.acp.editor import Editor, EditorChannel
from portico.client.acp.open_session import OpenSession
from portico.client.acp.options import AGENT, MODEL, SessionOptions
from portico.client.acp.prompt import message_of
from portico.client.acp.servers import EditorServer, client_servers
from portico.client.acp.versions import VersionMethod, negotiated
from portico.features.client_servers.commands import ClientServer
from portico.kernel.errors import PorticoError
from portico.kernel.state import SessionState, Summary

Servers = list[EditorServer] | None

LISTED = 50
"""Sessions per page of the list."""
_CODES = {"not_found": -32002, "bad_request": -32602, "too_large": -32602, "sign_in_required": -32000}
"""ACP's codes for errors of the host; any other error is an internal error."""

logger = logging.getLogger("portico.acp")

Asked = TypeVar("Asked", bound=Callable[..., Awaitable[Any]])


def refusing(method: Asked) -> Asked:
    """Convert errors of the host to ACP errors."""

    @functools.wraps(method)
    async def asked(*args: Any, **kwargs: Any) -> Any:
        try:
            return await method(*args, **kwargs)
        except PorticoError as error:
            code = _CODES.get(error.code, -32603)
            raise RequestError(code, error.message, {"code": error.code}) from error

    return asked  # type: ignore[return-value]


class HostAgent:
    def __init__(self, client: Client, agent: str | None = None, model: str | None = None) -> None:
        self.version = negotiated(1)
        self._client = client
        self._agent = agent
        self._model = model
        self._attached: dict[str, OpenSession] = {}
        self._brought: dict[str, list[ClientServer]] = {}
        """MCP servers of the editor, by session: the host loses them when it restarts."""
        self._editor: Editor | None = None

    def connect(self, channel: EditorChannel) -> None:
        self._editor = Editor(channel)

    async def close(self) -> None:
        """Detach from all sessions. Those without a message are deleted."""
        for each in list(self._attached):
            await self._detach(each)

    async def handle(self, method: str, params: Any, notification: bool) -> Any:
        """Run a request or a notification of the editor, by the table of the version that it speaks."""
        known = (self.version.notifications if notification else self.version.requests).get(method)
        if known is None:
            raise RequestError.method_not_found(method)
        model = _validated(known, params)
        given = {name: getattr(model, name) for name in type(model).model_fields if name != "field_meta"}
        return await getattr(self, known.attr)(**given)

    # -- the connection ----------------------------------------------------------------------------------------

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_: Any,
    ) -> InitializeResponse:
        assert self._editor is not None
        self.version = negotiated(protocol_version)
        self._editor.capabilities = client_capabilities or ClientCapabilities()
        return InitializeResponse(
            protocol_version=self.version.number,
            agent_capabilities=self.version.capabilities,
            agent_info=Implementation(name="portico", title="Portico", version=__version__),
            auth_methods=[],
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        """Do nothing: the host's token is in its private folder, which only the owner can read."""

    # -- sessions ----------------------------------------------------------------------------------------------

    @refusing
    async def new_session(
        self, cwd: str, additional_directories: list[str] | None = None, mcp_servers: Servers = None, **_: Any
    ) -> NewSessionResponse:
        folders = additional_directories or []
        started = await self._client.start(agent=self._agent, model=self._model, cwd=cwd, folders=folders, draft=True)
        await self._bring(started.id, mcp_servers)
        return NewSessionResponse(session_id=started.id, **_shown(await self._attach(await started.state())))

    @refusing
    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: Servers = None,
        additional_directories: list[str] | None = None,
        **_: Any,
    ) -> LoadSessionResponse:
        await self._bring(session_id, mcp_servers)
        return LoadSessionResponse(**_shown(await self._open(session_id, additional_directories, replay=True)))

    @refusing
    async def resume_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: Servers = None,
        **_: Any,
    ) -> ResumeSessionResponse:
        await self._bring(session_id, mcp_servers)
        return ResumeSessionResponse(**_shown(await self._open(session_id, additional_directories, replay=False)))

    @refusing
    async def fork_session(
        self,
        session_id: str,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: Servers = None,
        **_: Any,
    ) -> ForkSessionResponse:
        fork = await self._client.fork_session(session_id)
        await self._bring(fork.id, mcp_servers)
        return ForkSessionResponse(
            session_id=fork.id, **_shown(await self._open(fork.id, additional_directories, replay=False))
        )

    async def _bring(self, session: str, servers: Servers) -> None:
        """Give the session the MCP servers of this editor. An editor without any leaves those of another."""
        if brought := client_servers(servers or []):
            self._brought[session] = brought
            await self._bring_again(session)

    async def _bring_again(self, session: str) -> None:
        if (servers := self._brought.get(session)) is None:
            return
        try:
            await self._client.set_servers(session, servers)
        except PorticoError as error:
            if error.code != "forbidden":
                raise
            del self._brought[session]
            logger.warning("the MCP servers of the editor are not used: %s", error.message)

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        """Detach the editor from a session. In the host the session and its running turns stay."""
        await self._detach(session_id)
        return CloseSessionResponse()

    async def _detach(self, session: str) -> None:
        known = self._attached.pop(session, None)
        self._brought.pop(session, None)
        if known is not None:
            await known.leave()
            await known.discard_draft()

    @refusing
    async def delete_session(self, session_id: str, **_: Any) -> DeleteSessionResponse:
        """Delete a session from the host. One that does not exist is no error, as ACP requires."""
        await self._detach(session_id)
        try:
            await self._client.delete_session(session_id)
        except PorticoError as error:
            if error.code != "not_found":
                raise
        return DeleteSessionResponse()

    @refusing
    async def list_sessions(self, cwd: str | None = None, cursor: str | None = None, **_: Any) -> ListSessionsResponse:
        begin = int(cursor) if cursor is not None and cursor.isdecimal() else 0
        found = await self._client.sessions(children=False, archived=False)
        found = [each for each in found if cwd is None or each.cwd == cwd]
        page = found[begin : begin + LISTED]
        more = str(begin + LISTED) if len(found) > begin + LISTED else None
        return ListSessionsResponse(sessions=[_listed(each) for each in page], next_cursor=more)

    async def _open(self, session: str, folders: list[str] | None, *, replay: bool) -> OpenSession:
        state = await self._client.session(session).state()
        new = [each for each in folders or [] if each not in (state.cwd, *state.folders)]
        for folder in new:
            await self._client.add_folder(session, folder)
        if state.closed:
            await self._client.reopen_session(session)
        if state.closed or new:
            state = await self._client.session(session).state()
        return await self._attach(state, replay=replay)

    async def _attach(self, state: SessionState, *, replay: bool = False) -> OpenSession:
        assert self._editor is not None
        if (known := self._attached.pop(state.id, None)) is not None:
            await known.leave()
        booleans = self._editor.has_booleans
        agents = await self._client.agents()
        sandbox = await self._client.sandbox(session=state.id)
        options = SessionOptions(agents, state.agent, state.model, state.config, sandbox, booleans=booleans)
        made = OpenSession(self._editor, self._client, state.id, options)
        if replay:
            await made.replay(state)
        made.follow(state)
        self._attached[state.id] = made
        return made

    async def _get(self, session: str) -> OpenSession:
        """Return an open session. One that was lost because its host stopped is opened again."""
        known = self._attached.get(session)
        return known if known is not None and known.alive else await self._open(session, None, replay=False)

    # -- prompts and options -----------------------------------------------------------------------------------

    @refusing
    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        text, attachments = message_of(prompt)
        session = await self._get(session_id)
        await self._bring_again(session_id)
        return await session.prompt(text, attachments)

    async def cancel(self, session_id: str, **_: Any) -> None:
        known = self._attached.get(session_id)
        if known is not None:
            await known.cancel()

    @refusing
    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> SetSessionModeResponse:
        session = await self._get(session_id)
        await self._set(session_id, session.options, session.options.mode_key, mode_id)
        return SetSessionModeResponse()

    @refusing
    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        session = await self._get(session_id)
        await self._set(session_id, session.options, config_id, value)
        return SetSessionConfigOptionResponse(config_options=session.options.options())

    async def _set(self, session: str, options: SessionOptions, key: str, value: str | bool) -> None:
        chosen = options.value(key, value)
        if chosen is None:
            known = ", ".join(map(repr, options.values(key)))
            words = f"Should be one of {known}, not {value!r}." if known else "There is no such option."
            raise RequestError(-32602, f"{key}: {words}")
        if key == AGENT:
            summary = await self._client.choose_agent(session, str(chosen))
            options.agent, options.model = summary.agent, summary.model
        elif key == MODEL:
            await self._client.set_model(session, str(chosen))
            options.model = str(chosen)
        else:
            await self._client.configure_session(session, {key: chosen})
            options.config[key] = chosen


def _validated(method: VersionMethod, params: Any) -> BaseModel:
    """The params as the first of the method's models that they fit."""
    *others, last = method.models
    for model in others:
        try:
            return model.model_validate(params)
        except ValidationError:
            continue
    return last.model_validate(params)


def _listed(summary: Summary) -> SessionInfo:
    updated = datetime.fromtimestamp(summary.modified / 1000, UTC).isoformat()
    return SessionInfo(
        session_id=summary.id,
        cwd=summary.cwd,
        title=summary.title or None,
        updated_at=updated,
        additional_directories=summary.folders or None,
    )


def _shown(session: OpenSession) -> dict[str, Any]:
    """Return the modes and options that an editor can choose in a session."""
    return {"modes": session.options.modes(), "config_options": session.options.options()}
