"""The items of an Each."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import msgspec

from portico.features.jobs.check import files_below
from portico.features.jobs.entry import Each
from portico.features.jobs.task_sessions import TaskCrash, detailed
from portico.workspace.glob import Glob


async def items_of(each: Each, cwd: str, values: Mapping[str, str]) -> list[str]:
    if each.items is not None:
        return each.items
    if each.files is not None:
        glob = Glob(each.files)
        return await asyncio.to_thread(lambda: [path for path in files_below(Path(cwd)) if glob.matches(path)])
    name = each.output or ""
    return _array(name, values.get(name))


def _array(name: str, text: str | None) -> list[str]:
    """Parse a JSON array: strings stay unchanged, other values are encoded as JSON."""
    try:
        found = msgspec.json.decode(text or "", type=list)
    except (ValueError, RecursionError):
        why = "and is not." if text is not None else "and is not there."
        reason = f"The output {name!r} should be a JSON array {why}"
        raise TaskCrash(detailed("Error", reason)) from None
    return [each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in found]
