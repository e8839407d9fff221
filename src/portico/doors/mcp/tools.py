"""The MCP tools: tools that read, and one for each command of the table, with its scope and arguments."""

import asyncio
from functools import cache, partial
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from portico import command_shapes
from portico import commands as c
from portico.commands.caller import TOOL_SCOPES
from portico.doors.app import App
from portico.doors.mcp.automations import AutomationTools
from portico.doors.mcp.offer import Nothing
from portico.doors.route import Caller
from portico.errors import BadRequest, Forbidden
from portico.events import Json, ToolSpec
from portico.host.feature import Feature, ToolOffer
from portico.host.session import Session
from portico.host.state import CallPart, QuestionPart, SessionState, Summary, TextPart, TurnState
from portico.host.tool import ToolResult
from portico.sandbox.policy import MODES

WAIT_SECONDS = 50.0
"""How long one call waits: less than the minute after which many clients time out. The caller can wait again."""
_TURNS = 20
"""How many of the last turns are shown."""
_CHARS = 20_000
"""Maximum length of an answer or tool output: as much as a model can use."""


class SessionBody(Struct, forbid_unknown_fields=True, kw_only=True):
    session: str


class WaitBody(Struct, forbid_unknown_fields=True, kw_only=True):
    session: str
    wait: float = WAIT_SECONDS


class JobBody(Struct, forbid_unknown_fields=True, kw_only=True):
    id: str


_CONNECTED = "it is for clients that stay connected and lend tools"
_SCREEN = "a call has no screen to look at; sessions run commands"
_PERSON = "it says what a person does in a window"
_OWNER = "who else may look or drive, and with which tokens, is for people to say"
_SECRET = "it takes or shows a secret"
WITHOUT = {
    "client.identify": _CONNECTED,
    "client.join": _CONNECTED,
    "client.leave": _CONNECTED,
    "client.share": _CONNECTED,
    "call.report": _CONNECTED,
    "call.complete": _CONNECTED,
    "host.configure": _CONNECTED,
    "server.ask": "a program that can ask this host can ask its own servers",
    "terminal.open": _SCREEN,
    "terminal.input": _SCREEN,
    "terminal.resize": _SCREEN,
    "terminal.claim": _SCREEN,
    "terminal.rename": _SCREEN,
    "terminal.clear": _SCREEN,
    "terminal.close": _SCREEN,
    "draft.set": _PERSON,
    "question.draft": _PERSON,
    "session.read": _PERSON,
    "folder.choose": _PERSON,
    "session.share": _OWNER,
    "session.unshare": _OWNER,
    "queue.add": "send_message queues by itself",
    "automation.secret": _SECRET,
    "secret.set": _SECRET,
    "model.connect": _SECRET,
    "token.add": _SECRET,
    "own_token.add": _SECRET,
    "own_token.revoke": _OWNER,
    "agent.sign_in": _SECRET,
    "push.subscribe": _PERSON,
    "push.unsubscribe": _PERSON,
    "chat.move": _PERSON,
    "sign_in.decline": _PERSON,
    "sandbox.choose": "a model must not choose how it is confined",
}
"""Commands that are not offered as tools, and the reason."""

_Sandbox = Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["", *MODES]})]
_MORE: dict[type[c.Command], tuple[tuple[Any, ...], ...]] = {
    c.StartSession: (("fallback", list[str], msgspec.field(default_factory=list)), ("sandbox", _Sandbox, "")),
    c.SendMessage: (("wait", float, WAIT_SECONDS),),
    c.StartJob: (("cwd", str | None, None),),
}
"""Arguments of tools that add to those of their command or replace them."""
_FIXED: dict[type[c.Command], Json] = {c.StartSession: {"draft": True}, c.SendMessage: {"origin": "agent"}}
"""Arguments that a tool sets itself. A session in which a model writes nothing is not listed."""
_WORDS: dict[type[c.Command], str] = {
    c.StartSession: (
        "Returns its id. Those of fallback (agent or agent/model) take over if it cannot answer. sandbox: where its"
        " processes run (off, project or strict); empty: the host's default."
    ),
    c.SendMessage: "Waits (seconds) until the agent is done or needs somebody. If it still runs, call wait_session.",
    c.AnswerApproval: "Allows or denies a call that waits.",
    c.CreateAutomation: "plan: a trigger, such as schedule {cron, zone}, and a job {job, input} or prompt {text}.",
    c.AnswerQuestion: "With text, or, where it has several fields, with answers by their ids.",
}


