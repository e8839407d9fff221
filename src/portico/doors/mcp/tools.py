"""The tools themselves: each with the scope a caller needs and the arguments it takes."""

import asyncio
from typing import Any

import msgspec
from msgspec import Struct

from portico import commands as c
from portico.doors.app import App
from portico.doors.mcp.automations import AutomationTools
from portico.doors.mcp.offer import Nothing, Offer
from portico.doors.route import Caller
from portico.errors import BadRequest, Forbidden
from portico.events import Json, QuestionResponse, ToolSpec
from portico.host.session import Session
from portico.host.state import CallPart, QuestionPart, SessionState, Summary, TextPart, TurnState
from portico.host.tool import ToolResult

WAIT_SECONDS = 50.0
"""How long one call waits: below the minute after which many clients give up. The caller may wait again."""
_TURNS = 20
"""Turns shown at once, the last ones."""
_CHARS = 20_000
"""Of one answer or tool output: what a model can use."""


class StartBody(Struct, forbid_unknown_fields=True, kw_only=True):
    agent: str | None = None
    model: str | None = None
    cwd: str | None = None
    title: str = ""
    fallback: list[str] = []


class SendBody(Struct, forbid_unknown_fields=True, kw_only=True):
    session: str
    text: str
    wait: float = WAIT_SECONDS


class SessionBody(Struct, forbid_unknown_fields=True, kw_only=True):
    session: str


class WaitBody(Struct, forbid_unknown_fields=True, kw_only=True):
    session: str
    wait: float = WAIT_SECONDS


class ApproveBody(Struct, forbid_unknown_fields=True, kw_only=True):
    approval: str
    allow: bool
    reason: str = ""


class AnswerBody(Struct, forbid_unknown_fields=True, kw_only=True):
    question: str
    text: str = ""
    answers: dict[str, Any] = {}
    response: QuestionResponse = "accept"


class RunBody(Struct, forbid_unknown_fields=True, kw_only=True):
    job: str
    input: str = ""
    cwd: str | None = None


class JobBody(Struct, forbid_unknown_fields=True, kw_only=True):
    id: str


