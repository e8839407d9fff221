"""Questions an agent asks a person in the middle of a turn. Drafts merge across clients; one completion wins."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from portico import events as e
from portico.errors import AlreadyAnswered, BadRequest, Conflict, NotFound
from portico.events import Json, QuestionResponse
from portico.host.state import QuestionPart

if TYPE_CHECKING:
    from portico.host.session import Session


@dataclass(frozen=True)
class Answer:
    response: QuestionResponse
    answers: Json
    by: str

    @property
    def text(self) -> str:
        """The one free text answer, where the question was a plain one."""
        value = self.answers.get("answer", "")
        if isinstance(value, dict):
            value = value.get("value", "")
            value = value.get("value", "") if isinstance(value, dict) else value
        return str(value)


class Questions:
    """The questions of one session that wait in this process."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._waiting: dict[str, asyncio.Future[Answer]] = {}

    async def ask(self, turn: str, text: str, fields: list[Json] | None = None, url: str | None = None) -> Answer:
        session = self._session
        ident = f"{session.id}.{session.new_id('q')}"
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[ident] = future
        try:
            await session.append(e.QuestionAsked(turn=turn, question=ident, text=text, fields=fields or [], url=url))
            return await future
        finally:
            self._waiting.pop(ident, None)

    async def draft(self, ident: str, field: str, answer: Json | None, *, by: str) -> None:
        async with self._session.lock:
            turn, question = self._open(ident)
            if question.fields and field not in {each.get("id") for each in question.fields}:
                raise BadRequest(f"The question has no field {field!r}.", field="field")
            await self._session.append(e.QuestionDrafted(turn=turn, question=ident, field=field, answer=answer, by=by))

    async def answer(self, ident: str, response: QuestionResponse, answers: Json | None = None, *, by: str) -> None:
        answers = answers or {}
        async with self._session.lock:
            turn, question = self._open(ident)
            if self._session.running is not None and self._session.running.withdrawn:
                raise Conflict("The turn is being cancelled: its questions are withdrawn.")
            if response == "accept":
                _check_required(question, {**question.answers, **answers})
            await self._session.append(
                e.QuestionAnswered(turn=turn, question=ident, response=response, answers=answers, by=by)
            )

    def settle(self, answered: e.QuestionAnswered) -> None:
        """The answer is in the log, whatever became of the caller who gave it: whoever waits goes on."""
        waiting = self._waiting.get(answered.question)
        if waiting is not None and not waiting.done():
            turn = self._session.state.turn(answered.turn)
            part = turn.part(answered.question) if turn is not None else None
            answers = part.answers if isinstance(part, QuestionPart) else answered.answers  # with the drafts
            waiting.set_result(Answer(answered.response, answers, answered.by))

    def abandon(self) -> None:
        for future in self._waiting.values():
            if not future.done():
                future.set_result(Answer("cancel", {}, "turn"))

    def _open(self, ident: str) -> tuple[str, QuestionPart]:
        for turn in reversed(self._session.state.turns):
            part = turn.part(ident)
            if isinstance(part, QuestionPart):
                if part.done:
                    raise AlreadyAnswered(f"{ident!r} was answered by {part.by!r} before.")
                return turn.id, part
        raise NotFound("question", ident)


def _check_required(question: QuestionPart, answers: Json) -> None:
    for each in question.fields:
        answer = answers.get(each.get("id", ""))
        skipped = answer is None or (isinstance(answer, dict) and answer.get("state") == "skipped")
        if each.get("required") and skipped:
            raise BadRequest(f"The question {each.get('id')!r} needs an answer.", field=str(each.get("id")))
