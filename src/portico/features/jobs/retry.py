"""Run a workflow again from one of its steps: what succeeded before it is kept, also if the file has changed.

Steps are found in the changed file by their ids. Positions inside of items and rounds stay, so a step that moved to
another place of the file keeps its results."""

import difflib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from portico.features.jobs.commands import RetryPlanned
from portico.features.jobs.entry import Entry, If, Job, Work, leaves_of, parts_of
from portico.features.jobs.result import StepResult
from portico.features.jobs.state import BRANCH, ITEMS, LANE, RESULT, JobState
from portico.features.jobs.step import FlowStep
from portico.features.jobs.work import ROOT
from portico.features.jobs.workflow.files import find_workflow, load_text, load_workflow
from portico.features.jobs.workflow.inputs import check_inputs, secrets_of
from portico.features.jobs.workflow.problem import did_you_mean
from portico.kernel.errors import BadRequest, NotFound

_TURNS = re.compile(r"([*#])\d+")


class Kept(Struct):
    """What the new job takes over: outcomes and values by path."""

    done: dict[str, bool] = {}
    values: dict[str, dict[str, str]] = {}


def kept_before(state: JobState, job: Job, step: str) -> Kept:
    """What remains of a job if it runs again from a step of `job`, which is the old or a changed file."""
    numbers = {leaf.id: leaf.work_id_in_job for leaf in leaves_of(job.work) if isinstance(leaf, FlowStep)}
    first = _first_number(job.work, step, numbers)
    moved = _moved(state.job.work, job.work)
    kept = Kept()
    commit = ""
    for path, run in state.runs.items():
        leaf = state.leaf(run.work) if run.work >= 0 else None
        if not isinstance(leaf, FlowStep) or numbers.get(leaf.id, first) >= first:
            continue
        place = _translated(path, moved)
        text = state.values.get(path, {}).get(RESULT + leaf.id)
        if place is None or text is None or not (run.outcome == "succeeded" or leaf.may_fail):
            continue
        kept.done[place] = run.outcome == "succeeded"
        kept.values[place] = dict(state.values[path])
        if not leaf.at:  # it worked at an earlier commit
            commit = msgspec.json.decode(text, type=StepResult).commit or commit
    _keep_items(state, job.work, moved, first, kept)
    if commit:
        kept.values[ROOT] = {BRANCH: commit}  # its worktree begins there
    return kept


def kept_results(state: JobState) -> Kept:
    """What remains of a job that is resumed: everything that succeeded. Conditions and groups are computed again."""
    runs = {path: run.outcome for path, run in state.runs.items()}
    done = {path: True for path, outcome in runs.items() if outcome == "succeeded"}
    values = {
        path: {name: value for name, value in found.items() if path in done or name in (ITEMS, LANE, BRANCH)}
        for path, found in state.values.items()
    }
    return Kept(done, {path: found for path, found in values.items() if found})


def _first_number(work: Work, step: str, numbers: dict[str, int]) -> int:
    """The number of a step, or of the first step in a group."""
    if step in numbers:
        return numbers[step]
    for _, node in _nodes(work):
        if getattr(node, "id", "") == step:
            return min(leaf.work_id_in_job for leaf in leaves_of(node))
    known = [*numbers, *(ident for _, node in _nodes(work) if (ident := getattr(node, "id", "")))]
    raise NotFound("step", step, did_you_mean(step, list(dict.fromkeys(known))).strip())


def _nodes(work: Work, place: str = ROOT) -> Iterator[tuple[str, Work]]:
    """All works with their places; an item or a round has no number there."""
    yield place, work
    for key, child in parts_of(work):
        yield from _nodes(child, place + _segment(work, key))


def _segment(work: Work, key: str) -> str:
    if isinstance(work, If):
        return "|1" if key == ".then" else "|0"
    if key == ".merge":
        return "+"
    index = re.search(r"\[(\d+)\]$", key)
    if index is not None:
        return f".{index[1]}"
    return "*" if type(work).__name__ == "Over" else "#"


