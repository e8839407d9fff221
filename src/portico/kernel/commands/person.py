"""Commands of people who are asked: approvals and questions."""

from portico.kernel.commands.answers import Answered, Decided, Drafted
from portico.kernel.commands.command import AboutSession, Command, Http
from portico.kernel.events import Breadth, Json, QuestionResponse


class DeclineSignIn(AboutSession, frozen=True, tag="sign_in.decline"):
    """Let a call fail that waits for a sign-in."""

    scope = "drive"

    call: str


class AnswerApproval(Command, frozen=True, tag="approval.answer"):
    """Answer an approval; the first valid answer wins."""

    scope = "approve"
    lock = "session_and_host"
    about = "approval"
    gives = Decided
    http = Http("POST", "/v1/approvals/{id}")
    private = frozenset({"meta"})

    approval: str
    allow: bool | None = None
    option: str | None = None
    reason: str = ""
    input: str | None = None
    """The call's input as edited, where the approval lets it be edited."""
    covers: Breadth = "shown"
    """With an option that is remembered: what for."""
    meta: Json = {}


class AnswerQuestion(Command, frozen=True, tag="question.answer"):
    """Answer, decline or cancel a question."""

    scope = "approve"
    lock = "session"
    about = "question"
    gives = Answered
    http = Http("POST", "/v1/questions/{id}")

    question: str
    response: QuestionResponse = "accept"
    answers: Json = {}
    text: str | None = None
    """The answer to a plain question; the same as answers = {"answer": text}."""


class DraftAnswer(Command, frozen=True, tag="question.draft"):
    """Keep a draft of an answer."""

    scope = "approve"
    lock = "session"
    about = "question"
    gives = Drafted
    http = Http("PATCH", "/v1/questions/{id}")

    question: str
    field: str
    answer: Json | None = None