class HostTools:
    """For one caller. What its scopes do not allow is not even listed."""

    def __init__(self, app: App, who: Caller) -> None:
        self._host = app.host
        self._jobs = app.jobs
        self._who = who
        self._view = app.view(who)
        offers = {
            "list_agents": Offer("read", Nothing, self._agents, "The agents of this host with their models."),
            "list_sessions": Offer("read", Nothing, self._sessions, "All sessions, newest first."),
            "start_session": Offer(
                "drive",
                StartBody,
                self._start,
                "Starts a session with an agent; returns its id. Those of fallback (agent or agent/model) take over, "
                "in order, if it cannot answer.",
            ),
            "send_message": Offer(
                "drive",
                SendBody,
                self._send,
                "Sends a message and waits (seconds) until the agent is done or needs somebody. If it still runs, "
                "call wait_session.",
            ),
            "wait_session": Offer("read", WaitBody, self._wait, "Waits until the agent is done or needs somebody."),
            "read_session": Offer("read", SessionBody, self._read, "What was said and done in a session."),
            "cancel_turn": Offer("drive", SessionBody, self._cancel, "Stops what runs in a session."),
            "answer_approval": Offer("approve", ApproveBody, self._approve, "Allows or denies a call that waits."),
            "answer_question": Offer(
                "approve",
                AnswerBody,
                self._answer,
                "Answers a question that waits: with text, or, where it has several fields, with answers by their ids.",
            ),
            "list_jobs": Offer("jobs", Nothing, self._list_jobs, "Which jobs can be run, and which have run."),
            "run_job": Offer("jobs", RunBody, self._run_job, "Starts a job; returns its id."),
            "read_job": Offer("jobs", JobBody, self._read_job, "How a job stands."),
            "stop_job": Offer("jobs", JobBody, self._stop_job, "Stops a job."),
        }
        if self._view.whole:  # they are the host's
            offers |= AutomationTools(app.automations, who).offers()
        self._offers = {name: offer for name, offer in offers.items() if who.may(offer.scope)}

    def specs(self) -> list[ToolSpec]:
        return [ToolSpec(name, offer.description, _schema(offer.body)) for name, offer in self._offers.items()]

    async def call(self, name: str, arguments: Json) -> ToolResult:
        offer = self._offers.get(name)
        if offer is None:
            raise Forbidden(f"Your token does not allow {name!r}.")
        try:
            body = msgspec.convert(arguments, offer.body)
        except msgspec.ValidationError as error:
            raise BadRequest(f"The arguments are not as expected: {error}") from None
        return ToolResult(True, msgspec.json.encode(await offer.run(body)).decode())

    # -- sessions ----------------------------------------------------------------------------------------------

    async def _agents(self, body: Nothing) -> list[Json]:
        return [
            {"id": info.id, "name": info.name, "models": [model.id for model in info.models], "missing": info.missing}
            for info in await self._host.describe()
        ]

    async def _sessions(self, body: Nothing) -> list[Json]:
        found = self._view.list(archived=False)[:100]
        return [{"id": each.id, "title": each.title, "agent": each.agent, "status": each.status} for each in found]

    async def _start(self, body: StartBody) -> Json:
        config: Json = {"fallback": body.fallback} if body.fallback else {}
        command = c.StartSession(agent=body.agent, model=body.model, cwd=body.cwd, title=body.title, config=config)
        started: Summary = await self._host.do(command, self._who)
        return {"session": started.id, "agent": started.agent, "model": started.model}

    async def _send(self, body: SendBody) -> Json:
        await self._host.do(c.SendMessage(session=body.session, text=body.text, origin="agent"), self._who)
        return await self._settle(await self._view.get(body.session), body.wait)

    async def _wait(self, body: WaitBody) -> Json:
        return await self._settle(await self._view.get(body.session), body.wait)

    async def _settle(self, session: Session, seconds: float) -> Json:
        """Until nothing runs, or somebody is needed, or the time is over: whatever comes first."""
        try:
            async with asyncio.timeout(min(max(seconds, 0), WAIT_SECONDS)):
                await session.wait_until(_resting)
        except TimeoutError:
            pass  # told by the state: it still runs
        return _standing(session.state)

    async def _read(self, body: SessionBody) -> Json:
        state = (await self._view.get(body.session)).state
        return {**_standing(state), "turns": [_told(turn) for turn in state.turns[-_TURNS:]]}

    async def _cancel(self, body: SessionBody) -> Json:
        await self._host.do(c.CancelTurn(session=body.session), self._who)
        return _standing((await self._view.get(body.session)).state)

    # -- people ------------------------------------------------------------------------------------------------

    async def _approve(self, body: ApproveBody) -> Json:
        command = c.AnswerApproval(approval=body.approval, allow=body.allow, reason=body.reason)
        decided: c.Decided = await self._host.do(command, self._who)
        return {"approval": body.approval, "allowed": decided.allowed}

    async def _answer(self, body: AnswerBody) -> Json:
        answers = body.answers if body.response == "accept" else {}
        text = body.text if body.response == "accept" and not answers else None
        command = c.AnswerQuestion(question=body.question, response=body.response, answers=answers, text=text)
        await self._host.do(command, self._who)
        return {"question": body.question}

    # -- jobs --------------------------------------------------------------------------------------------------

    async def _list_jobs(self, body: Nothing) -> Json:
        jobs = self._jobs
        seen = self._view.jobs(jobs.history())
        return {"jobs": sorted(jobs.entry.jobs), "history": [_job(each) for each in seen[-20:]]}

    async def _run_job(self, body: RunBody) -> Json:
        command = c.StartJob(
            job=body.job, cwd=body.cwd or str(self._host.default_folder()), input=body.input, strict=False
        )
        named: c.JobNamed = await self._host.do(command, self._who)
        return {"id": named.job}

    async def _read_job(self, body: JobBody) -> Json:
        return _job(self._view.job(self._jobs.job(body.id)))

    async def _stop_job(self, body: JobBody) -> Json:
        await self._host.do(c.StopJob(job=body.id), self._who)
        return _job(self._jobs.job(body.id))


def _job(summary: Any) -> Json:
    told: Json = msgspec.to_builtins(summary)
    return {key: value for key, value in told.items() if key not in ("pos", "by")}


def _resting(state: SessionState) -> bool:
    return state.active is None or bool(_needs(state.active))


def _needs(turn: TurnState) -> list[Json]:
    """What waits for somebody."""
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
    """A flat JSON Schema: agents' readers of schemas do not all follow references."""
    (_, definitions) = msgspec.json.schema_components([body], ref_template="{name}")
    schema = dict(definitions[body.__name__])
    schema.pop("title", None)
    return schema
