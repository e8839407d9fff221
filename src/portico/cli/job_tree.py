"""The tree of a workflow with the state of its steps. Of a step that runs for many items it shows the counts, and the
items that run or have failed."""

import re
import time
from collections import Counter

from portico.cli.output import plain
from portico.features.jobs.entry import Again, Branches, If, Over, Seq, Work, parts_of
from portico.features.jobs.rows import JobRow, RowStatus
from portico.features.jobs.step import FlowStep

MARKS: dict[RowStatus, str] = {"running": "▶", "succeeded": "✔", "failed": "✘", "stopped": "■"}
SHOWN = 8
"""Rows of one step; `portico jobs show` has all of them."""
_NO_ID = re.compile(r"step_\d+|")
"""The ids of steps that have none in the file."""


def workflow_lines(work: Work, rows: list[JobRow], depth: int = 1) -> list[str]:
    by_work: dict[int, list[JobRow]] = {}
    for row in rows:
        by_work.setdefault(row.work, []).append(row)
    return _lines(work, by_work, depth)


def _lines(work: Work, rows: dict[int, list[JobRow]], depth: int) -> list[str]:
    if isinstance(work, FlowStep):
        return _step(work, rows.get(work.work_id_in_job, []), "  " * depth)
    title = _title(work)
    lines = [f"{'  ' * depth}{plain(title)}"] if title else []
    below = depth + bool(title)
    return lines + [line for _, child in parts_of(work) for line in _lines(child, rows, below)]


def _title(work: Work) -> str:
    match work:
        case Seq():
            return ""
        case Over():
            return f"each {work.item} of {work.each if isinstance(work.each, str) else f'{len(work.each)} items'}"
        case Branches():
            return "parallel"
        case Again():
            return f"loop (at most {work.most} rounds)"
        case If(when=str() as when):
            return f"if {when}"
        case If():
            return ""
    return type(work).__name__


def _step(step: FlowStep, rows: list[JobRow], indent: str) -> list[str]:
    if len(rows) <= 1:
        return [f"{indent}{row_line(rows[0])}" if rows else f"{indent}· {plain(label(step.id, step.name))}"]
    counts = Counter(row.status for row in rows)
    words = "  ".join(f"{counts[status]} {mark}" for status, mark in MARKS.items() if counts[status])
    shown = [row for row in rows if row.status in ("running", "failed")]
    more = [f"{indent}  … and {len(shown) - SHOWN} more"] if len(shown) > SHOWN else []
    return [
        f"{indent}{plain(label(step.id, step.name))}: {words}",
        *(f"{indent}  {row_line(row)}" for row in shown[:SHOWN]),
        *more,
    ]


def row_line(row: JobRow) -> str:
    ended = row.ended if row.ended is not None else int(time.time() * 1000)
    reason = f": {row.reason.partition(chr(10))[0]}" if row.reason else ""
    name = label(row.step, row_name(row))
    return f"{MARKS[row.status]} {plain(name + reason)} {max(0, ended - row.started) / 1000:.1f}s"


def label(step: str, name: str) -> str:
    """The id of a step and its name; only the name if the file gives no id."""
    return name if _NO_ID.fullmatch(step) or step == name else f"{step}: {name}"


def row_name(row: JobRow) -> str:
    """The name of a step with the items around it."""
    return f"{row.name} [{' / '.join(row.items)}]" if row.items else row.name
