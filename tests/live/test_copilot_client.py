"""The real Copilot CLI as a client of the AHP door, in a terminal: what docs/guide/editors.md tells its users to do."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.live.programs import COPILOT, START_SECONDS, copilot_cache
from tests.process import HostProcess, environment

pytestmark = pytest.mark.live

GUIDE = (Path(__file__).parents[2] / "docs/guide/editors.md").read_text("utf-8")
_ESCAPES = re.compile(rb"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]|\x1b[=>78]")
_QUESTIONS = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?62c"}
"""What a program asks its terminal, and a terminal's answers."""


class Screen:
    """A program in a pseudo-terminal; `text` is all that it has drawn since somebody last looked."""

    def __init__(self, command: list[str], cwd: Path, env: dict[str, str]) -> None:
        self._fd, inner = pty.openpty()
        self._columns = 120
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, self._columns, 0, 0))
        self._program = subprocess.Popen(
            command, stdin=inner, stdout=inner, stderr=inner, cwd=cwd, env=env, start_new_session=True
        )
        os.close(inner)
        self.text = ""

    def close(self) -> None:
        self._program.kill()
        self._program.wait()
        os.close(self._fd)

    def press(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def until(self, condition: Callable[[], Any], pause: float = 0.2, quiet: Callable[[], None] = lambda: None) -> Any:
        """Looks again after whatever is drawn, and after a pause in which nothing is."""
        end = time.monotonic() + START_SECONDS
        while not (found := condition()):
            assert time.monotonic() < end, self.text[-3000:]
            if select.select([self._fd], [], [], pause)[0]:
                self._take(os.read(self._fd, 1 << 16))
            else:
                quiet()
        return found

    def _take(self, drawn: bytes) -> None:
        for question, answer in _QUESTIONS.items():
            if question in drawn:
                os.write(self._fd, answer)
        self.text += _ESCAPES.sub(b"", drawn).decode("utf-8", "replace")

    def shows(self, words: str) -> None:
        """Of a text that grew only the end may have been drawn: "lo!" after "Hel"."""
        self.until(lambda: words in self.text, 2, self._draw_again)

    def _draw_again(self) -> None:
        self._columns ^= 1
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, self._columns, 0, 0))
        self._program.send_signal(signal.SIGWINCH)

    def type(self, line: str) -> None:
        """A line, and its end by itself: both at once would be taken for something that was pasted."""
        self.text = ""
        self.press(line)
        self.shows(line)
        self.press("\r")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[HostProcess]:
    (tmp_path / "work").mkdir()
    (tmp_path / "walk.yaml").write_text(GUIDE.partition("```yaml\n")[2].partition("```")[0])
    given = ["--script", str(tmp_path / "walk.yaml"), "--workspace", str(tmp_path / "work")]
    with HostProcess(tmp_path / "home", *given) as host:
        yield host


def test_a_message_and_an_approval(host: HostProcess, tmp_path: Path) -> None:
    assert COPILOT.exists(), "Copilot is not installed; run tests/live/install.sh"
    token = (host.home / "token").read_text().strip()
    [line] = re.findall(r"^export (COPILOT_.*)$", GUIDE, re.MULTILINE)
    [flag] = re.findall(r"^(COPILOT_CLI_\w+=\w+) copilot --ahp", GUIDE, re.MULTILINE)
    told = dict(each.split("=", 1) for each in [*line.split(), flag])
    env = environment(**told, HOME=str(tmp_path), XDG_CACHE_HOME=str(copilot_cache()))
    address = f"ws://127.0.0.1:{host.port}/?tkn={token}"
    command = [str(COPILOT), "--no-auto-update", "--ahp", address]
    screen = Screen(command, tmp_path / "work", {**env, "TERM": "xterm-256color"})
    http = httpx.Client(base_url=host.url, headers={"Authorization": f"Bearer {token}"}, timeout=30)

    def turns() -> list[dict[str, Any]]:
        found = http.get("/v1/sessions").json()["sessions"]
        return http.get(f"/v1/sessions/{found[0]['id']}").json()["turns"] if found else []

    try:
        screen.shows("Do you trust")
        screen.press("\r")
        screen.shows("Connected to")
        screen.type("hello")
        screen.until(lambda: [turn.get("outcome") for turn in turns()] == ["completed"])
        screen.shows("Hello")
        screen.type("run touch a <!-- b -->")
        screen.shows("Allow once")
        assert '"touch a <!-- b -->"' in screen.text
        screen.press("\r")
        turn = screen.until(lambda: turns()[1] if turns()[1].get("outcome") else None)
        [approval] = turn["parts"][0]["approvals"]
        assert (turn["outcome"], approval["allowed"], approval["command"]) == ("completed", True, "touch a <!-- b -->")
        screen.shows("it ran")
    finally:
        screen.close()
        http.close()
