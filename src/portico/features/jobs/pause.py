"""Works without an agent: a question to a person, and a wait. They run like tasks: every client of tasks sees them, a
stop ends them, and a restart resumes them."""

import asyncio
from datetime import datetime

from portico.features.jobs.entry import ANSWER, Ask, Task, Wait
from portico.features.jobs.judge_check import value_of
from portico.features.jobs.resume import Resumed
from portico.features.jobs.task_run import TaskPlan, TaskRun
from portico.kernel.events import Json
from portico.kernel.host import Host
from portico.kernel.question import Asking

UNTIL = "until"
"""The value of a Wait: when it is over, in milliseconds since the epoch."""


def task_of(work: Ask | Wait) -> Task:
    """The work as a task. The question is its prompt."""
    return Task(prompt=work.question if isinstance(work, Ask) else [""], timeout=None)


class AskRun(TaskRun):
    def __init__(self, host: Host, plan: TaskPlan, ask: Ask, resumed: Resumed | None = None) -> None:
        super().__init__(host, plan, resumed=resumed)
        self._ask = ask

    async def _course(self) -> bool:
        if self.resumed is not None:
            await self._sessions_of_task.resume(self.resumed)
        try:
            answer = await self._answer()
        except TimeoutError:
            self._decide(f"[TASK FAILED] Nobody answered within {self._ask.expires:g} seconds", False, check="end")
            return False
        if answer is None:
            self._decide("[TASK FAILED] The question was declined", False, check="end")
            return False
        self._left = {ANSWER: answer}
        self._decide(f"[TASK SUCCEEDED] Answer: {answer}", True, check="end")
        return True

    async def _answer(self) -> str | None:
        """The answer; with choices, the label of one. The door that receives an answer rejects others."""
        given = await self._sessions_of_task.ask_person(self.plan.name, self._asking, self._ask.expires)
        return value_of(given, ANSWER) if given.response == "accept" else None

    async def _asking(self) -> Asking:
        return Asking(self._expand(self._ask.question), fields_of(self._ask), None, self._ask.people)


def fields_of(ask: Ask) -> list[Json]:
    """The fields of a typed question, in the format of AHP. No fields means a free text named `answer`."""
    if not ask.choices:
        return []
    options = [{"id": choice.label, "label": choice.label} for choice in ask.choices]
    return [{"id": ANSWER, "kind": "single-select", "message": "Choose", "required": True, "options": options}]


class WaitRun(TaskRun):
    """Runs a wait. `until`: the end time from an earlier attempt, if there was one."""

    def __init__(self, host: Host, plan: TaskPlan, wait: Wait, until: int) -> None:
        super().__init__(host, plan)
        self._wait = wait
        self._until = until

    async def _course(self) -> bool:
        # Only time ends the wait. Sleep in intervals, so that a jump of the clock is detected.
        while (left := self._until - self._host.now()) > 0:
            if self._wait.seconds is not None and left > self._wait.seconds * 1000 + 1:
                self._until = end_of(self._wait, self._host.now())  # longer than the whole wait: the clock was set back
                continue
            await asyncio.sleep(min(left / 1000, 60.0))
        self._decide("[TASK SUCCEEDED] Decision: the time has come", True)
        return True


class HookRun(TaskRun):
    def __init__(self, host: Host, plan: TaskPlan, called: asyncio.Event) -> None:
        super().__init__(host, plan)
        self._called = called

    async def _course(self) -> bool:
        await self._called.wait()
        self._decide("[TASK SUCCEEDED] Decision: the hook was called", True)
        return True


def end_of(wait: Wait, now: int) -> int:
    """The end of a wait, in milliseconds since the epoch."""
    if wait.until is not None:
        return int(datetime.fromisoformat(wait.until).timestamp() * 1000)
    return now + int((wait.seconds or 0) * 1000)
