"""What waits for a person, and what they said: approvals, questions, grants."""

from typing import Literal

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico import limits
from portico.doors.app import App
from portico.doors.body import JsonResponse, read_as
from portico.doors.route import Doc, Route, Table, caller
from portico.errors import BadRequest
from portico.events import Grant, Json
from portico.host.session import Session


class ApprovalBody(Struct, forbid_unknown_fields=True):
    allow: bool | None = None
    option: str | None = None
    reason: str = ""
    input: str | None = None


class AnswerBody(Struct, forbid_unknown_fields=True):
    response: Literal["accept", "decline", "cancel"] = "accept"
    answers: Json = {}
    text: str | None = None
    """The answer to a plain question; the same as answers = {"answer": text}."""


class DraftBody(Struct, forbid_unknown_fields=True):
    field: str
    answer: Json | None = None


class GrantBody(Struct, forbid_unknown_fields=True):
    agent: str
    tool: str
    allow: bool
    session: str | None = None
    project: str | None = None
    pattern: str = "*"
    seconds: float = limits.GRANT_SECONDS


class Decided(Struct):
    approval: str
    allowed: bool
    by: str


class Answered(Struct):
    question: str
    response: Literal["accept", "decline", "cancel"]


class Drafted(Struct):
    question: str


class GrantList(Struct):
    grants: list[Grant]


def table(app: App) -> Table:
    host = app.host

    async def owner(request: Request) -> tuple[Session, str]:
        ident: str = request.path_params["id"]
        return await host.get(host.session_of(ident)), ident

    async def approve(request: Request) -> Response:
        session, ident = await owner(request)
        body = await read_as(request, ApprovalBody)
        decision = await session.approvals.answer(
            ident, by=caller(request).by, allow=body.allow, option=body.option, reason=body.reason, input=body.input
        )
        return JsonResponse(Decided(ident, decision.allowed, decision.by))

    async def answer(request: Request) -> Response:
        session, ident = await owner(request)
        body = await read_as(request, AnswerBody)
        answers = body.answers if body.text is None else {**body.answers, "answer": body.text}
        await session.questions.answer(ident, body.response, answers, by=caller(request).by)
        return JsonResponse(Answered(ident, body.response))

    async def draft(request: Request) -> Response:
        session, ident = await owner(request)
        body = await read_as(request, DraftBody)
        await session.questions.draft(ident, body.field, body.answer, by=caller(request).by)
        return JsonResponse(Drafted(ident))

    async def grants(request: Request) -> Response:
        now = host.now()
        return JsonResponse(GrantList([grant for grant in host.grants.values() if grant.expires > now]))

    async def grant(request: Request) -> Response:
        body = await read_as(request, GrantBody)
        if not 0 < body.seconds <= 365 * 86400:
            raise BadRequest("A grant lasts more than 0 seconds and at most a year.", field="seconds")
        made = await host.grants.add(
            agent=body.agent,
            tool=body.tool,
            allow=body.allow,
            by=caller(request).by,
            session=body.session,
            project=body.project,
            pattern=body.pattern,
            seconds=body.seconds,
        )
        return JsonResponse(made, 201)

    async def revoke(request: Request) -> Response:
        await host.grants.revoke(request.path_params["id"], by=caller(request).by)
        return Response(status_code=204)

    decided: Doc = {"body": ApprovalBody, "answer": Decided, "codes": ["conflict"]}
    answered: Doc = {"body": AnswerBody, "answer": Answered, "codes": ["conflict"]}
    drafted: Doc = {"body": DraftBody, "answer": Drafted, "codes": ["conflict"]}
    granted: Doc = {"body": GrantBody, "answer": Grant, "status": 201, "codes": ["not_found", "conflict"]}
    return [
        Route(
            "/v1/approvals/{id}",
            approve,
            "approve",
            ("POST",),
            "Answer an approval; the first valid answer wins.",
            doc=decided,
        ),
        Route(
            "/v1/questions/{id}", answer, "approve", ("POST",), "Answer, decline or cancel a question.", doc=answered
        ),
        Route("/v1/questions/{id}", draft, "approve", ("PATCH",), "Keep a draft of an answer.", doc=drafted),
        Route(
            "/v1/grants",
            grants,
            "read",
            summary="Remembered answers that are still valid.",
            doc={"answer": GrantList},
        ),
        Route("/v1/grants", grant, "approve", ("POST",), "Remember an answer in advance.", doc=granted),
        Route(
            "/v1/grants/{id}",
            revoke,
            "approve",
            ("DELETE",),
            "Forget a remembered answer.",
            doc={"others": {204: None}},
        ),
    ]
