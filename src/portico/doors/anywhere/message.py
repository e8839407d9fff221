"""`POST /message`: a chat, an agent run or a slash command; queued when the conversation is busy, never run twice."""

import asyncio
import hashlib
from typing import Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request

from portico.cache import Cache
from portico.commands import Caller, ClearProject, OpenProject, Project, Queued, SendMessage, SetDraft
from portico.doors.anywhere.identity import Idents, was_queued
from portico.doors.app import App
from portico.doors.body import decode_as
from portico.doors.route import caller
from portico.errors import BadRequest, Conflict
from portico.events import Json, Message
from portico.host.decide.turn import check_message
from portico.host.draft import DRAFT
from portico.host.state import PendingState, Summary, TurnState
from portico.projects.projects import BUILT_IN, Projects

STEPS_MAX = 1000
"""The ceiling of the setting `agent.max_steps`."""
KEYS_MAX = 10_000
"""Idempotency keys in memory; older ones are still found in the stored conversation."""
KEY_CHARS = 200
COMMANDS = ("files", "run", "clear", "diag", "agent")


class MessageBody(Struct, rename={"session_id": "sessionId", "max_steps": "maxSteps"}):
    text: str | None = None
    message: str | None = None
    session_id: str | None = None
    mode: Literal["agent", "chat", "draft"] | None = None
    max_steps: int | None = None
    model: str | None = None
    agent: str | None = None


class Sent(Struct, omit_defaults=True, rename={"session_id": "sessionId"}):
    id: str
    session_id: str
    accepted: bool | None = None
    queued: bool = False
    position: int | None = None
    draft: bool = False
    """It was not sent: it stands in every input, and a person sends it."""


