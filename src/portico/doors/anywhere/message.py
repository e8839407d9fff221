"""`POST /message`: a chat, an agent run or a slash command; queued when the conversation is busy, never run twice."""

from typing import Literal

import msgspec
from msgspec import Struct
from starlette.requests import Request

from portico.features.chats.commands import SetDraft
from portico.features.projects.commands import OpenProject, Project
from portico.features.projects.projects import BUILT_IN, Projects
from portico.kernel.commands import Caller, Queued, SendMessage
from portico.kernel.decide.turn import check_message
from portico.kernel.errors import BadRequest, Conflict
from portico.kernel.events import Json, Message
from portico.kernel.state import DRAFT, Summary
from portico.server.app import App
from portico.server.body import decode_as
from portico.server.route import caller

STEPS_MAX = 1000
"""The ceiling of the setting `agent.max_steps`."""
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
    """It was not sent: it is shown in every input as a draft, and a person sends it."""


class AnywhereMessages:
    def __init__(self, app: App, projects: Projects) -> None:
        self._app = app
        self._host = app.host
        self._projects = projects

    async def post(self, request: Request) -> Sent:
        await self._projects.ready()
        data, who = await request.body(), caller(request)
        body = decode_as(data or b"{}", MessageBody)
        key = request.headers.get("idempotency-key")
        if key is not None and not 1 <= len(key) <= KEY_CHARS:
            raise BadRequest(f"An Idempotency-Key has 1 to {KEY_CHARS} characters.", field="Idempotency-Key")
        try:
            sent = await self._send(body, who.asking(f"message {key}") if key is not None else who)
        except Conflict as error:
            if error.field == "id":
                raise Conflict("This Idempotency-Key was used for another request.", field="Idempotency-Key") from None
            raise
        return msgspec.structs.replace(sent, accepted=True)

    # -- sending -----------------------------------------------------------------------------------------------

    async def _send(self, body: MessageBody, who: Caller) -> Sent:
        """Send a message. The id of each command is derived from the key: a repeated request gets the first results."""
        text = body.text if body.text is not None else body.message
        if text is None:
            raise BadRequest("A message needs 'text'.", field="text")
        if body.max_steps is not None and body.max_steps < 1:
            raise BadRequest("'maxSteps' is 1 or more.", field="maxSteps")
        project = self._projects.get(body.session_id)
        if body.mode == "draft" or self._app.settings.http.inject_into_chat:
            return await self._draft(project, text, body.agent, who)
        agent, message = self._read(text, body)
        check_message(message)
        clear = message.meta.get("command") == "clear"
        opened = OpenProject(project=project.id, agent=agent, clear=clear)
        session: Summary = await self._host.do(opened, who.step("open"))
        said = {field: getattr(message, field) for field in message.__struct_fields__}
        answer = await self._host.do(SendMessage(session=session.id, **said), who.step("send"))
        if isinstance(answer, Queued):
            return Sent(f"{session.id}.{answer.pending}", project.id, queued=True, position=answer.position)
        return Sent(f"{session.id}.{answer.turn}", project.id)

    async def _draft(self, project: Project, text: str, agent: str | None, who: Caller) -> Sent:
        check_message(Message(text))
        session: Summary = await self._host.do(OpenProject(project=project.id, agent=agent), who.step("open"))
        await self._host.do(SetDraft(session=session.id, text=text), who.step("send"))
        return Sent(f"{session.id}.{DRAFT}", project.id, draft=True)

    def _read(self, text: str, body: MessageBody) -> tuple[str | None, Message]:
        """Return the agent and the message."""
        meta: Json = {}
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
        # Only the built-in agent knows this command; for it, people see the text as it was sent.
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
