"""The real programs, as users start them: a host in its own process, and the command line against it."""

import contextlib
import ctypes
import io
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from portico.cli import main
from portico.workspace import adoption

PORTICO = str(Path(sys.executable).parent / "portico")


def environment(**more: str) -> dict[str, str]:
    """Without what the tests' own shell says about Portico, colours or terminals."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PORTICO_", "FORCE_", "NO_COLOR"))
    }
    return {**kept, "TERM": "dumb", "COLUMNS": "120", **more}


def needs_openssl() -> None:
    """It makes the certificates of tests."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed here")


@contextlib.contextmanager
def watchdog(process: "subprocess.Popen[Any]", seconds: float = 60) -> Iterator[None]:
    """A process that hangs is killed, so that whoever reads from it fails and does not hang too."""
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextlib.contextmanager
def running(home: Path, *args: str, **env: str) -> "Iterator[subprocess.Popen[str]]":
    """A command with its output on pipes, to be read while it runs."""
    with (
        subprocess.Popen(
            [PORTICO, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=home.parent,
            env=environment(PORTICO_HOME=str(home), **env),
        ) as process,
        watchdog(process),
    ):
        yield process


class HostProcess:
    """`with HostProcess(home) as host:` runs `portico serve` on a free port until the block ends."""

    def __init__(self, home: Path, *args: str, port: int = 0, **env: str) -> None:
        self.home = home
        self.log_path = home.parent / f"{home.name}.stderr"
        self._log = self.log_path.open("ab")
        self.process = subprocess.Popen(
            [PORTICO, "serve", str(port), "--print-ready", "--agent", "scripted", "--agent", "demo", *args],
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=home.parent,
            env=environment(PORTICO_HOME=str(home), **env),
        )
        assert self.process.stdout is not None
        with watchdog(self.process):
            line = self.process.stdout.readline().decode()
        assert line.startswith("READY:"), line + self.log()
        self.port = int(line.removeprefix("READY:"))
        self.url = f"http://127.0.0.1:{self.port}"

    def log(self) -> str:
        return self.log_path.read_text("utf-8")

    def wait_for_log(self, text: str) -> str:
        """The first line with this text; it may come a moment after the port is open."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found = next((line for line in self.log().splitlines(keepends=True) if text in line), "")
            if found.endswith("\n"):
                return found.strip()
            time.sleep(0.02)
        raise AssertionError(f"no {text!r} in {self.log()}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(60)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()
        return code

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def __enter__(self) -> "HostProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(signal.SIGKILL if error else signal.SIGTERM)


def portico(
    home: Path, *args: str, text: str = "", timeout: float = 30, **env: str
) -> "subprocess.CompletedProcess[str]":
    """One command, without a terminal."""
    return subprocess.run(
        [PORTICO, *args],
        input=text,
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=home.parent,
        env=environment(PORTICO_HOME=str(home), **env),
        check=False,
    )


def inside(home: Path, *args: str, text: str = "", **env: str) -> "subprocess.CompletedProcess[str]":
    """The same command in this process: the same `main`, without the half second that a new Python takes."""
    out, err, folder, before = io.StringIO(), io.StringIO(), os.getcwd(), (sys.argv, sys.stdin, dict(os.environ))
    sys.argv, sys.stdin = ["portico", *args], io.StringIO(text)
    os.environ.clear()
    os.environ.update(environment(PORTICO_HOME=str(home), **env))
    os.chdir(home.parent)
    handlers, level = logging.root.handlers[:], logging.root.level
    code: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as ended:
        code = ended.code or 0
    finally:
        logging.root.handlers[:] = handlers  # `serve` sets up its own
        logging.root.setLevel(level)
        os.chdir(folder)
        sys.argv, sys.stdin = before[:2]
        os.environ.clear()
        os.environ.update(before[2])
        adopt_nobody()
    assert isinstance(code, int)
    return subprocess.CompletedProcess(["portico", *args], code, out.getvalue(), err.getvalue())


def adopt_nobody() -> None:
    """`serve` makes its process the parent of orphans. The tests' own must not be: nobody would reap them there."""
    if adoption._become is not None:
        ctypes.CDLL(None).prctl(adoption._SUBREAPER, 0, 0, 0, 0)
        adoption._become = None
