"""The rows of a workflow: one for each step that has started, with the names of the items around it."""

from typing import Literal

import msgspec
from msgspec import Struct

from portico.features.jobs.result import StepResult, lane_at
from portico.features.jobs.state import RESULT, STATUSES, JobState, WorkStatus, up_from
from portico.features.jobs.step import FlowStep

RowStatus = WorkStatus
RowFilter = Literal["", "running", "succeeded", "failed", "stopped"]


class JobRow(Struct, omit_defaults=True):
    path: str
    work: int
    step: str
    """The id of the step."""
    name: str
    kind: str
    """`prompt`, `run`, `http`, `ask`, `wait`, `call` or `merge`."""
    task: str
    status: RowStatus
    started: int
    ended: int | None = None
    attempt: int = 1
    items: list[str] = []
    """The names of the items around it, from the outermost."""
    reason: str = ""
    """Of a failed step."""


def rows_of(state: JobState, status: RowFilter = "") -> list[JobRow]:
    """The rows in the order of their starts. A step that was kept from an earlier job has none."""
    rows = [_row(state, path) for path, run in state.runs.items() if run.work >= 0]
    return [row for row in rows if row is not None and status in ("", row.status)]


def _row(state: JobState, path: str) -> JobRow | None:
    run = state.runs[path]
    leaf = state.leaf(run.work)
    if not isinstance(leaf, FlowStep):
        return None
    text = state.values.get(path, {}).get(RESULT + leaf.id)
    result = StepResult("stopped") if text is None else msgspec.json.decode(text, type=StepResult)
    items = [lane.name for place in up_from(path) if (lane := lane_at(state, place)) is not None]
    return JobRow(
        path=path,
        work=run.work,
        step=leaf.id,
        name=result.name or leaf.name,
        kind=str(leaf.do.__struct_config__.tag),
        task=run.task,
        status="running" if run.outcome is None else STATUSES[run.outcome],
        started=run.started,
        ended=run.ended,
        attempt=run.attempt,
        items=items[::-1],
        reason=result.reason if run.outcome == "failed" else "",
    )
