"""The values of a running workflow: items, conditions, folders and results. Everything that decides which step is
next is recorded before it is used, so that a replay sees the same."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

import portico.features.jobs.step as declared
from portico import limits
from portico.features.jobs import events as je
from portico.features.jobs.artifacts import keep_artifacts
from portico.features.jobs.check import files_below
from portico.features.jobs.context import context_at
from portico.features.jobs.entry import Again, Branches, Flowing, If, Over
from portico.features.jobs.flow_folders import FlowFolders
from portico.features.jobs.result import Lane, SessionPlace, StepResult, encode, lane_at
from portico.features.jobs.services import Services
from portico.features.jobs.state import ITEMS, LANE, LAST, RESULT, SESSION, JobState
from portico.features.jobs.step import FlowStep
from portico.features.jobs.step_values import StepValues
from portico.features.jobs.steps.ask import diff_of
from portico.features.jobs.steps.merge import MergingLane
from portico.features.jobs.task_sessions import TaskCrash, detailed
from portico.features.jobs.work import ROOT, work_at
from portico.features.jobs.workflow import template
from portico.features.jobs.workflow.inputs import HIDDEN, secrets_of
from portico.features.jobs.workflow.quote import Payload, unmarked
from portico.kernel import events as e
from portico.kernel.errors import BadRequest, PorticoError
from portico.kernel.host import Host
from portico.workspace.glob import Glob


class Left(Struct):
    result: Any
    artifacts: list[je.Artifact]


HOLDS = "holds"
"""The name of the value of a condition: 1 or 0."""
NAMED_LANES = 20
"""Failed items that the reason of a step names; `steps.ID.failed` has all of them."""
_NAME_CHARS = 100
_FILES = "files:"


class FlowValues:
    def __init__(self, host: Host, state: JobState, services: Services, put: Callable[..., Awaitable[None]]) -> None:
        self._host = host
        self._state = state
        self._services = services
        self._put = put
        self.folders = FlowFolders(state, put, self._branch)

    def _branch(self) -> str:
        """The branch of the run's worktree."""
        summary, flow = self._state.summary, self._state.job.flow
        declared = flow.branch if flow is not None else ""
        return template.render(declared, self.context(ROOT)) or f"portico/{summary.name}/{summary.id}"

    # -- values ------------------------------------------------------------------------------------------------

    def context(self, path: str, attempt: int = 1) -> dict[str, Any]:
        return context_at(self._state, path, self._state.summary.cwd, attempt)

    async def values(self, path: str, step: FlowStep, attempt: int, fresh: bool = True) -> StepValues:
        """What a step works with. Raises if a template of its environment fails or a secret is missing. `fresh`: it
        does not continue the work of an earlier process."""
        cwd = await self.folders.folder(path)
        context = self.context(path, attempt)
        commit = ""
        if step.at:
            named = template.render(step.at, context).strip()
            if not named:
                words = f"{step.at} is empty: that step has left no commit. Only a prompt in a worktree leaves one."
                raise BadRequest(f"'at' should be a commit, and {words}", field="at")
            tree = await self.folders.at(path, named, fresh)
            cwd, commit = tree.folder, tree.base
        context["run"]["folder"] = cwd
        public = dict(context)
        spec = self._state.job.flow.inputs if self._state.job.flow is not None else {}
        references = {name: self._state.inputs.get(name) or "" for name in step.secret_inputs}
        if references:
            passed_on = isinstance(step.do, declared.CallDo)
            context["inputs"] = {
                **context["inputs"],
                **(references if passed_on else await self._services.inputs(references)),
            }
        granted = await self._services.secrets(step.secrets)
        context["env"] = {name: template.render(value, context) for name, value in step.env.items()}
        public["env"] = context["env"]
        if references:
            public["env"] = {name: template.render_public(value, public) for name, value in step.env.items()}
        if step.secrets:
            context["secrets"] = granted.env
            public["secrets"] = dict.fromkeys(granted.env, HIDDEN)
        hidden = secrets_of(spec) - references.keys()
        more: dict[str, Any] = {"secrets": granted.env, "hidden": hidden, "mask": granted.mask}
        return StepValues(context=context, public=public, cwd=cwd, commit=commit, **more)

    def session(self, path: str, name: str) -> SessionPlace | None:
        """The session that a step continues; None: the steps before it have none."""
        text = self._state.nearest(path, SESSION + name)
        return None if text is None else msgspec.json.decode(text, type=SessionPlace)

    async def diff(self, path: str) -> str:
        """What the run has changed so far."""
        tree = await self.folders.tree(path)
        return await diff_of(self._state.summary.cwd) if tree is None else await diff_of(tree.folder, tree.base)

    def merging(self, path: str) -> list[MergingLane]:
        """The lanes that the merge at this path is about."""
        around = path.removesuffix("+")
        work = work_at(self._state.job.work, around)
        assert isinstance(work, Over | Branches)
        result = msgspec.json.decode(self._state.values[around][RESULT + work.id], type=StepResult)
        return [
            MergingLane(f"{result.path}{index}", self._lane_name(work, result.path, index), passed)
            for index, passed in enumerate(result.lanes or [])
        ]

    def name(self, path: str, step: FlowStep) -> str:
        """The name of a step at one place, with the names of the items around it."""
        try:
            name = " ".join(template.render(step.name, self.context(path)).split())  # one line in lists
            return name if len(name) <= _NAME_CHARS else f"{name[: _NAME_CHARS - 1]}…"
        except PorticoError:
            return step.name

    async def leave(self, flow: declared.Flow) -> Left:
        """What the job leaves when it ends: its result, its artifacts and its branch."""
        mask = (await self._services.secrets([])).mask
        try:
            folder = await self.folders.folder(ROOT) if self.folders.is_open else self._state.summary.cwd
            kept = await keep_artifacts(self._host.log, Path(folder), flow.artifacts, mask)
            await self.folders.close()
        except PorticoError as error:
            self._host.logger.warning("job %s: %s", self._state.summary.id, error.message)
            kept = []
        try:
            result = mask.document(unmarked(template.evaluate(flow.result, self.context(ROOT))))
        except PorticoError as error:
            result = f"The result could not be computed: {error.message}"
        return Left(result, kept)

    # -- what the interpreter asks for -------------------------------------------------------------------------

    async def lanes(self, path: str, over: Over) -> int:
        known = self._state.values.get(path, {}).get(ITEMS)
        if known is None:
            items = await self._items(path, over)
            lanes = [self._lane(path, index, item, over) for index, item in enumerate(items)]
            known = str(len(items))
            await self._put(*lanes, je.JobValue(path=path, name=ITEMS, value=known))
        return int(known)

    async def _items(self, path: str, over: Over) -> list[Any]:
        found = _guarded(over.id, lambda: template.evaluate(over.each, self.context(path)))
        if isinstance(found, str) and found.startswith(_FILES):
            glob, folder = Glob(found.removeprefix(_FILES)), Path(self._state.summary.cwd)
            found = await asyncio.to_thread(lambda: [each for each in files_below(folder) if glob.matches(each)])
        if not isinstance(found, list):
            raise crash(over.id, f"'each' should be a list, not {template.text_of(found)[:100]!r}.")
        if len(found) > limits.EACH_ITEMS:
            raise crash(over.id, f"'each' takes at most {limits.EACH_ITEMS} items, not {len(found)}.")
        return found

    def _lane(self, path: str, index: int, item: Any, over: Over) -> je.JobValue:
        name = template.text_of(item)
        if over.name:
            context = {**self.context(path), over.item: item}
            name = _guarded(over.id, lambda: template.render(over.name, context))
        lane = Lane(unmarked(item), name[:_NAME_CHARS], over.item, isinstance(item, Payload))
        return je.JobValue(path=f"{path}*{index}", name=LANE, value=msgspec.json.encode(lane).decode())

    async def holds(self, path: str, flowing: Flowing, place: str) -> bool:
        known = self._state.values.get(place, {}).get(HOLDS)
        if known is None:
            text = flowing.until if isinstance(flowing, Again) else flowing.when if isinstance(flowing, If) else None
            assert text is not None
            key = "until" if isinstance(flowing, Again) else "if"
            known = str(int(_guarded(key, lambda: template.holds(text, self.context(place)))))
            await self._put(je.JobValue(path=place, name=HOLDS, value=known))
        return known == "1"

    async def close(self, path: str, flowing: Flowing, lanes: list[bool], merged: bool = True) -> None:
        name = RESULT + flowing.id
        if merged and name in self._state.values.get(path, {}):
            return
        passed = all(lanes) and merged
        events: list[e.Event] = []
        if isinstance(flowing, Over | Branches):
            mark = "*" if isinstance(flowing, Over) else "."
            result = StepResult("succeeded" if passed else "failed", lanes=lanes, path=path + mark)
            if not passed:
                result.reason = self._failed(flowing, result)
            if not passed and not flowing.may_fail:
                events.append(je.JobDecided(path=path, reason=result.reason))
        else:
            text = self._state.latest.get(path, {}).get(LAST)
            result = StepResult("skipped") if text is None else msgspec.json.decode(text, type=StepResult)
            result.outcome = result.outcome if text is None else "succeeded" if passed else "failed"
        await self._put(*events, je.JobValue(path=path, name=name, value=encode(result)))

    def _failed(self, flowing: Over | Branches, result: StepResult) -> str:
        assert result.lanes is not None
        word = "items" if isinstance(flowing, Over) else "branches"
        failed = [index for index, passed in enumerate(result.lanes) if not passed]
        if not failed:
            return "The merge failed"
        names = [self._lane_name(flowing, result.path, index) for index in failed[:NAMED_LANES]]
        more = f" and {len(failed) - NAMED_LANES} more" if len(failed) > NAMED_LANES else ""
        return f"{len(failed)} of {len(result.lanes)} {word} failed: {', '.join(names)}{more}"

    def _lane_name(self, flowing: Over | Branches, prefix: str, index: int) -> str:
        lane = lane_at(self._state, f"{prefix}{index}")
        if lane is not None:
            return lane.name
        return flowing.names[index] if isinstance(flowing, Branches) and index < len(flowing.names) else str(index)

    # -- why it failed -----------------------------------------------------------------------------------------

    def failure(self, error: str) -> str:
        """The step that failed and why, with the failed items of the `each` around it."""
        state = self._state
        group = state.summary.reason
        for path, run in reversed(state.runs.items()):
            leaf = state.leaf(run.work) if run.work >= 0 else None
            if run.outcome != "failed" or not isinstance(leaf, FlowStep) or leaf.may_fail:
                continue
            text = state.values.get(path, {}).get(RESULT + leaf.id)
            if text is not None:
                result = msgspec.json.decode(text, type=StepResult)
                reason = f"{result.name or leaf.name}: {result.reason}"
                return f"{group}. {reason}" if group and not error else reason
        return group or error


def crash(ident: str, message: str) -> TaskCrash:
    return TaskCrash(detailed("Error", f"{ident}: {message}"))


def _guarded(ident: str, work: Callable[[], Any]) -> Any:
    try:
        return work()
    except PorticoError as error:
        raise crash(ident, error.message) from None
