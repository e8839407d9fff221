"""One run of a task: availability, prompt, criteria, retries; every step is a decision in the task's channel."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from msgspec import Struct

from portico.features.jobs import events as je
from portico.features.jobs.check import Checked, check_command, check_files, check_schema, json_of
from portico.features.jobs.engine import OPEN
from portico.features.jobs.entry import (
    DEFAULT_CRITERIA_RETRIES,
    Check,
    Criteria,
    Entry,
    FailureAction,
    ModelCheck,
    Output,
    Prompt,
    SchemaCheck,
    Task,
)
from portico.features.jobs.events import TaskOutcome
from portico.features.jobs.judge_check import JudgeChecks
from portico.features.jobs.load import CHECKS_FAILED
from portico.features.jobs.models import model_id
from portico.features.jobs.prompt import expand_prompt_dynamic
from portico.features.jobs.result import SessionPlace
from portico.features.jobs.resume import Resumed
from portico.features.jobs.task_sessions import CRASH_PREFIX, TASK_ATTEMPTS, Mode, SessionCrash, TaskCrash, TaskSessions
from portico.features.jobs.tools import Report
from portico.kernel import events as e
from portico.kernel import faults
from portico.kernel.events import Budget
from portico.kernel.host import Host
from portico.kernel.session import Session

REPORTED = ("reported-document", "reported-true-reason", "reported-false-reason")
_BORROWING_CRASH = "Task crashed in borrowing session mode"


class TaskPlan(Struct, kw_only=True):
    """Everything that a run needs. It does not change during the run."""

    id: str
    name: str
    task: Task
    entry: Entry
    model: str
    """The task model's id; empty when a borrowing task names none."""
    fallback: list[str] = []
    """Models that take over from the task's own, in order."""
    cwd: str
    input: str
    by: str
    owner: str = ""
    """The person to whom its sessions belong."""
    job: str | None = None
    path: str = ""
    attempt: int = 1
    values: dict[str, str] = {}
    """Values of earlier works: outputs, answers, the item."""
    waits: list[float] = []
    """Between the attempts of an agent that failed, in seconds."""
    attempts: int = TASK_ATTEMPTS
    """Of an agent that fails, for each prompt."""
    sandbox: str = ""
    """Of its sessions; empty: the default of the host."""
    budget: Budget = Budget()
    """Of each of its sessions."""
    continues: SessionPlace | None = None
    """The session of an earlier step, in which its prompts are sent."""
    render: Callable[[Prompt, dict[str, str]], str] = expand_prompt_dynamic
    """How values are put into prompts."""

    @property
    def driving_model(self) -> str:
        return self.entry.models["driving"]

    def judges(self, check: ModelCheck) -> list[str]:
        """The ids of the judges' models. Without any, one that is not the worker's, where there is one."""
        if check.judges:
            return [model_id(self.entry, each) for each in check.judges]
        others = (model for model in (self.driving_model, *self.entry.models.values()) if model != self.model)
        return [next(others, self.driving_model)]


class TaskResult(Struct, frozen=True):
    outcome: TaskOutcome
    error: str = ""
    crashed: bool = False
    """It ended with an error. In a job, this ends the whole job."""
    values: dict[str, str] = {}
    """Values for later works, by name."""


