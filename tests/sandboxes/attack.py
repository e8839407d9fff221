"""A machine with secrets and listeners, and the attempts to reach them from a sandbox."""

import json
import os
import shlex
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from portico.sandbox import attempts
from portico.workspace.jail import closed

PYTHON = "/usr/bin/python3"


class Attacked:
    def __init__(self, folder: Path, ports: list[int], sockets: list[str], abstract: list[str]) -> None:
        self.work = folder / "work"
        self.home = folder / "user"
        self.portico = folder / "portico"
        self.other = folder / "other"
        self.facts: dict[str, Any] = {
            "folder": str(self.work),
            "secrets": [str(self.home / ".ssh/id_ed25519"), str(self.portico / "token"), str(self.other / "file")],
            "pid": os.getpid(),
            "ports": ports,
            "sockets": sockets,
            "abstract": abstract,
        }

    @property
    def line(self) -> str:
        source = Path(attempts.__file__).read_text()
        return shlex.join([PYTHON, "-I", "-c", source, json.dumps(self.facts)])

    def check(self, output: str) -> None:
        """Assert that all attempts failed and that nothing was changed."""
        found: dict[str, str] = json.loads(output[output.index("{") : output.rindex("}") + 1])
        assert len(found) > 25
        assert [name for name, result in found.items() if result == attempts.ESCAPED] == []
        assert os.listdir(self.work / ".git/hooks") == ["old"]
        assert "portico" not in (self.work / ".git/config").read_text()


@contextmanager
def attacked(folder: Path) -> Iterator[Attacked]:
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        path = f"/tmp/portico-attack-{os.getpid()}.sock"
        Path(path).unlink(missing_ok=True)
        unix.bind(path)
        unix.listen()
        stack.callback(Path(path).unlink)
        hidden = stack.enter_context(socket.socket(socket.AF_UNIX))
        hidden.bind(f"\0portico-attack-{os.getpid()}")
        hidden.listen()
        found = Attacked(folder, [tcp.getsockname()[1]], [path], [f"portico-attack-{os.getpid()}"])
        for secret in map(Path, found.facts["secrets"]):
            secret.parent.mkdir(parents=True, exist_ok=True)
            secret.write_text("secret")
        found.work.mkdir()
        subprocess.run(["git", "init", "-q", str(found.work)], check=True)
        hooks = found.work / ".git/hooks"
        for each in hooks.iterdir():
            each.unlink()
        (hooks / "old").write_text("old")
        stack.enter_context(closed(found.portico))
        yield found
