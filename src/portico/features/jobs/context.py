"""The names that templates can use at one place of a running job: steps, inputs, items, run and env."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from portico.features.jobs.result import StepResult, lane_at, result_of, shown
from portico.features.jobs.state import JobState, up_from
from portico.features.jobs.workflow.inputs import at_pointer, shown_inputs
from portico.features.jobs.workflow.quote import payload


class _Steps(Mapping[str, Any]):
    """Results by id. They are decoded when a template uses them."""

    def __init__(self, state: JobState, path: str) -> None:
        self._state = state
        self._path = path
        self._ids = state.job.flow.ids if state.job.flow is not None else []

    def __getitem__(self, ident: str) -> Any:
        found = result_of(self._state, self._path, ident)
        if found is None and ident not in self._ids:
            raise KeyError(ident)
        return shown(self._state, found or StepResult("skipped", output=None))

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def context_at(state: JobState, path: str, folder: str, attempt: int = 1) -> dict[str, Any]:
    summary = state.summary
    moment = datetime.fromtimestamp(summary.started / 1000, UTC)
    items: dict[str, Any] = {}
    for place in up_from(path):
        if (lane := lane_at(state, place)) is not None:
            items.setdefault(lane.variable, payload(lane.item) if lane.outside else lane.item)
    run = {
        "id": summary.id,
        "name": summary.name,
        "date": moment.date().isoformat(),
        "scheduled_at": state.trigger.get("scheduled_at") or moment.isoformat(),
        "payload": payload(state.trigger.get("payload")),
        "attempt": attempt,
        "folder": folder,
    }
    return {**items, "steps": _Steps(state, path), "inputs": _inputs(state), "run": run}


def _inputs(state: JobState) -> dict[str, Any]:
    """The inputs. Those from the payload are marked like the payload itself, and secrets are hidden."""
    spec = state.job.flow.inputs if state.job.flow is not None else {}
    data, shown = state.trigger.get("payload"), shown_inputs(spec, state.inputs)
    outside = {name for name, each in spec.items() if each.pointer and at_pointer(data, each.pointer) is not None}
    return {name: payload(value) if name in outside else value for name, value in shown.items()}
