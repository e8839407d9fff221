"""Running one command to its end: bounded output, live pieces on the way, and nothing left running afterwards.

For what should go on (a server, a watcher) there are terminals.
"""

import asyncio
import codecs
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

from portico.errors import BadRequest
from portico.workspace.child import Child, Outlet, command_environment, environment
from portico.workspace.escapes import Plain, plain

HEAD = 16 * 1024  # bytes kept from the beginning: what was started and the first error
TAIL = 48 * 1024  # bytes kept from the end: where programs say how it went
LIVE_MAX = 1024 * 1024  # characters of live output; every one becomes an event, and nobody reads more
COMMAND_SECONDS = 120.0  # when nothing is said; a build that takes longer says so
SAID_MAX = 8 * 1024  # bytes of standard error that are read when it is kept apart

__all__ = ["Clip", "Finished", "command_environment", "environment", "run", "shell"]


class Finished(Struct, frozen=True):
    code: int
    output: str  # for reading; with `raw` only what it said on standard error
    data: bytes  # with `raw` its standard output as it came
    cut: bool
    timed_out: bool
    seconds: float


class Clip:
    """The first and the last bytes of a stream, whatever its length."""

    def __init__(self, head: int = HEAD, tail: int = TAIL) -> None:
        self.head_max = head
        self.tail_max = tail
        self.head = bytearray()
        self.tail = bytearray()
        self.dropped = 0

    def add(self, data: bytes) -> None:
        room = self.head_max - len(self.head)
        self.head += data[:room]
        self.tail += data[room:]
        # Trimmed in large steps: deleting from the front moves the rest.
        if len(self.tail) > 2 * self.tail_max:
            self._trim()

    def _trim(self) -> None:
        excess = len(self.tail) - self.tail_max
        if excess > 0:
            self.dropped += excess
            del self.tail[:excess]

    def data(self) -> bytes:
        self._trim()
        return bytes(self.head + self.tail)

    def text(self) -> str:
        self._trim()
        if not self.dropped:
            return self.data().decode("utf-8", "replace")
        head, tail = self.head.decode("utf-8", "replace"), self.tail.decode("utf-8", "replace")
        return f"{head}\n[... {self.dropped} bytes left out ...]\n{tail}"


class _Live:
    """Hands output on while it comes, decoded, without escapes, and up to a bound."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.report = report
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.plain = Plain()
        self.room = LIVE_MAX

    def add(self, data: bytes) -> None:
        if self.room <= 0:
            return
        text = self.plain.feed(self.decoder.decode(data))[: self.room]
        self.room -= len(text)
        if text:
            self.report(text)
        if self.room <= 0:
            self.report("\n[... more output; the result will show its end ...]\n")


def shell(line: str) -> list[str]:
    """A shell line as an argument list. Bash where there is one, because that is what models and people write."""
    return [shutil.which("bash") or "/bin/sh", "-c", line]


async def run(
    command: str | Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float = COMMAND_SECONDS,
    on_output: Callable[[str], None] | None = None,
    stdin: bytes = b"",
    head: int = HEAD,
    tail: int = TAIL,
    raw: bool = False,
) -> Finished:
    """Runs a command (a list, or a shell line) in its own session and waits for it, at most `timeout` seconds.

    When it ends, times out or the caller is cancelled, everything that it started is ended as well.
    `cwd` has to come out of the jail. `raw` is for output that is data: bytes, without the warnings in between.
    """
    arguments = shell(command) if isinstance(command, str) else list(command)
    if not arguments or not arguments[0]:
        raise BadRequest("There is no command to run.", field="command")
    began = time.monotonic()
    clip = Clip(head, tail)
    live = _Live(on_output) if on_output else None

    def sink(data: bytes) -> None:
        clip.add(data)
        if live:
            live.add(data)

    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as apart:
        # Files and not pipes: nobody has to keep feeding and emptying them.
        source.write(stdin)
        source.seek(0)
        child, outlet = _start(arguments, cwd, env, source, apart if raw else None, sink)
        code = await _ended(child, outlet, timeout)
        apart.seek(0)
        said = plain(apart.read(SAID_MAX).decode("utf-8", "replace"))
    return Finished(
        code=await child.wait() if code is None else code,
        output=said if raw else plain(clip.text()),
        data=clip.data() if raw else b"",
        cut=clip.dropped > 0,
        timed_out=code is None,
        seconds=time.monotonic() - began,
    )


def _start(
    arguments: list[str],
    cwd: Path,
    env: Mapping[str, str],
    stdin: IO[bytes],
    errors: IO[bytes] | None,
    sink: Callable[[bytes], None],
) -> tuple[Child, Outlet]:
    ours, theirs = os.pipe()
    try:
        child = Child.start(arguments, cwd=cwd, env=env, stdin=stdin, output=theirs, errors=errors)
    except BaseException:  # whatever it was, nobody else knows this end
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return child, Outlet(ours, sink)


async def _ended(child: Child, outlet: Outlet, timeout: float) -> int | None:
    """Waits for the command, then ends all it has left and reads the rest; None when the time was over."""
    try:
        async with asyncio.timeout(timeout):
            return await child.wait()
    except TimeoutError:
        return None
    finally:
        try:
            await child.end()
            await outlet.drain()
        finally:
            outlet.close()
