"""What a task is: files, what an agent is told, and a check that runs. The agent never sees the check."""

import re
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

KINDS = ("fix", "rename", "write", "answer")
CHECK_SECONDS = 30.0


class BenchTask(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    kind: str
    prompt: str
    files: dict[str, str]
    check: str = ""
    """Python, run in the folder afterwards: exit code 0 is a pass."""
    keep: list[str] = []
    """Files that have to stay as they are."""
    answer: str = ""
    """A regular expression that the agent's words have to match; then no file may be changed."""
    solution: dict[str, str] = {}
    """Files of one right solution: it shows that the task can be done, and is what the scripted model plays."""
    gone: list[str] = []
    """Files that this solution deletes."""
    said: str = "Done."
    """Its last words."""
    then: str = ""
    """A second message, after the first turn."""
    second: dict[str, str] = {}
    """Files of the solution of the second message."""


def lay_out(task: BenchTask, folder: Path) -> None:
    _write(folder, task.files)


def solve(task: BenchTask, folder: Path) -> None:
    """As the task's own solution does it."""
    _write(folder, task.solution | task.second)
    for name in task.gone:
        (folder / name).unlink()


def judge(task: BenchTask, folder: Path, said: str) -> str:
    """What is wrong with the result; empty: nothing."""
    kept = task.files if task.answer else task.keep
    changed = [name for name in kept if _read(folder / name) != task.files[name]]
    if changed:
        return f"it changed {', '.join(changed)}"
    if task.answer:
        return "" if re.search(task.answer, said, re.IGNORECASE) else f"it said {said.strip()[-200:]!r}"
    # Bytecode that an agent's own runs have left may be of the same second and size as the file, and of another text.
    command = [sys.executable, "-I", "-B", "-X", "pycache_prefix=/nonexistent", "-c"]
    command.append(f"import sys; sys.path.insert(0, '.')\n{task.check}")
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=CHECK_SECONDS, env={"LANG": "C"}
        )
    except subprocess.TimeoutExpired:
        return f"the check did not end within {CHECK_SECONDS:g} s"
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["the check failed"])[-1][:300]


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _read(path: Path) -> str | None:
    return path.read_text() if path.is_file() else None
