"""The MCP tools: tools that read, and one for each command of the table, with its scope and arguments."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from functools import cache, partial
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import Struct

from portico import command_shapes
from portico.doors.mcp.automations import AutomationTools
from portico.doors.mcp.offer import Nothing
from portico.doors.mcp.schema import as_object, input_schema, output_schema
from portico.doors.mcp.sets import annotations, shown
from portico.doors.mcp.shapes import (
    CHARS,
    AgentList,
    AnsweredQuestion,
    JobList,
    RunJob,
    SessionChanges,
    SessionStanding,
    SessionTurns,
    ShownAgent,
    ShownSession,
    ShownSessions,
    StartedSession,
    conversation,
    has_settled,
    is_resting,
    is_waiting,
    run_of,
    standing,
)
from portico.features.automations import commands as ac
from portico.features.board.activity import activity
from portico.features.jobs import commands as jc
from portico.kernel import commands as c
from portico.kernel.commands.caller import TOOL_SCOPES
from portico.kernel.errors import BadRequest, Conflict, Forbidden, NotFound
from portico.kernel.events import Json, QuestionResponse, TurnStarted
from portico.kernel.feature import Feature, ToolOffer
from portico.kernel.limits import READ_EVENTS
from portico.kernel.session import Session
from portico.kernel.state import SessionState, Summary
from portico.kernel.tool import ToolResult
from portico.mcp import CallCancelled, ServedResult, ServedTool
from portico.sandbox.policy import MODES
from portico.server.app import App
from portico.server.route import Caller
from portico.tasks import end_tasks

WAIT_SECONDS = 50.0
"""How long one call waits: less than the minute after which many clients time out. The caller can wait again."""
REPORT_SECONDS = 5.0
"""How often a waiting call reports progress: more often than clients time out, and rarely enough for their logs."""


class SessionBody(Struct, forbid_unknown_fields=True, kw_only=True):
    session: str


class WaitBody(Struct, forbid_unknown_fields=True, kw_only=True):
    session: str
    wait: float = WAIT_SECONDS


class ChangesBody(Struct, forbid_unknown_fields=True, kw_only=True):
    session: str
    turn: str | None = None
    path: str | None = None
    diff: bool = False


class AnswerArguments(Struct, forbid_unknown_fields=True, kw_only=True):
    approval: str | None = None
    question: str | None = None
    allow: bool | None = None
    option: str | None = None
    text: str | None = None
    answers: Json = {}
    response: QuestionResponse = "accept"
    reason: str = ""


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
    c.SendMessage: (("wait", float, WAIT_SECONDS), ("keep", bool, False)),
    jc.StartJob: (("cwd", str | None, None),),
}
"""Arguments of tools that add to those of their command or replace them."""
FIXED: dict[type[c.Command], Json] = {c.StartSession: {"draft": True}, c.SendMessage: {"origin": "agent"}}
"""Arguments that a tool sets itself. A session in which a model writes nothing is not listed."""
_WORDS: dict[type[c.Command], str] = {
    c.StartSession: "Returns its id. Those of fallback (agent or agent/model) take over if it cannot answer.",
    c.SendMessage: "Waits until the agent is done or needs an answer. If it still runs, call wait_session.",
    c.AnswerApproval: "Allows or denies a call that waits.",
    ac.CreateAutomation: "plan: a trigger, such as schedule {cron, zone}, and a job {job, input} or prompt {text}.",
    c.AnswerQuestion: "With text, or, where it has several fields, with answers by their ids.",
}


ANSWER = "answer"
_ANSWER_WORDS = "Answer an approval (allow or option) or a question (text or answers) that an agent waits for."


@cache
def _body(kind: type[c.Command]) -> type[Struct]:
    more = _MORE.get(kind, ())
    without = [*(name for name, *_ in more), *FIXED.get(kind, {})]
    return command_shapes.arguments(kind, *more, without=without, module=__name__) or Nothing


class _Offered(Struct, frozen=True):
    """A tool with what is shown of it."""

    offer: ToolOffer
    gives: Any
    reads: bool


class HostTools:
    """For one caller: every command that does not need a window or a connection, and what can be read.

    What its scopes do not allow is not listed. Tools that answer, write files, open a shell or manage the host are
    listed only for a token that names them, and only they run with those scopes of the token. Of the tools that
    remain, the caller sees those of its set (`sets.py`)."""

    def __init__(self, app: App, who: Caller) -> None:
        self._host = app.host
        self._jobs = app.jobs
        self._who = who
        self._view = app.view(who)
        self.report: Callable[[float, str], None] = lambda seconds, activity: None
        """Called with the seconds and the activity while a call waits."""
        self.cancelled = asyncio.Event()
        """The client cancels the call: set it, and the call ends what it started."""
        reads = {
            "list_agents": ToolOffer("sessions", Nothing, self._agents, "The agents of this host with their models."),
            "list_sessions": ToolOffer("sessions", Nothing, self._sessions, "All sessions, newest first."),
            "wait_session": ToolOffer(
                "sessions", WaitBody, self._wait, "Waits until the agent is done or needs an answer."
            ),
            "read_session": ToolOffer("sessions", SessionBody, self._read, "Messages, answers and calls of a session."),
            "read_changes": ToolOffer(
                "changes", ChangesBody, self._changes, "The files that a session changed, and the changes as a diff."
            ),
            "list_jobs": ToolOffer("jobs", Nothing, self._list_jobs, "The jobs that can be run, and the latest runs."),
            "read_job": ToolOffer("jobs", JobBody, self._read_job, "The state of a run, with its steps and result."),
        }
        reads |= AutomationTools(app.automations).offers()
        for feature in app.host.parts:
            reads |= feature.tools(self._view) if isinstance(feature, Feature) else {}
        found = {name: _Offered(offer, _returned(offer.run), True) for name, offer in reads.items()}
        found |= {
            command_shapes.method_name(kind): _Offered(self._offer(kind), _given(kind), False)
            for name, kind in c.COMMANDS.items()
            if name not in WITHOUT and kind.as_tool is True
        }
        found[ANSWER] = _Offered(
            ToolOffer(c.AnswerApproval, AnswerArguments, self._answer, _ANSWER_WORDS),
            (c.Decided, AnsweredQuestion),
            False,
        )
        names = shown(who, app.settings.doors.mcp_tools)
        self._offers = {
            name: each
            for name, each in found.items()
            if (names is None or name in names or name in who.tools) and self._may(app, name, each.offer)
        }

    def _may(self, app: App, name: str, offer: ToolOffer) -> bool:
        """Return whether the caller may use a tool. Tools that only read need at most `read` or `jobs`, and show what
        the caller sees elsewhere."""
        view = self._view if isinstance(offer.needs, str) else app.view(self._who.with_tool(name))
        return view.may(offer.needs)

    def _offer(self, kind: type[c.Command]) -> ToolOffer:
        words = " ".join([c.sentence(kind), *([_WORDS[kind]] if kind in _WORDS else [])])
        return ToolOffer(kind, _body(kind), partial(self._do, kind), words, kind.about if kind.about != "host" else "")

    def specs(self) -> list[ServedTool]:
        return [_spec(name, each) for name, each in self._offers.items()]

    def waits(self, name: Any) -> bool:
        """Whether a call of this tool waits for an agent."""
        return name in ("send_message", "wait_session") and name in self._offers

    async def call(self, name: str, arguments: Json) -> ToolResult:
        found = self._offers.get(name)
        if found is None:
            raise Forbidden(f"Your token does not allow {name!r}.")
        offer = found.offer
        if offer.subject and "id" in arguments and offer.subject not in arguments:
            arguments = {offer.subject: arguments["id"], **{k: v for k, v in arguments.items() if k != "id"}}
        try:
            body = msgspec.convert(arguments, offer.body)
        except msgspec.ValidationError as error:
            raise BadRequest(f"The arguments are not as expected: {error}") from None
        try:
            structured = as_object(await offer.run(body))
        except Forbidden as error:
            if self._who.with_tool(name) is self._who:
                raise
            words = f"{error.message} Of your token's scopes, this tool uses {', '.join(sorted(TOOL_SCOPES))} unless"
            raise Forbidden(f"{words} the token was created with --tool {name}.", field=error.field) from None
        return ServedResult(True, msgspec.json.encode(structured).decode(), structured=structured)

    # -- sessions ----------------------------------------------------------------------------------------------

    async def _agents(self, body: Nothing) -> AgentList:
        found = await self._host.describe()
        return AgentList([ShownAgent(each.id, each.name, [m.id for m in each.models], each.missing) for each in found])

    async def _sessions(self, body: Nothing) -> ShownSessions:
        found = self._view.list(archived=False)[:100]
        return ShownSessions([ShownSession(each.id, each.title, each.agent, each.status) for each in found])

    async def _wait(self, body: WaitBody) -> SessionStanding:
        session = await self._view.get(body.session)
        await self._settle(session, is_resting, _until(body.wait))
        return standing(session.state)

    async def _settle(self, session: Session, settled: Callable[[SessionState], bool], until: float) -> None:
        """Wait until the condition is true, the call is cancelled, or the time limit is reached."""
        began = time.monotonic()
        while not self.cancelled.is_set() and (left := until - time.monotonic()) > 0:
            if await _within(min(left, REPORT_SECONDS), session.wait_until(settled), self.cancelled.wait()):
                break
            self.report(round(time.monotonic() - began, 3), activity(session.state))
        self._view.check(session.id, "read")  # it may not be shared with them any more

    async def _read(self, body: SessionBody) -> SessionTurns:
        return conversation((await self._view.get(body.session)).state)

    async def _changes(self, body: ChangesBody) -> SessionChanges:
        session = await self._view.get(body.session)
        found = await session.changes(body.turn)
        files = found.files if body.path is None else [each for each in found.files if each.path == body.path]
        answer = SessionChanges(body.session, found.git, files=files, more=found.cut, note=found.note or "")
        if body.diff and found.git:
            diff = await session.diff(body.path, body.turn)
            answer.diff = diff[:CHARS]
            if len(diff) > CHARS:
                answer.note = f"The diff has {len(diff)} characters and is cut. Set path to read it file by file."
        return answer

    # -- jobs --------------------------------------------------------------------------------------------------

    async def _list_jobs(self, body: Nothing) -> JobList:
        jobs = self._jobs
        seen = self._view.jobs(jobs.history())
        return JobList(sorted(jobs.entry.jobs), [run_of(each) for each in seen[-20:]])

    async def _read_job(self, body: JobBody) -> RunJob:
        return run_of(self._view.job(self._jobs.job(body.id)))

    # -- commands ----------------------------------------------------------------------------------------------

    async def _do(self, kind: type[c.Command], body: Struct) -> Any:
        given = {name: getattr(body, name) for name in body.__struct_fields__}
        wait, keep = given.pop("wait", WAIT_SECONDS), given.pop("keep", False)
        if fallback := given.pop("fallback", None):
            given["config"] = {**given["config"], "fallback": fallback}
        if sandbox := given.pop("sandbox", None):
            given["config"] = {**given["config"], "sandbox": sandbox}
        given |= FIXED.get(kind, {})
        if kind is jc.StartJob:
            given |= {"cwd": given["cwd"] or str(self._host.default_folder()), "strict": False, "by_model": True}
        command = kind(**given)
        who = self._who.with_tool(command_shapes.method_name(kind))
        if isinstance(command, c.SendMessage):
            return await self._send(command, who, wait, keep)
        return await self._shown(command, await self._host.do(command, who))

    async def _send(self, command: c.SendMessage, who: Caller, wait: float, keep: bool) -> SessionStanding:
        """Send a message and wait for the end of its turn, also if it waits in the queue first."""
        session, until = await self._host.get(command.session), _until(wait)
        before = self._host.log.head(session.channel)
        answer = await self._host.do(command, who)
        turn = answer.turn if isinstance(answer, c.TurnBegun) else None
        if isinstance(answer, c.Queued):
            await self._settle(session, lambda state: not is_waiting(state, answer.pending), until)
            turn = await self._turn_of(session, answer.pending, before)
        if turn is not None:
            await self._settle(session, lambda state: has_settled(state, turn), until)
        if not self.cancelled.is_set():
            return standing(session.state, turn=turn)
        if keep:
            return standing(session.state, "The call was cancelled. The agent continues.", turn)
        await self._stop(session, answer, turn, before, who)
        raise CallCancelled

    async def _stop(self, session: Session, answer: Any, turn: str | None, before: int, who: Caller) -> None:
        """Cancel what a cancelled call has started: remove its message from the queue, or cancel its turn."""
        if turn is None and isinstance(answer, c.Queued):
            try:
                await self._host.do(c.RemoveQueued(session=session.id, pending=answer.pending), who)
                return
            except NotFound:  # it has become a turn, or another client has removed it
                turn = await self._turn_of(session, answer.pending, before)
        if turn is not None:
            with contextlib.suppress(NotFound, Conflict):  # it has ended
                await self._host.do(c.CancelTurn(session=session.id, turn=turn), who)

    async def _turn_of(self, session: Session, pending: str, after: int) -> str | None:
        """The turn that a queued message has become, from the events after a position; None: it is not in one."""
        await self._host.members.catch_up()
        log = self._host.log
        while after < log.head(session.channel) and (records := await log.read(session.channel, after, READ_EVENTS)):
            for record in records:
                event = record.event if b'"turn.started"' in record.data else None
                if isinstance(event, TurnStarted) and event.pending == pending:
                    return event.turn
            after = records[-1].pos
        return None

    async def _answer(self, body: AnswerArguments) -> Any:
        if (body.approval is None) == (body.question is None):
            raise BadRequest("Set either approval or question, as needs contains it.", field="approval")
        who = self._who.with_tool(ANSWER)
        command: c.Command
        if body.approval is not None:
            command = c.AnswerApproval(approval=body.approval, allow=body.allow, option=body.option, reason=body.reason)
        else:
            command = c.AnswerQuestion(
                question=str(body.question), response=body.response, answers=body.answers, text=body.text
            )
        return await self._shown(command, await self._host.do(command, who))

    async def _shown(self, command: c.Command, answer: Any) -> Any:
        match command:
            case c.StartSession() | c.ForkSession():
                return StartedSession(answer.id, answer.agent, answer.model)
            case c.AnswerQuestion(question=question):
                return AnsweredQuestion(question)
            case jc.StartJob() | jc.ResumeJob() | jc.RetryJob():
                return run_of(self._jobs.job(answer.job))
            case jc.StopJob(job=job):
                return run_of(self._jobs.job(job))
        return standing((await self._host.get(answer.id)).state) if isinstance(answer, Summary) else answer


def _given(kind: type[c.Command]) -> Any:
    """The shape of what `_shown` makes of the answer."""
    if kind is c.SendMessage:
        return SessionStanding
    if kind in (c.StartSession, c.ForkSession):
        return StartedSession
    if kind is c.AnswerQuestion:
        return AnsweredQuestion
    if kind in (jc.StartJob, jc.ResumeJob, jc.RetryJob, jc.StopJob):
        return RunJob
    return kind.gives


def _returned(run: Callable[..., Any]) -> Any:
    """The shape that a tool declares."""
    return get_type_hints(run).get("return")


def _until(seconds: float) -> float:
    return time.monotonic() + min(max(seconds, 0), WAIT_SECONDS)


@cache
def _schemas(name: str, body: type[Struct], kind: type[Struct] | None, gives: Any) -> tuple[Json, Json]:
    return input_schema(body, name, kind), output_schema(gives)


def _spec(name: str, found: _Offered) -> ServedTool:
    offer = found.offer
    kind = offer.needs if isinstance(offer.needs, type) and name != ANSWER else None
    schema, output = _schemas(name, offer.body, kind, found.gives)
    title = name.replace("_", " ").capitalize()
    return ServedTool(name, offer.description, schema, title, output, annotations(name, found.reads))


async def _within(seconds: float, *waits: Coroutine[Any, Any, Any]) -> bool:
    """Whether one of them ended in time. The others are cancelled."""
    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(each, name="mcp wait") for each in waits]
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        return bool(done)
    finally:
        await end_tasks(*tasks)
