"""Real tasks for any agent with any model, judged by checks that run: `portico agents bench`.

The thirty small ones are data: `fix.toml`, `rename.toml`, `write.toml`, `answer.toml`. `long.py` makes ten of 30 to 60
steps, `turns.toml` has some with a second message.
"""

import tomllib
from pathlib import Path

import msgspec

from portico.testing.tasks.long import long_tasks
from portico.testing.tasks.task import KINDS, BenchTask


def _load(kind: str) -> dict[str, BenchTask]:
    data = tomllib.loads(Path(__file__).with_name(f"{kind}.toml").read_text("utf-8"))
    common = {"kind": kind, "files": data.get("files", {})}
    return {each.name: each for each in msgspec.convert([common | table for table in data["task"]], list[BenchTask])}


TASKS = {name: task for kind in KINDS for name, task in _load(kind).items()}
"""The thirty small ones: 4 to 6 steps, one message."""
LONG = {task.name: task for task in long_tasks()} | _load("turns")
"""The second group: 30 to 60 steps, or two messages."""
