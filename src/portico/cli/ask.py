"""Asks pending approvals and questions in the terminal while the answer continues to stream.

Another client may answer first, or the question may time out: then it is withdrawn here, and that result counts.
"""

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Callable

from portico.cli.output import plain
from portico.client import Client
from portico.kernel import events as e
from portico.kernel.errors import PorticoError
from portico.tasks import end_tasks


class Asker:
    """`policy` is `allow`, `deny` or `ask`. Without a terminal it cannot ask, and prints a line about that."""

    def __init__(self, client: Client, policy: str) -> None:
        self._client = client
        self._policy = policy
        self._one_at_a_time = asyncio.Lock()
        self._open: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def see(self, event: e.Event) -> None:
        match event:
            case e.ApprovalAsked():
                self._begin(event.approval, self._approve(event))
            case e.QuestionAsked():
                self._begin(event.question, self._answer(event))
            case e.ApprovalAnswered():
                self._end(event.approval, "allowed" if event.allowed else "denied", event.by)
            case e.QuestionAnswered():
                self._end(event.question, event.response, event.by)
            case _:
                pass

    async def close(self) -> None:
        await end_tasks(*self._tasks)

    def _begin(self, ident: str, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(self._run(ident, work))
        self._open[ident] = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, ident: str, work: Awaitable[None]) -> None:
        try:
            await work
        except PorticoError as error:
            print(f"portico: {error.message}", file=sys.stderr)
        finally:
            self._open.pop(ident, None)

    def _end(self, ident: str, how: str, by: str) -> None:
        """Still open here: the answer came from elsewhere."""
        task = self._open.pop(ident, None)
        if task is not None and task.cancel():
            print(f"\nportico: {how} by {plain(by)}", file=sys.stderr)

    async def _approve(self, asked: e.ApprovalAsked) -> None:
        allow = self._policy == "allow"
        if self._policy == "ask":
            if not sys.stdin.isatty():
                _say(f"portico: {asked.approval} waits for an answer (use --yes or --no, or another client)")
                return
            async with self._one_at_a_time:
                for detail in ("", asked.title, asked.command, asked.path, asked.diff):
                    if detail is not None:
                        _say(plain(detail))
                allow = (await read_line("Allow? [y/N] ")).strip().lower() in ("y", "yes")
        self._answered(asked.approval)
        await self._client.approve(asked.approval, allow=allow)

    async def _answer(self, asked: e.QuestionAsked) -> None:
        if not sys.stdin.isatty():
            _say(f"portico: {asked.question} waits for an answer: {plain(asked.text)}")
            return
        async with self._one_at_a_time:
            line = await read_line(f"\n{plain(asked.text)} ")
        self._answered(asked.question)
        text = line.removesuffix("\n")
        await self._client.answer(asked.question, text if line else None, "accept" if line else "decline")

    def _answered(self, ident: str) -> None:
        """Mark the question as answered here: the event of this answer must not withdraw it."""
        self._open.pop(ident, None)


async def read_line(prompt: str) -> str:
    """Read a line from the terminal, with its newline; empty at the end of input. Uses no thread, so Ctrl-C need not
    wait for one."""
    print(prompt, end="", file=sys.stderr, flush=True)
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    stdin = sys.stdin.fileno()
    loop.add_reader(stdin, _once(ready))
    try:
        await ready
    finally:
        loop.remove_reader(stdin)
    return sys.stdin.readline()


def _once(ready: "asyncio.Future[None]") -> Callable[[], None]:
    def wake() -> None:
        with contextlib.suppress(asyncio.InvalidStateError):
            ready.set_result(None)

    return wake


def _say(text: str) -> None:
    print(text, file=sys.stderr)
