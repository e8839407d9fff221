"""One run of a step of a workflow. It is a task like any other: every client of tasks sees it, a stop ends it, and a
restart resumes it. Its result, with the reason of a failure, is committed together with its end."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any

from msgspec.structs import replace

from portico.features.jobs import events as je
from portico.features.jobs.check import Checked, check_command, json_of
from portico.features.jobs.entry import ANSWER, Check, Criteria, FilesCheck
from portico.features.jobs.flow import FlowValues
from portico.features.jobs.folders import MergeConflict
from portico.features.jobs.judge_check import value_of
from portico.features.jobs.result import SessionPlace, StepResult, encode
from portico.features.jobs.resume import Resumed
from portico.features.jobs.services import Services
from portico.features.jobs.state import SESSION, JobSummary
from portico.features.jobs.step import AskDo, CallDo, FlowStep, HttpDo, MergeDo, PromptDo, RunDo, WaitDo
from portico.features.jobs.step_values import StepValues
from portico.features.jobs.steps import ask, call, http, merge, run, wait
from portico.features.jobs.steps.outcome import StepOutcome
from portico.features.jobs.task_run import TaskPlan, TaskResult, TaskRun
from portico.features.jobs.tools import Report
from portico.features.sandboxes.feature import confine_required
from portico.features.sandboxes.record import record_of
from portico.kernel.errors import PorticoError
from portico.kernel.events import Json
from portico.kernel.host import Host
from portico.kernel.log.log import NOT_WRITTEN
from portico.kernel.question import Asking

_RESOLVED, _GIVE_UP = "They are resolved", "Give up"
_TAG = re.compile(r"^\[[A-Z ]+\] (?:Decision: |Task error: )?")


class StepContext:
    """What a run of a step gets from its job."""

    def __init__(self, step: FlowStep, flow: FlowValues, path: str, services: Services, job: JobSummary) -> None:
        self.step = step
        self.flow = flow
        self.path = path
        self.services = services
        self.job = job
        self.until: Callable[[StepValues], Awaitable[int]] | None = None
        """Of a wait: when it ends."""
        self.called: Callable[[], Awaitable[None]] | None = None
        """Of a wait for a hook: returns when it was called."""


class StepRun(TaskRun):
    def __init__(self, host: Host, plan: TaskPlan, context: StepContext, resumed: Resumed | None = None) -> None:
        super().__init__(host, plan, resumed=resumed)
        self._context = context
        self._step = context.step
        self._outcome = StepOutcome(False)
        self._reason = ""
        self._results: dict[str, Checked] = {}
        self._answer = ""
        self._tried = 0
        self._prepared: StepValues | None = None

    def result(self, result: TaskResult) -> StepResult:
        """What later steps see, also of a failed step."""
        outcome = self._outcome
        passed = result.outcome == "succeeded"
        return StepResult(
            outcome="succeeded" if passed else "stopped" if result.outcome == "stopped" else "failed",
            output=outcome.output,
            reason="" if passed else outcome.reason or self._failed_check() or self._reason,
            checks=[
                {"passed": each.passed, "reason": each.reason, "commit": outcome.commit if each.passed else ""}
                for each in self._results.values()
            ],
            answer=outcome.answer,
            changes=outcome.changes,
            commit=outcome.commit,
            name=self.plan.name,
        )

    def _failed_check(self) -> str:
        return next((each.reason for each in self._results.values() if not each.passed), "")

    async def _course(self) -> bool:
        try:
            fresh = self.resumed is None
            self._prepared = await self._context.flow.values(self.plan.path, self._step, self.plan.attempt, fresh)
            self.plan.cwd = self._prepared.cwd
            self.plan.render = self._rendered
            self._sessions_of_task.masked = self._prepared.mask.document
            outcome = await self._tries(self._prepared)
        except NOT_WRITTEN:
            raise
        except PorticoError as error:  # a template without its values, a missing secret
            outcome = await self._hidden(StepOutcome(False, error.message))
        self._outcome = outcome
        if not isinstance(self._step.do, PromptDo) or outcome.reason:
            tag = "[TASK SUCCEEDED]" if outcome.passed else "[TASK FAILED]"
            reason = f"{tag} {outcome.reason}".rstrip()
            decided = je.TaskDecided(reason=reason, passed=outcome.passed, exit_code=outcome.exit_code, check="end")
            self._last.append(decided)
        return outcome.passed

    async def _tries(self, values: StepValues) -> StepOutcome:
        """Run the step, and again after a failure as `retry` allows. An agent is retried by its task."""
        retry = self._step.retry
        times = retry.times if retry is not None and "run" in retry.on else 0
        outcome = await self._once_run(values)
        for failures in range(1, times + 1):
            if outcome.passed or isinstance(self._step.do, PromptDo | AskDo | WaitDo):
                break
            assert retry is not None
            self._tried = failures
            seconds = retry.seconds(failures)
            self._decide(f"[OPERATION] {outcome.reason}\nRetry #{failures} begins in {seconds:g} seconds")
            never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            await self._host.clock.wait(never, seconds)
            outcome = await self._once_run(values)
        return outcome

    async def _once_run(self, values: StepValues) -> StepOutcome:
        return await self._hidden(await self._do(values))

    async def _hidden(self, outcome: StepOutcome) -> StepOutcome:
        """The outcome without values of secrets. Errors of templates and of addresses quote them, too."""
        mask = self._prepared.mask if self._prepared is not None else (await self._context.services.secrets([])).mask
        outcome.reason, outcome.answer = mask.text(outcome.reason), mask.text(outcome.answer)
        outcome.output = mask.document(outcome.output)
        return outcome

    async def _do(self, values: StepValues) -> StepOutcome:
        step, context = self._step, self._context
        match step.do:
            case RunDo():
                required = await confine_required(self._host, values.cwd)
                done = await run.run(step, values, required or run.AUTHOR)
                done.commit = values.commit
                return done
            case HttpDo():
                return await self._request(values)
            case AskDo():
                if self.resumed is not None:
                    await self._sessions_of_task.resume(self.resumed)
                diff = partial(context.flow.diff, context.path)
                return await ask.run(step, values, self._sessions_of_task, self.plan.name, diff)
            case WaitDo():
                if context.called is not None:
                    await context.called()
                    return StepOutcome(True, "the hook was called")
                assert context.until is not None
                return await wait.run(await context.until(values), self._host.now)
            case CallDo():
                key = f"{self.plan.by}@{self.plan.path}#{self._tried}"
                return await call.run(step, values, context.services.call, context.job, key)
            case MergeDo():
                lanes = context.flow.merging(context.path)
                resolve = {"fail": None, "ask": self._ask_to_resolve, "agent": self._let_agent_resolve}[step.do.how]
                return await merge.run(context.path.removesuffix("+"), lanes, context.flow.folders, resolve)
            case PromptDo():
                return await self._prompt()

    async def _request(self, values: StepValues) -> StepOutcome:
        services, record = self._context.services, record_of(self._host)
        gate = record.counter(self._channel)
        try:
            return await http.run(self._step, values, services.allow_private, services.lookup, gate)
        finally:
            await record.write(self._channel)

    async def _prompt(self) -> StepOutcome:
        assert self._prepared is not None
        folders, at = self._context.flow.folders, self._prepared.commit
        if self.plan.attempt == 1 and self.resumed is None and not at:
            # The agent begins at a commit: with what commands before it have changed, and nothing that is unknown.
            await folders.commit(self._context.path, f"Before {self.plan.name}")
        passed = await super()._course()
        changes = await self._sessions_of_task.changes()
        commit = at or (await folders.commit(self._context.path, self.plan.name) if passed else "")
        return StepOutcome(passed, output=self._output(), changes=sorted(changes or {}), commit=commit)

    def _output(self) -> Any:
        if self._step.output == "text":
            return self._answer
        try:
            return json_of(self._answer)
        except ValueError:
            return self._answer  # its check has failed

    async def _ask_to_resolve(self, lane: merge.MergingLane, conflict: MergeConflict, folder: str) -> str:
        options: list[Json] = [{"id": each, "label": each} for each in (_RESOLVED, _GIVE_UP)]
        text = f"The merge of {lane.name!r} has conflicts. Resolve them in {folder}, then answer."
        field: Json = {"id": ANSWER, "kind": "single-select", "message": "Then", "required": True, "options": options}

        async def asking() -> Asking:
            return Asking(text, [field], None, [], [{"type": "diff", "title": "Conflicts", "text": conflict.text}])

        answer = await self._sessions_of_task.ask_person(self.plan.name, asking, stays=False)
        return "" if value_of(answer, ANSWER) == _RESOLVED else "a person gave up."

    async def _let_agent_resolve(self, lane: merge.MergingLane, conflict: MergeConflict, folder: str) -> str:
        """The checks of the lane run again in the merged folder, with the values of the lane."""
        assert self._prepared is not None
        more = self._context.flow.context(lane.path) | {"conflict": f"{lane.name}\n{conflict.text}"}
        self._prepared.context |= more
        self._prepared.public |= more
        self.plan.cwd, self._retrying = folder, 0
        if await super()._course():
            return ""
        return self._failed_check() or "the agent did not succeed."

    def kept_session(self) -> list[je.JobValue]:
        """The session that later steps continue. It is committed together with the end."""
        do, used = self._step.do, self._sessions_of_task.worked
        if not isinstance(do, PromptDo) or not do.session or used is None:
            return []
        place = SessionPlace(*used, job=self._context.job.id)
        return [je.JobValue(path=self._context.path, name=SESSION + do.session, value=encode(place))]

    # -- what a task does differently here ---------------------------------------------------------------------

    async def _finish(self, result: TaskResult) -> None:
        await super()._finish(result)
        try:
            await self._context.flow.folders.leave(self._context.path)
        except PorticoError as error:  # the end of the job removes it
            self._host.logger.warning("job %s: %s", self._context.job.id, error.message)

    async def _guarded(self) -> TaskResult:
        """A crash fails the step, not the whole job."""
        result = await super()._guarded()
        return TaskResult(result.outcome, result.error)

    def _worked(self, report: Report) -> Report:
        self._answer = self._masked(report.answer)
        self._results = {}
        return report

    async def _once(self, key: str, checking: Coroutine[Any, Any, Checked]) -> Checked:
        try:
            self._results[key] = await super()._once(key, self._masked_check(checking))
        finally:
            checking.close()  # it was not started if its outcome is recorded
        return self._results[key]

    async def _masked_check(self, checking: Coroutine[Any, Any, Checked]) -> Checked:
        checked = await checking
        reason, output = self._masked(checked.reason), self._masked(checked.output)
        return Checked(checked.passed, reason, output, checked.exit_code)

    async def _checked(self, check: Check, report: Report, held: list[Checked]) -> Checked:
        if check.files is not None:
            check = replace(check, files=self._globs(check.files))
        if not isinstance(check.command, str) or self._prepared is None:
            return await super()._checked(check, report, held)
        line, more = self._prepared.shell(check.command)
        policy, env = await self._sessions_of_task.confine(), self._prepared.environment(self._step, more)
        shown, mask = self._prepared.shown(check.command), self._prepared.mask
        return await check_command(line, self.plan.cwd, policy, env, shown, mask)

    def _globs(self, files: FilesCheck) -> FilesCheck:
        """With the values of this step: an item names its own file."""
        assert self._prepared is not None
        text = self._prepared.text
        changed = {key: [text(glob) for glob in getattr(files, key)] for key in ("exist", "absent", "changed_only")}
        return replace(files, **changed)

    def _rendered(self, prompt: list[str], values: dict[str, str]) -> str:
        assert self._prepared is not None
        self._prepared.context["check_output"] = values.get("check-output", "")
        self._prepared.public["check_output"] = self._prepared.context["check_output"]
        return self._masked(self._prepared.prompt("\n".join(prompt)))

    def _retry_prompt(self, criteria: Criteria) -> str:
        """The prompt again, with what the checks have found."""
        found = criteria.failure_action.additional_prompt
        return "\n\n".join([self._expand(self.plan.task.prompt), *([self._expand(found)] if found is not None else [])])

    def _masked(self, text: str) -> str:
        return self._prepared.mask.text(text) if self._prepared is not None else text

    def _decide(self, reason: str, passed: bool | None = None, evidence: str = "", check: str = "") -> None:
        if passed is False:
            self._reason = _TAG.sub("", reason)
        super()._decide(reason, passed, evidence, check)
