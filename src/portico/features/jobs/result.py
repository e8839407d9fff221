"""The result of a step as later steps see it: `steps.ID`. It is one value of the job, in the same commit as the end of
the step. The results of `each` and `parallel` refer to those of their lanes."""

from typing import Any, Literal

import msgspec
from msgspec import Struct

from portico.features.jobs import events as je
from portico.features.jobs.state import LANE, LAST, RESULT, JobState
from portico.features.jobs.step import FlowStep
from portico.kernel import events as e

ResultOutcome = Literal["succeeded", "failed", "stopped", "skipped"]


class StepResult(Struct, omit_defaults=True):
    outcome: ResultOutcome
    output: Any = ""
    reason: str = ""
    checks: list[dict[str, Any]] = []
    answer: str = ""
    changes: list[str] = []
    commit: str = ""
    name: str = ""
    lanes: list[bool] | None = None
    """Of `each` and `parallel`: which lanes have succeeded."""
    path: str = ""
    """Where those lanes are: the prefix of their paths."""


class SessionPlace(Struct, omit_defaults=True):
    """The session of a step, as a later step continues it."""

    session: str
    turn: str
    """Its last turn; empty: the last one that has ended."""
    job: str


class Lane(Struct, omit_defaults=True):
    """An item of an `each`."""

    item: Any
    name: str
    variable: str
    outside: bool = False
    """It came from a payload, so prompts quote it."""


def ends_of(state: JobState) -> list[e.Event]:
    """The ends of the works in flight, when their job ends."""
    found: list[e.Event] = []
    for path, run in state.open.items():
        ended = je.WorkEnded(path=path, work=run.work, task=run.task, outcome="stopped")
        found += [*lost_result(state, ended), ended]
    return found


def lost_result(state: JobState, ended: je.WorkEnded, reason: str = "") -> list[e.Event]:
    """The result of a step that ends without its run. It is committed with the end, as that of any other step."""
    leaf = state.leaf(ended.work)
    if not isinstance(leaf, FlowStep) or ended.outcome not in ("failed", "stopped"):
        return []
    result = StepResult(ended.outcome, reason=reason, name=leaf.name)
    return [je.JobValue(path=ended.path, name=RESULT + leaf.id, value=encode(result))]


def encode(result: StepResult | SessionPlace) -> str:
    return msgspec.json.encode(result).decode()


def result_of(state: JobState, path: str, ident: str) -> StepResult | None:
    """The result of a step, seen from a path; None: it has not run."""
    text = state.nearest(path, RESULT + ident)
    return None if text is None else msgspec.json.decode(text, type=StepResult)


def shown(state: JobState, result: StepResult) -> dict[str, Any]:
    """The result with all names that a template can use."""
    found: dict[str, Any] = {
        "output": result.output,
        "outcome": result.outcome,
        "reason": result.reason,
        "checks": result.checks,
        "answer": result.answer,
        "changes": result.changes,
        "commit": result.commit,
        "name": result.name,
        "items": [],
        "failed": [],
    }
    if result.lanes is not None:
        items = [_lane(state, f"{result.path}{index}", passed) for index, passed in enumerate(result.lanes)]
        found["items"] = items
        found["failed"] = [each for each in items if each["outcome"] != "succeeded"]
        found["output"] = [each["output"] for each in items if each["outcome"] == "succeeded"]
        found["changes"] = sorted({path for each in items for path in each["changes"]})
    return found


def _lane(state: JobState, path: str, passed: bool) -> dict[str, Any]:
    text = state.latest.get(path, {}).get(LAST)
    last = StepResult("stopped") if text is None else msgspec.json.decode(text, type=StepResult)
    lane = lane_at(state, path)
    inner = shown(state, last)
    return {
        **inner,
        "outcome": "succeeded" if passed else "failed" if last.outcome == "succeeded" else last.outcome,
        "name": lane.name if lane is not None else last.name,
        "item": lane.item if lane is not None else None,
    }


def lane_at(state: JobState, path: str) -> Lane | None:
    text = state.values.get(path, {}).get(LANE)
    return None if text is None else msgspec.json.decode(text, type=Lane)
