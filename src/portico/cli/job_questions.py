"""What a job asks people while it is followed: shown, and answered here where there is a terminal."""

import asyncio
import contextlib
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import msgspec

from portico.cli.ask import read_line
from portico.cli.output import plain
from portico.client import Client
from portico.kernel.errors import AlreadyAnswered, PorticoError
from portico.kernel.events import Json
from portico.kernel.state import QuestionPart
from portico.tasks import end_tasks

LOOK_SECONDS = 1.0
"""Between two reads of the inbox: soon enough for a person, and cheap for the host."""


EVIDENCE_LINES = 100
"""Of one text above a question: more than a screen, and the question stays in reach."""


class _Waiting(msgspec.Struct):
    id: str
    by: str = ""
    """`task:ID` for a question of a job."""
    question: QuestionPart | None = None


class _Inbox(msgspec.Struct):
    waiting: list[_Waiting]


class JobQuestions:
    """`paused` is held while a person types: nothing else may write to the terminal then."""

    def __init__(
        self, client: Client, job: str, *, paused: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
    ) -> None:
        self._client = client
        self._job = job
        self._paused = paused
        self.tasks: set[str] = set()
        """Of the job, as far as they have started."""
        self._shown: set[str] = set()

    async def follow(self) -> None:
        """Until it is cancelled."""
        while True:
            with contextlib.suppress(PorticoError):  # the host restarts: its questions stay open
                await self._look()
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> None:
        for question in await self._open():
            if question.id not in self._shown:
                self._shown.add(question.id)
                await self._show(question)

    async def _open(self) -> list[QuestionPart]:
        found = msgspec.json.decode(await self._client.call("GET", "/v1/inbox"), type=_Inbox).waiting
        ours = [each for each in found if each.by.removeprefix("task:") in self.tasks]
        return [each.question for each in ours if each.question is not None]

    async def _show(self, question: QuestionPart) -> None:
        if not sys.stdin.isatty():
            options = next((labels(field) for field in question.fields if field.get("options")), [])
            choice = f" [{', '.join(options)}]" if options else ""
            answer = f"portico inbox answer {question.id} TEXT"
            text = plain(" ".join(question.text.split()))
            print(f"{self._job} asks: {text}{plain(choice)} ({answer})", file=sys.stderr, flush=True)
            return
        asking = asyncio.ensure_future(self._ask(question))
        elsewhere = asyncio.ensure_future(self._answered(question.id))
        with self._paused():
            try:
                await asyncio.wait({asking, elsewhere}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await end_tasks(asking, elsewhere)

    async def _answered(self, ident: str) -> None:
        """Returns when another person has answered, or the time is over."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            with contextlib.suppress(PorticoError):
                if ident not in [each.id for each in await self._open()]:
                    print(f"\nportico: {ident} was answered elsewhere, or is over", file=sys.stderr)
                    return

    async def _ask(self, question: QuestionPart) -> None:
        """Until the host takes the answer; the end of input declines."""
        print(f"\n{self._job} asks: {plain(question.text)}", file=sys.stderr)
        for line in evidence_lines(question):
            print(plain(line), file=sys.stderr)
        fields = question.fields or [{"id": "answer", "required": True}]
        while True:
            answers: dict[str, str] = {}
            for field in fields:
                for number, option in enumerate(labels(field), 1):
                    print(plain(f"  {number}  {option}"), file=sys.stderr)
                line = await read_line(prompt_of(field))
                if not line:
                    await self._client.answer_question(question.id, response="decline")
                    return
                if text := line.strip():
                    answers[str(field.get("id"))] = chosen(text, labels(field))
            try:
                await self._client.answer_question(question.id, response="accept", answers=answers)
                return
            except PorticoError as error:
                print(f"portico: {plain(error.message)}", file=sys.stderr)
                if error.code == AlreadyAnswered.code:
                    return


def labels(field: Json) -> list[str]:
    return [str(each.get("label") or each.get("id")) for each in field.get("options") or []]


def chosen(text: str, options: list[str]) -> str:
    """The option of that number, unless an option is called like it."""
    number = int(text) if text.isascii() and text.isdigit() else 0
    return options[number - 1] if text not in options and 1 <= number <= len(options) else text


def evidence_lines(question: QuestionPart) -> list[str]:
    """What the person needs to decide, such as a plan or a diff. Pictures are in the workbench."""
    lines: list[str] = []
    for each in question.evidence:
        text = str(each.get("text") or "(a picture: see the workbench)").splitlines()
        cut = len(text) - EVIDENCE_LINES
        more = [f"… and {cut} more lines in the workbench"] if cut > 0 else []
        lines += [f"-- {each.get('title') or 'Shown'}", *text[:EVIDENCE_LINES], *more]
    return [*lines, "--"] if lines else []


def prompt_of(field: Json) -> str:
    choice = f" [{', '.join(labels(field))}]" if field.get("options") else ""
    optional = "" if field.get("required") else " (optional)"
    return plain(f"{field.get('message') or 'Answer'}{choice}{optional}: ")