@cache
def _body(kind: type[c.Command]) -> type[Struct]:
    more = _MORE.get(kind, ())
    without = [*(name for name, *_ in more), *_FIXED.get(kind, {})]
    return command_shapes.arguments(kind, *more, without=without, module=__name__) or Nothing


class HostTools:
    """For one caller: every command that does not need a window or a connection, and what can be read.

    What its scopes do not allow is not listed. Tools that answer, write files, open a shell or manage the host are
    listed only for a token that names them, and only they run with those scopes of the token."""

    def __init__(self, app: App, who: Caller) -> None:
        self._host = app.host
        self._jobs = app.jobs
        self._who = who
        self._view = app.view(who)
        offers = {
            "list_agents": ToolOffer("sessions", Nothing, self._agents, "The agents of this host with their models."),
            "list_sessions": ToolOffer("sessions", Nothing, self._sessions, "All sessions, newest first."),
            "wait_session": ToolOffer(
                "sessions", WaitBody, self._wait, "Waits until the agent is done or needs somebody."
            ),
            "read_session": ToolOffer("sessions", SessionBody, self._read, "What was said and done in a session."),
            "list_jobs": ToolOffer("jobs", Nothing, self._list_jobs, "Which jobs can be run, and which have run."),
            "read_job": ToolOffer("jobs", JobBody, self._read_job, "How a job stands."),
        }
        offers |= {
            command_shapes.method_name(kind): self._offer(kind)
            for name, kind in c.COMMANDS.items()
            if name not in WITHOUT and kind.as_tool is True
        }
        offers |= AutomationTools(app.automations).offers()
        for feature in app.host.parts:
            offers |= feature.tools(self._view) if isinstance(feature, Feature) else {}
        self._offers = {name: offer for name, offer in offers.items() if self._may(app, name, offer)}

    def _may(self, app: App, name: str, offer: ToolOffer) -> bool:
        """Return whether the caller may use a tool. Tools that only read need at most `read` or `jobs`, and show what
        the caller sees elsewhere."""
        view = self._view if isinstance(offer.needs, str) else app.view(self._who.with_tool(name))
        return view.may(offer.needs)

    def _offer(self, kind: type[c.Command]) -> ToolOffer:
        words = " ".join([c.sentence(kind), *([_WORDS[kind]] if kind in _WORDS else [])])
        return ToolOffer(kind, _body(kind), partial(self._do, kind), words, kind.about if kind.about != "host" else "")

    def specs(self) -> list[ToolSpec]:
        return [ToolSpec(name, offer.description, _schema(offer.body)) for name, offer in self._offers.items()]

    async def call(self, name: str, arguments: Json) -> ToolResult:
        offer = self._offers.get(name)
        if offer is None:
            raise Forbidden(f"Your token does not allow {name!r}.")
        if offer.subject and "id" in arguments and offer.subject not in arguments:
            arguments = {offer.subject: arguments["id"], **{k: v for k, v in arguments.items() if k != "id"}}
        try:
            body = msgspec.convert(arguments, offer.body)
        except msgspec.ValidationError as error:
            raise BadRequest(f"The arguments are not as expected: {error}") from None
        try:
            return ToolResult(True, msgspec.json.encode(await offer.run(body)).decode())
        except Forbidden as error:
            if self._who.with_tool(name) is self._who:
                raise
            words = f"{error.message} Of your token's scopes, this tool uses {', '.join(sorted(TOOL_SCOPES))} unless"
            raise Forbidden(f"{words} the token was created with --tool {name}.", field=error.field) from None

    # -- sessions ----------------------------------------------------------------------------------------------

    async def _agents(self, body: Nothing) -> list[Json]:
        return [
            {"id": info.id, "name": info.name, "models": [model.id for model in info.models], "missing": info.missing}
            for info in await self._host.describe()
        ]

    async def _sessions(self, body: Nothing) -> list[Json]:
        found = self._view.list(archived=False)[:100]
        return [{"id": each.id, "title": each.title, "agent": each.agent, "status": each.status} for each in found]

    async def _wait(self, body: WaitBody) -> Json:
        return await self._settle(await self._view.get(body.session), body.wait)

    async def _settle(self, session: Session, seconds: float) -> Json:
        """Wait until nothing runs, a person is needed, or the time limit is reached."""
        try:
            async with asyncio.timeout(min(max(seconds, 0), WAIT_SECONDS)):
                await session.wait_until(_resting)
        except TimeoutError:
            pass  # the returned state shows that it still runs
        self._view.check(session.id, "read")  # it may not be shared with them any more
        return _standing(session.state)

    async def _read(self, body: SessionBody) -> Json:
        state = (await self._view.get(body.session)).state
        queue = [{"pending": each.id, "text": each.message.text[:_CHARS]} for each in state.queue]
        turns = [_told(turn) for turn in state.turns[-_TURNS:]]
        return {**_standing(state), "turns": turns, **({"queue": queue} if queue else {})}

    # -- jobs --------------------------------------------------------------------------------------------------

    async def _list_jobs(self, body: Nothing) -> Json:
        jobs = self._jobs
        seen = self._view.jobs(jobs.history())
        return {"jobs": sorted(jobs.entry.jobs), "history": [_job(each) for each in seen[-20:]]}

    async def _read_job(self, body: JobBody) -> Json:
        return _job(self._view.job(self._jobs.job(body.id)))

    # -- commands ----------------------------------------------------------------------------------------------

    async def _do(self, kind: type[c.Command], body: Struct) -> Any:
        said = {name: getattr(body, name) for name in body.__struct_fields__}
        wait = said.pop("wait", WAIT_SECONDS)
        if fallback := said.pop("fallback", None):
            said["config"] = {**said["config"], "fallback": fallback}
        if sandbox := said.pop("sandbox", None):
            said["config"] = {**said["config"], "sandbox": sandbox}
        said |= _FIXED.get(kind, {})
        if kind is c.StartJob:
            said |= {"cwd": said["cwd"] or str(self._host.default_folder()), "strict": False}
        command = kind(**said)
        who = self._who.with_tool(command_shapes.method_name(kind))
        return await self._told(command, await self._host.do(command, who), wait)

    async def _told(self, command: c.Command, answer: Any, wait: float) -> Any:
        match command:
            case c.SendMessage(session=session):
                return await self._settle(await self._host.get(session), wait)
            case c.StartSession() | c.ForkSession():
                return {"session": answer.id, "agent": answer.agent, "model": answer.model}
            case c.AnswerQuestion(question=question):
                return {"question": question}
            case c.StartJob() | c.ResumeJob() | c.RetryJob():
                return _job(self._jobs.job(answer.job))
            case c.StopJob(job=job):
                return _job(self._jobs.job(job))
        return _standing((await self._host.get(answer.id)).state) if isinstance(answer, Summary) else answer


