"""Decisions about questions: drafts merge, one completion wins."""

from typing import Any

from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.decide.decision import Context, Outcome
from portico.kernel.errors import AlreadyAnswered, BadRequest, Conflict, Forbidden, NotFound
from portico.kernel.events import Json
from portico.kernel.state import CallPart, QuestionPart, SessionState

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
    answer = _checked(question, command.field, command.answer)
    drafted = e.QuestionDrafted(turn=turn, question=command.question, field=command.field, answer=answer, by=context.by)
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
    given = {field: _checked(question, field, each) for field, each in given.items()}
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


def _checked(question: QuestionPart, field: str, answer: Any) -> Any:
    """An answer must be of the kind that its field asks for. Who names no kind gives a bare value."""
    asked = {each.get("id"): each for each in question.fields} or {"answer": {"kind": "text"}}
    if field not in asked:
        raise BadRequest(f"The question has no field {field!r}.", field="field")
    named = isinstance(answer, dict)
    if named and answer.get("state") == "skipped":
        return answer
    wanted, value = _VALUES.get(str(asked[field].get("kind"))), answer.get("value") if named else None
    if wanted is not None and isinstance(value, dict) and (kind := value.get("kind")) != wanted:
        raise BadRequest(f"{field!r} takes a value of kind {wanted!r}, not {kind!r}.", field="answer")
    return _with_ids(asked[field], answer)


def _with_ids(field: Json, answer: Any) -> Any:
    """With the ids of the options that it names: by id or label, in any case."""
    options = field.get("options")
    if not options or field.get("allowFreeformInput") or answer in [None, *(each.get("id") for each in options)]:
        return answer
    if isinstance(answer, dict):
        return {key: _with_ids(field, value) if key == "value" else value for key, value in answer.items()}
    if isinstance(answer, list):
        return [_with_ids(field, each) for each in answer]
    ids = {str(each.get(key)).casefold(): each.get("id") for key in ("label", "id") for each in options}
    if (name := str(answer).strip().casefold()) not in ids:
        labels = ", ".join(repr(each.get("label") or each.get("id")) for each in options)
        raise BadRequest(f"{answer!r} is none of the options: {labels}.", field=str(field.get("id")))
    return ids[name]


def _check_required(question: QuestionPart, answers: Json) -> None:
    for each in question.fields:
        found = answers.get(each.get("id", ""))
        skipped = found is None or (isinstance(found, dict) and found.get("state") == "skipped")
        if each.get("required") and skipped:
            raise BadRequest(f"The question {each.get('id')!r} needs an answer.", field=str(each.get("id")))
