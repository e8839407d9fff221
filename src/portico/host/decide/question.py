"""Decisions about questions: drafts merge, one completion wins."""

from portico import commands as c
from portico import events as e
from portico.errors import AlreadyAnswered, BadRequest, Conflict, Forbidden, NotFound
from portico.events import Json
from portico.host.decide.decision import Context, Outcome
from portico.host.state import CallPart, QuestionPart, SessionState

_VALUES = {
    "text": "text",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "single-select": "selected",
    "multi-select": "selected-many",
}
"""The kind of value that a field's kind takes, where an answer names one."""


def draft(state: SessionState, command: c.DraftAnswer, context: Context) -> Outcome:
    turn, question = _open(state, command.question)
    _check_answer(question, command.field, command.answer)
    drafted = e.QuestionDrafted(
        turn=turn, question=command.question, field=command.field, answer=command.answer, by=context.by
    )
    return Outcome([drafted], c.Drafted(command.question))


def decline_sign_in(state: SessionState, command: c.DeclineSignIn, context: Context) -> Outcome:
    part = state.active.part(command.call) if state.active is not None else None
    if state.active is None or not isinstance(part, CallPart) or part.sign_in is None:
        raise Conflict(f"The call {command.call!r} does not wait for a sign-in.")
    return Outcome([e.SignInSettled(turn=state.active.id, call=command.call, given=False, by=context.by)])


def answer(state: SessionState, command: c.AnswerQuestion, context: Context) -> Outcome:
    turn, question = _open(state, command.question)
    if context.withdrawn:
        raise Conflict("The turn is being cancelled: its questions are withdrawn.")
    _check_person(question, context.caller)
    given = command.answers
    if command.text is not None:
        given = {**given, _plain_field(question): command.text}
    if command.response != "accept":
        given = command.answers
    for field, each in given.items():
        _check_answer(question, field, each)
    if command.response == "accept":
        _check_required(question, {**question.answers, **given})
    answered = e.QuestionAnswered(
        turn=turn, question=command.question, response=command.response, answers=given, by=context.by
    )
    return Outcome([answered], c.Answered(command.question, command.response))


def _check_person(question: QuestionPart, caller: c.Caller) -> None:
    """By the token or the login. How a client names itself (`Caller.label`) counts for nothing."""
    if question.people and caller.outside and (caller.person or caller.name) not in question.people:
        raise Forbidden(f"Only {', '.join(map(repr, question.people))} may answer this.")


def _plain_field(question: QuestionPart) -> str:
    """Where a text goes: into the one field that there is or that has to be filled, or where a plain question looks for
    it."""
    required = [each for each in question.fields if each.get("required")]
    asked = required if len(required) == 1 else question.fields
    if len(asked) > 1:
        names = ", ".join(repr(each.get("id")) for each in asked)
        raise BadRequest(f"Each of {names} needs an answer of its own, in 'answers'.", field="text")
    return str(asked[0].get("id")) if asked else "answer"


def _open(state: SessionState, ident: str) -> tuple[str, QuestionPart]:
    for turn in reversed(state.turns):
        part = turn.part(ident)
        if isinstance(part, QuestionPart):
            if part.done:
                raise AlreadyAnswered(f"{ident!r} was answered by {part.by!r} before.")
            return turn.id, part
    raise NotFound("question", ident)


def _check_answer(question: QuestionPart, field: str, answer: object) -> None:
    """An answer must be of the kind that its field asks for. Who names no kind gives a bare value."""
    asked = {each.get("id"): each for each in question.fields} or {"answer": {"kind": "text"}}
    if field not in asked:
        raise BadRequest(f"The question has no field {field!r}.", field="field")
    if not isinstance(answer, dict) or answer.get("state") == "skipped":
        return
    value = answer.get("value")
    wanted = _VALUES.get(str(asked[field].get("kind")))
    if wanted is not None and isinstance(value, dict) and (kind := value.get("kind")) != wanted:
        raise BadRequest(f"{field!r} takes a value of kind {wanted!r}, not {kind!r}.", field="answer")


def _check_required(question: QuestionPart, answers: Json) -> None:
    for each in question.fields:
        found = answers.get(each.get("id", ""))
        skipped = found is None or (isinstance(found, dict) and found.get("state") == "skipped")
        if each.get("required") and skipped:
            raise BadRequest(f"The question {each.get('id')!r} needs an answer.", field=str(each.get("id")))
