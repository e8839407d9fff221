"""A command in a real terminal: what a person sees and types."""

import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path
from types import TracebackType

from tests.process import PORTICO, environment


class TerminalCommand:
    def __init__(self, home: Path, *args: str) -> None:
        self._screen, inner = pty.openpty()
        self._seen = ""
        self.process = subprocess.Popen(
            [PORTICO, *args],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            cwd=home.parent,
            env=environment(PORTICO_HOME=str(home), TERM="xterm"),
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(inner)

    def expect(self, pattern: str, seconds: float = 60) -> str:
        """Everything up to the pattern, which must come in time."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self._seen)):
            ready, _, _ = select.select([self._screen], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"no {pattern!r} in {self._seen!r}"
            data = self._read()
            assert data, f"ended without {pattern!r}: {self._seen!r}"
            self._seen += data
        before, self._seen = self._seen[: found.end()], self._seen[found.end() :]
        return before

    def enter(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def finish(self, seconds: float = 60) -> tuple[int, str]:
        """The exit code and the rest of the screen."""
        end = time.monotonic() + seconds
        while select.select([self._screen], [], [], max(0.0, end - time.monotonic()))[0]:
            data = self._read()
            if not data:
                break
            self._seen += data
        return self.process.wait(seconds), self._seen

    def _read(self) -> str:
        try:
            return os.read(self._screen, 65536).decode("utf-8", "replace")
        except OSError:  # Linux says so when the other side is closed
            return ""

    def __enter__(self) -> "TerminalCommand":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._screen)


def _take_terminal() -> None:
    """Makes the terminal the command's own, so that Ctrl-C typed into it arrives as a signal."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
