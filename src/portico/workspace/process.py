"""Runs one command until it exits: bounded output, live output while it runs, and no processes left afterwards.

Use terminals for long-running programs (a server, a watcher).
"""

import asyncio
import codecs
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import IO, Protocol

from msgspec import Struct

from portico.kernel.errors import BadRequest
from portico.sandbox.policy import Confinement
from portico.workspace.child import Child, Outlet, command_environment, environment
from portico.workspace.escapes import Plain, plain

HEAD = 16 * 1024  # bytes kept from the beginning: the command and the first error
TAIL = 48 * 1024  # bytes kept from the end: where programs print their result
LIVE_MAX = 1024 * 1024  # characters of live output; all of it becomes events, and more is not useful to readers
COMMAND_SECONDS = 120.0  # the default; a longer build passes its own timeout
SAID_MAX = 8 * 1024  # bytes of standard error that are read when it is captured separately

__all__ = ["Clip", "Finished", "OutputFilter", "command_environment", "environment", "run", "shell"]


class OutputFilter(Protocol):
    """Changes output before it is stored, for example to mask secrets. `close` returns what `feed` held back."""

    def feed(self, data: bytes) -> bytes: ...

    def close(self) -> bytes: ...


class Finished(Struct, frozen=True):
    code: int
    output: str  # as text; with `raw` only standard error
    data: bytes  # with `raw` the unmodified standard output
    cut: bool
    timed_out: bool
    seconds: float
    left: bool = False  # it left processes running, which were ended


class Clip:
    """The first and the last bytes of a stream of any length."""

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
    """Reports output as it arrives: decoded, without escape sequences, up to `LIVE_MAX` characters."""

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
    """Return a shell line as an argument list. Prefers bash, because models and people write bash."""
    return [_shell_program(os.environ.get("PATH")), "-c", line]


@cache
def _shell_program(path: str | None) -> str:
    return shutil.which("bash", path=path) or "/bin/sh"


async def run(
    command: str | Sequence[str],
    *,
    policy: Confinement,
    cwd: Path,
    env: Mapping[str, str],
    timeout: float = COMMAND_SECONDS,
    on_output: Callable[[str], None] | None = None,
    stdin: bytes = b"",
    head: int = HEAD,
    tail: int = TAIL,
    raw: bool = False,
    filters: Callable[[], OutputFilter] | None = None,
    reaper: bool = True,
) -> Finished:
    """Run a command (a list, or a shell line) in a separate process session and wait at most `timeout` seconds.

    When it exits, times out or the caller is cancelled, all processes that it started are terminated as well.
    `cwd` must be a path that the jail returned. `raw` is for output that is data: bytes, without standard error.
    `filters` makes a filter for each of the two streams. `reaper`: see `adoption.spawn`.
    """
    arguments = shell(command) if isinstance(command, str) else list(command)
    if not arguments or not arguments[0]:
        raise BadRequest("There is no command to run.", field="command")
    began = time.monotonic()
    clip = Clip(head, tail)
    live = _Live(on_output) if on_output else None
    filtering = filters() if filters else None

    def sink(data: bytes) -> None:
        add(filtering.feed(data) if filtering else data)

    def add(data: bytes) -> None:
        clip.add(data)
        if live:
            live.add(data)

    with ExitStack() as files:
        # Files and not pipes: they need no concurrent writer and reader.
        source: int | IO[bytes] = subprocess.DEVNULL
        if stdin:
            source = files.enter_context(tempfile.TemporaryFile())
            source.write(stdin)
            source.seek(0)
        apart = files.enter_context(tempfile.TemporaryFile()) if raw else None
        child, outlet = _start(arguments, policy, cwd, env, source, apart, sink, reaper)
        code = await _ended(child, outlet, timeout)
        if filtering:
            add(filtering.close())
        said = "" if apart is None else _beginning(apart, filters)
    return Finished(
        code=await child.wait() if code is None else code,
        output=said if raw else plain(clip.text()),
        data=clip.data() if raw else b"",
        cut=clip.dropped > 0,
        timed_out=code is None,
        seconds=time.monotonic() - began,
        left=child.left,
    )


def _beginning(file: IO[bytes], filters: Callable[[], OutputFilter] | None) -> str:
    """The first bytes of a file as text."""
    file.seek(0)
    found = file.read(SAID_MAX)
    if filters is not None:
        filtering = filters()
        found = filtering.feed(found)
        if not file.read(1):  # what is held back of a cut stream may be half a secret
            found += filtering.close()
    return plain(found.decode("utf-8", "replace"))


def _start(
    arguments: list[str],
    policy: Confinement,
    cwd: Path,
    env: Mapping[str, str],
    stdin: int | IO[bytes],
    errors: IO[bytes] | None,
    sink: Callable[[bytes], None],
    reaper: bool,
) -> tuple[Child, Outlet]:
    ours, theirs = os.pipe()
    try:
        child = Child.start(
            arguments, policy=policy, cwd=cwd, env=env, stdin=stdin, output=theirs, errors=errors, reaper=reaper
        )
    except BaseException:  # on any error: no one else closes this end
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return child, Outlet(ours, sink)


async def _ended(child: Child, outlet: Outlet, timeout: float) -> int | None:
    """Wait for the command, then terminate what it left running and read the rest; None after a timeout."""
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