class AnywhereMessages:
    def __init__(self, app: App, projects: Projects, idents: Idents) -> None:
        self._app = app
        self._host = app.host
        self._projects = projects
        self._idents = idents
        self._keys = Cache[str, tuple[str, asyncio.Future[Sent]]](KEYS_MAX)

    async def post(self, request: Request) -> Sent:
        await self._projects.ready()
        data, who = await request.body(), caller(request)
        body = decode_as(data or b"{}", MessageBody)
        key = request.headers.get("idempotency-key")
        if key is None:
            return _accepted(await self._send(body, who))
        if not 1 <= len(key) <= KEY_CHARS:
            raise BadRequest(f"An Idempotency-Key has 1 to {KEY_CHARS} characters.", field="Idempotency-Key")
        name = hashlib.sha256(f"{who.id}\0{key}".encode()).hexdigest()[:32]
        return _accepted(await self._once(name, hashlib.sha256(data).hexdigest()[:32], body, who))

    # -- once --------------------------------------------------------------------------------------------------

    async def _once(self, name: str, digest: str, body: MessageBody, who: Caller) -> Sent:
        """The first request with this key does it; the others get its answer, also those that come meanwhile."""
        known = self._keys.get(name)
        if known is not None:
            _check_same(known[0], digest)
            return await asyncio.shield(known[1])
        answer: asyncio.Future[Sent] = asyncio.get_running_loop().create_future()
        self._keys[name] = (digest, answer)
        try:
            sent = await self._before(name, digest, body, who)
            sent = sent or await self._send(body, who, {"key": name, "body": digest})
        except BaseException as error:
            # Nothing was started: the key is free again. Whoever waits meanwhile gets the same refusal.
            self._keys.pop(name, None)
            answer.set_exception(error if isinstance(error, Exception) else Conflict("The first request was given up."))
            answer.exception()
            raise
        answer.set_result(sent)
        return sent

    async def _before(self, name: str, digest: str, body: MessageBody, who: Caller) -> Sent | None:
        """A host before this one may have done it: the stored message carries the key."""
        project = self._projects.get(body.session_id)
        for ident in self._projects.sessions(project.id, self._app.view(who).owns, cleared=True):
            state = (await self._host.get(ident)).state
            sent: list[TurnState | PendingState] = [*state.turns, *state.queue]
            for each in sent:
                meta = each.message.meta
                if meta.get("key") == name:
                    _check_same(meta.get("body", digest), digest)
                    message = await self._idents.of(ident, each.id)
                    return Sent(message, project.id, queued=was_queued(message))
        return None

    # -- sending -----------------------------------------------------------------------------------------------

    async def _send(self, body: MessageBody, who: Caller, key: Json | None = None) -> Sent:
        text = body.text if body.text is not None else body.message
        if text is None:
            raise BadRequest("A message needs 'text'.", field="text")
        if body.max_steps is not None and body.max_steps < 1:
            raise BadRequest("'maxSteps' is 1 or more.", field="maxSteps")
        project = self._projects.get(body.session_id)
        if body.mode == "draft" or self._app.settings.http.inject_into_chat:
            return await self._draft(project, text, body.agent, who)
        agent, message = self._read(text, body, key)
        check_message(message)
        if message.meta.get("command") == "clear":
            await self._host.do(ClearProject(project=project.id), who)
        session: Summary = await self._host.do(OpenProject(project=project.id, agent=agent), who)
        said = {field: getattr(message, field) for field in message.__struct_fields__}
        answer = await self._host.do(SendMessage(session=session.id, **said), who)
        if isinstance(answer, Queued):
            return Sent(f"{session.id}.{answer.pending}", project.id, queued=True, position=answer.position)
        return Sent(f"{session.id}.{answer.turn}", project.id)

    async def _draft(self, project: Project, text: str, agent: str | None, who: Caller) -> Sent:
        check_message(Message(text))
        session: Summary = await self._host.do(OpenProject(project=project.id, agent=agent), who)
        await self._host.do(SetDraft(session=session.id, text=text), who)
        return Sent(f"{session.id}.{DRAFT}", project.id, draft=True)

    def _read(self, text: str, body: MessageBody, key: Json | None) -> tuple[str | None, Message]:
        """Whom it is for, and the message."""
        meta: Json = dict(key or {})
        if body.max_steps is not None:
            meta["maxSteps"] = min(body.max_steps, STEPS_MAX)
        command, argument = _command(text)
        prefix = self._app.settings.agent.prefix
        prefixed = bool(prefix) and text.lstrip().startswith(prefix)
        if prefixed and text.strip() == prefix:
            raise BadRequest(f"{prefix!r} needs a goal behind it.", field="text")
        goal = body.mode == "agent" or command == "agent" or prefixed
        if command is not None and command != "agent":
            meta |= {"command": command, "argument": argument}
            if command == "diag":
                meta["projects"] = [each.path for each in self._projects.all()]
            return self._built_in(None), Message(text, model=body.model, meta=meta)
        meta["mode"] = "agent" if goal else "chat"
        agent = self._built_in(body.agent) if goal else body.agent
        # Other agents do not know our command; the built-in one does, and people see what was sent.
        said = argument if command == "agent" and agent != BUILT_IN else text
        return agent, Message(said, model=body.model, meta=meta)

    def _built_in(self, agent: str | None) -> str:
        if agent is not None and agent != BUILT_IN:
            return agent
        if BUILT_IN not in self._host.agents:
            raise Conflict("The built-in agent is not among this host's agents; start it with --agent loop as well.")
        if not self._app.settings.agent.enabled:
            raise Conflict("The built-in agent is off. Set enabled = true in [agent] of the settings.")
        return BUILT_IN


def _command(text: str) -> tuple[str | None, str]:
    """Unknown ones are sent as text."""
    word, *rest = text.split(maxsplit=1) or [""]
    name, argument = word.removeprefix("/"), rest[0].strip() if rest else ""
    if not word.startswith("/") or name not in COMMANDS:
        return None, ""
    if name in ("run", "agent") and not argument:
        raise BadRequest(f"/{name} needs {'a command' if name == 'run' else 'a goal'}.", field="text")
    return name, argument


def _check_same(first: str, digest: str) -> None:
    if first != digest:
        raise Conflict("This Idempotency-Key was used for another request.", field="Idempotency-Key")


def _accepted(sent: Sent) -> Sent:
    return msgspec.structs.replace(sent, accepted=True)
