"""Reads workflows without running them."""

from pathlib import Path
from typing import Any

from portico.features.drafts.shapes import PlannedWorkflow, Recipe, WorkflowInfo
from portico.features.jobs.chart import generate_chart
from portico.features.jobs.entry import Entry, leaves_of
from portico.features.jobs.preview import preview
from portico.features.jobs.recipes import recipes
from portico.features.jobs.step import Flow, JobInput
from portico.features.jobs.workflow.files import FILE_BYTES, find_workflow, load_text, load_workflow, workflows
from portico.features.jobs.workflow.inputs import check_inputs
from portico.features.jobs.workflow.problem import FileProblem, WorkflowError, did_you_mean
from portico.kernel.errors import BadRequest, NotFound


def listed(folder: Path) -> list[WorkflowInfo]:
    """The workflows of a folder. One with a mistake is listed with it."""
    return [_info(name, path) for name, path in workflows(folder).items()]


def recipe_list() -> list[Recipe]:
    found = []
    for name, path in recipes().items():
        info = _info(name, path)
        found.append(Recipe(name, info.about, info.steps, info.inputs, text=path.read_text()))
    return found


def _info(name: str, path: Path) -> WorkflowInfo:
    try:
        entry = load_workflow(path)
    except (WorkflowError, NotFound) as error:
        return WorkflowInfo(name, mistake=error.message.partition("\n")[0])
    flow = _flow(entry, name)
    return WorkflowInfo(name, flow.about, len(list(leaves_of(entry.jobs[name].work))), flow.inputs)


def plan_file(folder: Path, name: str, given: dict[str, Any]) -> PlannedWorkflow:
    path = find_workflow(folder, name)
    if path is None:
        raise NotFound("workflow", name, did_you_mean(name, list(workflows(folder))).strip())
    try:
        entry = load_workflow(path)
    except WorkflowError as error:
        text = path.read_bytes()[:FILE_BYTES].decode(errors="replace")
        return PlannedWorkflow(name, text, mistakes=error.problems)
    return _planned(entry, name, given)


def plan_text(text: str, name: str, given: dict[str, Any]) -> PlannedWorkflow:
    try:
        if len(text.encode()) > FILE_BYTES:
            return _refused(name, f"The text has more than {FILE_BYTES} bytes.")
        entry = load_text(text, f"<{name}>", name)
    except UnicodeEncodeError:
        return _refused(name, "The text is not UTF-8.")
    except WorkflowError as error:
        return PlannedWorkflow(name, text, mistakes=error.problems)
    return _planned(entry, next(iter(entry.jobs)), given)


def _refused(name: str, words: str) -> PlannedWorkflow:
    return PlannedWorkflow(name, "", mistakes=[FileProblem(1, 1, "", words)])


def _planned(entry: Entry, name: str, given: dict[str, Any]) -> PlannedWorkflow:
    flow = _flow(entry, name)
    missing = ""
    try:
        inputs = check_inputs(flow.inputs, given)
    except BadRequest as error:
        missing = error.message
        inputs = _known(flow.inputs, given)
    chart = generate_chart(entry.jobs[name].work)
    return PlannedWorkflow(name, flow.source, flow.inputs, chart, preview(entry, name, inputs), missing)


def _known(spec: dict[str, JobInput], given: dict[str, Any]) -> dict[str, Any]:
    """The inputs that can be filled in."""
    found: dict[str, Any] = {}
    for name, each in spec.items():
        try:
            found.update(check_inputs({name: each}, {name: given[name]} if name in given else {}))
        except BadRequest:
            continue
    return found


def _flow(entry: Entry, name: str) -> Flow:
    flow = entry.jobs[name].flow
    assert flow is not None
    return flow