def _job(summary: Any) -> Json:
    told: Json = msgspec.to_builtins(summary)
    return {key: value for key, value in told.items() if key not in ("pos", "by")}


def _resting(state: SessionState) -> bool:
    return state.active is None or bool(_needs(state.active))


def _needs(turn: TurnState) -> list[Json]:
    """Return the requests that wait for a person."""
    needs: list[Json] = []
    for part in turn.parts:
        if isinstance(part, CallPart) and (waiting := part.approval) is not None:
            about = {"command": waiting.command, "path": waiting.path, "diff": waiting.diff, "input": waiting.input}
            shown = {key: value[:_CHARS] for key, value in about.items() if value}
            needs.append({"approval": waiting.id, "tool": part.tool, "title": waiting.title, **shown})
        elif isinstance(part, QuestionPart) and not part.done:
            needs.append({"question": part.id, "text": part.text, "fields": part.fields})
    return needs


def _standing(state: SessionState) -> Json:
    if state.active is not None:
        needs = _needs(state.active)
        return {"session": state.id, "status": "waiting" if needs else "running", "needs": needs}
    last = state.turns[-1] if state.turns else None
    standing: Json = {"session": state.id, "status": "idle"}
    if last is not None:
        standing |= {"outcome": last.outcome, "answer": _answer_of(last)}
        if last.error is not None:
            standing["error"] = last.error.message
    return standing


def _answer_of(turn: TurnState) -> str:
    texts = [part.text for part in turn.parts if isinstance(part, TextPart) and part.kind == "text"]
    return "\n\n".join(texts)[-_CHARS:]


def _told(turn: TurnState) -> Json:
    calls = [
        {"tool": part.tool, "title": part.title, "outcome": part.outcome, "output": part.output[:1000]}
        for part in turn.parts
        if isinstance(part, CallPart)
    ]
    return {"prompt": turn.message.text[:_CHARS], "answer": _answer_of(turn), "calls": calls, "outcome": turn.outcome}


def _schema(body: type[Struct]) -> Json:
    """Return a flat JSON Schema: some agents do not resolve references."""
    (_, definitions) = msgspec.json.schema_components([body], ref_template="{name}")
    schema: Json = _flat(definitions[body.__name__], definitions)
    schema.pop("title", None)
    return schema


def _flat(schema: Any, definitions: Json) -> Any:
    if isinstance(schema, list):
        return [_flat(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _flat(definitions[schema["$ref"]], definitions)
    return {name: _flat(each, definitions) for name, each in schema.items()}