class TaskRun:
    def __init__(
        self, host: Host, plan: TaskPlan, borrowed: Session | None = None, resumed: Resumed | None = None
    ) -> None:
        self.plan = plan
        self._host = host
        self._borrowed = borrowed
        self._channel = f"task/{plan.id}"
        self._values = {**plan.values, "task-model": plan.model} | ({"user-input": plan.input} if plan.input else {})
        self._left: dict[str, str] = {}
        self._missing: list[str] = []
        self.resumed = resumed
        """The progress of an earlier process."""
        self._known = dict(resumed.checks) if resumed is not None else {}
        """Check results of this round from the journal."""
        self._last: list[e.Event] = []
        """Events to commit together with the end."""
        self._retrying = 0
        self._scope: asyncio.Timeout | None = None
        self._stopped = False
        self.ended = asyncio.Event()
        self.suspended = False
        self.consequences: Callable[[TaskResult], list[tuple[str, e.Event]]] = lambda result: []
        """Events to commit together with the end, by channel: the results for the job that contains the task."""
        self._sessions_of_task = TaskSessions(host, plan, mode_of(plan.task, borrowed is not None), borrowed)
        self._sessions_of_task.silent = lambda: self.silent

    @property
    def borrowing(self) -> bool:
        return self._borrowed is not None

    @property
    def silent(self) -> bool:
        """Whether the host is stopping. Then no end is written, and the next start resumes from the journal."""
        return self.suspended or self._host.stopping

    async def placed(self) -> None:
        """Wait until the first prompt is sent or queued in the session, or the run has ended."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self._sessions_of_task.placed, self.ended)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def begin(self) -> None:
        """Write the start and return when it is durable."""
        self._host.log.put_kv(self._channel, OPEN, b"1")
        await self._host.log.append(self._channel, self.beginning())

    def beginning(self) -> je.TaskStarted:
        plan = self.plan
        session = self._borrowed.id if self._borrowed is not None else None
        said = plan.input if plan.job is None else ""  # a job's input is stored once, in the job
        return e.like(je.TaskStarted, plan, task=plan.id, input=said, session=session)

    def stop(self) -> None:
        """End the run as stopped, at any step."""
        self._stopped = True
        if self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time())

    async def run(self) -> TaskResult:
        """Run to the end and always record one end. A cancellation from outside is recorded too, then raised again."""
        try:
            result = await self._bounded()
        except asyncio.CancelledError:
            if not self.silent:
                await self._end(TaskResult("stopped"))
            raise
        if self.silent and result.outcome == "failed":
            # The stop may be the reason, so this is no result: the stop cancels this, and the next start repeats it.
            await asyncio.get_running_loop().create_future()
        await self._end(result)
        return result

    async def abandon(self, outcome: TaskOutcome) -> None:
        """End a started task that does not run: the job was stopped, or another host does the same work."""
        await self._end(TaskResult(outcome))

    async def _end(self, result: TaskResult) -> None:
        """Write the end. A cancellation does not interrupt the write, so that every start has exactly one end."""
        finishing = self._host.own(self._finish(result), f"end {self.plan.id}")
        try:
            await asyncio.shield(finishing)
        except asyncio.CancelledError:
            await asyncio.wait({finishing})
            raise

    async def _bounded(self) -> TaskResult:
        timeout = self.plan.task.timeout
        try:
            async with asyncio.timeout(timeout) as self._scope:
                if self._stopped:
                    return TaskResult("stopped")
                return await self._guarded()
        except TimeoutError:
            if self._stopped:
                return TaskResult("stopped")
            self._decide(f"[TASK FAILED] Decision: task failed (not done within {timeout:g} seconds)", False)
            return TaskResult("failed")
        finally:
            self._scope = None

    async def _guarded(self) -> TaskResult:
        try:
            passed = await self._course()
        except TaskCrash as crash:
            self._decide(f"[TASK FAILED] Task error: {crash.detail}", False)
            return TaskResult("failed", crash.detail, crashed=True)
        await self._sessions_of_task.end(passed)
        return TaskResult("succeeded", values=self._left) if passed else TaskResult("failed")

    async def _finish(self, result: TaskResult) -> None:
        await self._sessions_of_task.leave()
        faults.reach("task-before-end")
        self._host.log.put_kv(self._channel, OPEN, None, bound=True)
        end = je.TaskEnded(task=self.plan.id, outcome=result.outcome, error=result.error)
        own = [(self._channel, event) for event in (*self._last, end)]
        await self._host.log.append_all(*own, *self.consequences(result))
        self.ended.set()
        faults.reach("task-after-end")

    # -- the course of a run -----------------------------------------------------------------------------------

    async def _course(self) -> bool:
        report = await self._resume() if self.resumed is not None else None
        if report is None:
            if not self.borrowing and not await self._available():
                return False
            prompt = self._expand(self.plan.task.prompt)
            report = await self._work(CRASH_PREFIX + prompt if self.plan.attempt > 1 else prompt)
        criteria = criteria_of(self.plan.task)
        passed = criteria is None or await self._criteria(criteria, report)
        self._decide(
            "[TASK SUCCEEDED] Decision: task succeeded"
            if passed
            else "[TASK FAILED] Decision: task failed (criteria not satisfied)",
            passed,
            check="end",
        )
        return passed

    async def _resume(self) -> Report | None:
        """The report of the work that was done in an earlier process."""
        assert self.resumed is not None
        self._values |= self.resumed.values
        self._retrying = self.resumed.retry
        report = await self._sessions_of_task.resume(self.resumed)
        return self._worked(self._noted(report)) if report is not None else None

    async def _available(self) -> bool:
        availability = self.plan.task.availability
        if availability is None or availability.condition is None:
            return True
        report = await self._drive(availability.condition, availability=True)
        passed = report.verdict is True and not report.prerequisite_failed
        await self._sessions_of_task.judged(passed)
        if passed:
            self._decide("[AVAILABILITY] Availability check passed", True)
        else:
            condition = _json(availability.condition)
            reason = f"Availability check failed: condition not satisfied. Condition: {condition}"
            self._decide(f"[AVAILABILITY] {reason}", False)
        return passed

    async def _check(self, criteria: Criteria, report: Report) -> bool:
        """Run all checks even after one failed: the reasons are part of the next prompt."""
        self._missing = [tool for tool in criteria.tool_executed or () if tool not in report.tools]
        passed, held = not self._missing, list[Checked]()
        if self._missing:
            missing = f"[CRITERIA] toolExecuted check failed: missing tools: {', '.join(self._missing)}"
            self._decide(missing, False, check="tools")
        if criteria.command is not None:
            checked = await self._once("command", self._command(criteria.command))
            held.append(checked)
            self._values["check-output"] = checked.output
            passed = passed and checked.passed
        if criteria.checks:
            passed = await self._checks(criteria.checks, report, held) and passed
        if criteria.condition is not None:
            passed = await self._condition(criteria.condition) and passed
        return passed

    async def _checks(self, checks: list[Check], report: Report, held: list[Checked]) -> bool:
        """Run the checks. Those of people come last, and only if all others hold: work that must be redone needs no
        review."""
        failed: list[str] = []
        for number, check in enumerate(sorted(checks, key=lambda check: check.person is not None)):
            if check.person is not None and (self._missing or not all(each.passed for each in held)):
                continue
            checked = await self._once(f"check {number}", self._checked(check, report, held))
            held.append(checked)
            if not checked.passed:
                failed.append(checked.output or checked.reason)
        if failed:
            self._values["check-output"] = "\n".join(failed)
        return not failed

    async def _once(self, key: str, checking: Coroutine[Any, Any, Checked]) -> Checked:
        """The result of a check, from the journal if an earlier process recorded it."""
        if (known := self._known.get(key)) is not None:
            checking.close()
            return known
        checked = await checking
        decided = je.TaskDecided(
            reason=f"[CRITERIA] {checked.reason}",
            passed=checked.passed,
            exit_code=checked.exit_code,
            check=key,
            output=checked.output,
        )
        self._sessions_of_task.record(decided)
        return checked

    async def _command(self, command: str | list[str]) -> Checked:
        return await check_command(command, self.plan.cwd, await self._sessions_of_task.confine())

    async def _checked(self, check: Check, report: Report, held: list[Checked]) -> Checked:
        cwd = self.plan.cwd
        if check.command is not None:
            return await self._command(check.command)
        if check.files is not None:
            return await check_files(check.files, cwd, await self._sessions_of_task.changes())
        if check.schema is not None:
            return await check_schema(check.schema, cwd, report.answer)
        opinions = JudgeChecks(self._sessions_of_task, self.plan.name)
        if check.model is not None:
            return await opinions.judges(
                check.model, self.plan.judges(check.model), self._expand(check.model.condition)
            )
        assert check.person is not None
        return await opinions.person(check.person, self._expand(check.person.question), held)

    async def _condition(self, condition: Prompt) -> bool:
        if (known := self._known.get("condition")) is not None:
            self._noted(Report([], verdict=known.passed, reason=known.output))
            return known.passed
        report = await self._drive(condition)
        held = report.verdict is True
        await self._sessions_of_task.judged(held)
        words = "passed" if held else f"failed. Condition: {_json(condition)}"
        self._decide(f"[CRITERIA] Criteria condition {words}", held, report.reason, check="condition")
        return held

    async def _criteria(self, criteria: Criteria, report: Report) -> bool:
        """Check the work and retry it as often as the criteria allow."""
        passed = await (self._recheck(criteria, report) if self._retrying else self._check(criteria, report))
        budget = criteria.failure_action.retry_times
        while not passed and self._retrying < budget:
            self._retrying += 1
            self._decide(f"[OPERATION] Starting retry #{self._retrying}")
            passed = await self._recheck(criteria)
        if not passed:
            self._decide(f"[DECISION] Retry budget drained after {budget} retries", False, check="drained")
        return passed

    async def _recheck(self, criteria: Criteria, report: Report | None = None) -> bool:
        """One retry; `report`: its work was done in an earlier process."""
        number = self._retrying
        try:
            passed = await self._check(criteria, report or await self._work(self._retry_prompt(criteria)))
        except SessionCrash as crash:
            if self.borrowing:
                raise
            # A retry costs exactly one of the budget, however often the agent crashed in it.
            await self._sessions_of_task.end(False)
            self._decide(f"[SESSION CRASHED] Session crash during retry #{number}: {crash.detail}", False)
            passed = False
        words = f"[CRITERIA] Criteria {'passed' if passed else 'failed'} on retry #{number}"
        self._decide(words, passed, check="retry")
        return passed

    def _retry_prompt(self, criteria: Criteria) -> str:
        lines = [self._expand(self.plan.task.prompt)]
        if self._missing:
            lines.append(f"## Required Tool Not Called: {', '.join(self._missing)}")
        additional = criteria.failure_action.additional_prompt
        if additional is not None:
            lines += ["## You accidentally Stopped", self._expand(additional)]
        return "\n".join(lines)

    # -- prompts -----------------------------------------------------------------------------------------------

    async def _work(self, prompt: str) -> Report:
        self._known = {}
        values = {name: self._values[name] for name in REPORTED if name in self._values}
        return self._worked(await self._sent(self._sessions_of_task.work(prompt, self._retrying, values)))

    def _worked(self, report: Report) -> Report:
        output = self.plan.task.output
        if output is not None:
            self._left = {output.name: _output(output, report.answer)}
        return report

    async def _drive(self, prompt: Prompt, *, availability: bool = False) -> Report:
        return await self._sent(self._sessions_of_task.drive(self._expand(prompt), availability=availability))

    async def _sent(self, sending: Coroutine[Any, Any, Report]) -> Report:
        try:
            return self._noted(await sending)
        except SessionCrash as crash:
            if self.borrowing:
                where = "Crash during retry in borrowing mode" if self._retrying else _BORROWING_CRASH
                self._decide(f"[SESSION CRASHED] {where}: {crash.detail}", False)
            raise

    def _noted(self, report: Report) -> Report:
        """Store the report of the agent for the next prompt."""
        if report.document is not None:
            self._values["reported-document"] = report.document
        if report.verdict is not None:
            known, forgotten = "reported-true-reason", "reported-false-reason"
            if not report.verdict:
                known, forgotten = forgotten, known
            self._values[known] = report.reason
            self._values.pop(forgotten, None)
        return report

    def _expand(self, prompt: Prompt) -> str:
        return self.plan.render(prompt, self._values)

    def _decide(self, reason: str, passed: bool | None = None, evidence: str = "", check: str = "") -> None:
        """`check`: a step after the work, which the journal may have from an earlier process."""
        if check not in self._known:
            self._sessions_of_task.record(je.TaskDecided(reason=reason, passed=passed, evidence=evidence, check=check))


def criteria_of(task: Task) -> Criteria | None:
    """The criteria of a task, including the schema check of its output."""
    if task.output is None or task.output.schema is None:
        return task.criteria
    fits = Check(schema=SchemaCheck(schema=task.output.schema))
    action = FailureAction(retry_times=DEFAULT_CRITERIA_RETRIES, additional_prompt=[CHECKS_FAILED])
    criteria = task.criteria or Criteria(failure_action=action)
    return msgspec.structs.replace(criteria, checks=[*criteria.checks, fits])


def _output(output: Output, answer: str) -> str:
    if output.schema is None:
        return answer
    try:
        return msgspec.json.encode(json_of(answer)).decode()
    except ValueError:
        return answer  # its check fails, and so does the task


def mode_of(task: Task, borrowing: bool) -> Mode:
    if borrowing:
        return "borrowing"
    criteria = task.criteria
    return "multi" if criteria is not None and criteria.run_condition_in_same_session is False else "single"


def _json(prompt: Prompt) -> str:
    return msgspec.json.encode(prompt).decode()