def _moved(old: Work, new: Work) -> dict[str, str]:
    """The new place of each work: by its id, or the same place for works without one."""
    places = {ident: place for place, node in _nodes(new) if (ident := getattr(node, "id", ""))}
    same = {place: type(node) for place, node in _nodes(new)}
    found: dict[str, str] = {}
    for place, node in _nodes(old):
        ident = getattr(node, "id", "")
        if ident and ident in places:
            found[place] = places[ident]
        elif not ident and same.get(place) is type(node):
            found[place] = place
    return found


def _translated(path: str, moved: dict[str, str]) -> str | None:
    """The path in the new tree with the same items and rounds; None: there is none."""
    place = moved.get(_TURNS.sub(r"\1", path))
    turns = _TURNS.findall(path), re.findall(r"[*#]\d+", path)
    if place is None or re.findall(r"[*#]", place) != turns[0]:
        return None
    numbers = iter(turns[1])
    return re.sub(r"[*#]", lambda _: next(numbers), place)


def _keep_items(state: JobState, work: Work, moved: dict[str, str], first: int, kept: Kept) -> None:
    """Keep the items of each `each` that begins before the step."""
    begins = {place: min(leaf.work_id_in_job for leaf in leaves_of(node)) for place, node in _nodes(work)}
    for path, values in state.values.items():
        if ITEMS not in values or (place := _translated(path, moved)) is None:
            continue
        if begins[_TURNS.sub(r"\1", place)] < first:
            kept.values.setdefault(place, {})[ITEMS] = values[ITEMS]
            for index in range(int(values[ITEMS])):
                kept.values.setdefault(f"{place}*{index}", {})[LANE] = state.values[f"{path}*{index}"][LANE]


class RetryPlan(Struct):
    entry: Entry
    kept: Kept
    inputs: dict[str, Any]


def planned_again(state: JobState, step: str, text: str) -> RetryPlan:
    """The job that runs again: its file, what it keeps and its inputs."""
    flow, summary = state.job.flow, state.summary
    if flow is None:
        raise BadRequest("Only a workflow can be retried from a step. Use: portico jobs resume", field="step")
    if not summary.done:
        raise BadRequest(f"The job {summary.id!r} has not ended. Stop it first.", field="job")
    entry = load_text(text, flow.file, summary.name) if text else state.entry
    job = entry.jobs[summary.name]
    assert job.flow is not None
    secret = secrets_of(flow.inputs) - secrets_of(job.flow.inputs)  # the reference to a secret is no other value
    given = {name: value for name, value in state.inputs.items() if name in job.flow.inputs and name not in secret}
    return RetryPlan(entry, kept_before(state, job, step) if step else Kept(), check_inputs(job.flow.inputs, given))


def planned_retry(state: JobState, step: str, text: str) -> RetryPlanned:
    """How the workflow differs from the one that ran, and what is kept. Without a text: its file as it is now."""
    flow = state.job.flow
    if flow is None:
        raise BadRequest("Only a workflow can be retried from a step. Use: portico jobs resume", field="step")
    text = text or _current(state) or flow.source
    changed = text != flow.source
    kept = planned_again(state, step, text if changed else "").kept
    numbers = {state.runs[path].work for path in state.runs if path in kept.done and state.runs[path].work >= 0}
    lines = difflib.unified_diff(flow.source.splitlines(), text.splitlines(), "as it ran", "now", lineterm="")
    ids = [leaf.id for number in sorted(numbers) if isinstance(leaf := state.leaf(number), FlowStep)]
    return RetryPlanned(text, "\n".join(lines) if changed else "", ids)


def _current(state: JobState) -> str:
    """The text of the file in the folder; empty, if there is none or it ran from a text."""
    flow = state.job.flow
    path = find_workflow(Path(state.summary.cwd), state.summary.name)
    if flow is None or path is None or str(path) != flow.file:
        return ""
    now = load_workflow(path).jobs[state.summary.name].flow
    return now.source if now is not None else ""
