"""Questions that an agent asks a person during a turn. Drafts merge across clients; one completion wins."""

import asyncio
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import asdict

from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.events import Json, QuestionResponse
from portico.kernel.state import QuestionPart

if TYPE_CHECKING:
    from portico.kernel.session import Session


class Asking(Struct, frozen=True):
    """The content of a question, with the fields of `QuestionAsked`."""

    text: str
    fields: list[Json] = field(default_factory=list)
    url: str | None = None
    people: list[str] = field(default_factory=list)
    evidence: list[Json] = field(default_factory=list)
    expires: int | None = None
    stays: bool = False


class Answer(Struct, frozen=True):
    response: QuestionResponse
    answers: Json
    by: str

    @property
    def text(self) -> str:
        """The free text answer, if the question has no fields."""
        value = self.answers.get("answer", "")
        while isinstance(value, dict):
            value = value.get("value", "")
        return str(value)


class Questions:
    """The questions of one session that wait in this process."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._waiting: dict[str, asyncio.Future[Answer]] = {}

    async def ask(self, turn: str, asking: Asking) -> Answer:
        session = self._session
        ident = f"{session.id}.{session.new_id('q')}"
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[ident] = future
        try:
            await session.append(e.QuestionAsked(turn=turn, question=ident, **asdict(asking)))
            return await future
        finally:
            self._waiting.pop(ident, None)

    async def answer(self, ident: str, response: QuestionResponse, answers: Json | None = None, *, by: str) -> None:
        await self._session.do(c.AnswerQuestion(question=ident, response=response, answers=answers or {}), by)

    def settle(self, answered: e.QuestionAnswered) -> None:
        """Resume the waiting turn: the answer is in the log, even if its caller has disconnected."""
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
