"""Merge the worktrees of lanes into the folder around them, in their order. All of it can be repeated after a kill."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from portico.features.jobs.flow_folders import FlowFolders
from portico.features.jobs.folders import MergeConflict, close_folder, commit_folder, merge_folder, unresolved
from portico.features.jobs.steps.outcome import StepOutcome
from portico.workspace.worktree import Worktree


class MergingLane(Struct):
    path: str
    name: str
    passed: bool


Resolve = Callable[[MergingLane, MergeConflict, str], Awaitable[str]]
"""Resolves a conflict of a lane in a folder. Returns why it could not."""


async def run(around: str, lanes: list[MergingLane], folders: FlowFolders, resolve: Resolve | None) -> StepOutcome:
    """`around`: the path of the lanes. A lane that failed is not merged; its branch stays."""
    parent = await folders.tree(around)
    assert parent is not None
    merged: list[str] = []
    for lane in lanes:
        child = await folders.tree(lane.path)
        assert child is not None
        await commit_folder(child, f"{lane.name}: changes that were not committed")
        if lane.passed and (wrong := await _merge(parent, child, lane, resolve)):
            return StepOutcome(False, wrong, output=merged)
        await close_folder(child, into=parent)
        folders.forget(lane.path)
        merged += [lane.name] if lane.passed else []
    commit = await commit_folder(parent, "merge")
    return StepOutcome(True, f"{len(merged)} of {len(lanes)} merged", output=merged, commit=commit)


async def _merge(parent: Worktree, child: Worktree, lane: MergingLane, resolve: Resolve | None) -> str:
    """Merge one lane. Returns what is wrong."""
    message = f"Merge {lane.name}"
    found = await merge_folder(parent, child, message, leave=resolve is not None)
    if found.conflict is None:
        return ""
    files = ", ".join(found.conflict.files)
    if resolve is None:
        return f"The merge of {lane.name!r} has conflicts in {files}:\n{found.conflict.text}"
    if wrong := await resolve(lane, found.conflict, parent.folder):
        return f"The conflicts of {lane.name!r} in {files} were not resolved: {wrong}"
    if left := await unresolved(parent, found.conflict):
        return f"The merge of {lane.name!r} still has conflict markers in {', '.join(left)}."
    await commit_folder(parent, message)
    return ""
