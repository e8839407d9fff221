"""Thirty small tasks for any agent with any model, judged by checks that run: `python -m bench.tasks --help`.

They are data: `fix.toml`, `rename.toml`, `write.toml`, `answer.toml`.
"""

import tomllib
from pathlib import Path

import msgspec

from bench.tasks.task import KINDS, Task


def _load() -> dict[str, Task]:
    found = {}
    for kind in KINDS:
        data = tomllib.loads(Path(__file__).with_name(f"{kind}.toml").read_text("utf-8"))
        common = {"kind": kind, "files": data.get("files", {})}
        for each in msgspec.convert([common | table for table in data["task"]], list[Task]):
            found[each.name] = each
    return found


TASKS = _load()
