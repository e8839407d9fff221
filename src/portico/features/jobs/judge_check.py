"""Checks that are opinions: of judges, which are models, and of people."""

import asyncio
from functools import partial
from typing import Any

from portico.features.jobs.check import Checked
from portico.features.jobs.entry import ModelCheck, PersonCheck
from portico.features.jobs.task_sessions import TaskCrash, TaskSessions
from portico.kernel.events import Json
from portico.kernel.question import Answer

_YES = "yes"
YES_OR_NO: list[Json] = [
    {
        "id": "answer",
        "kind": "single-select",
        "message": "Is it good?",
        "required": True,
        "options": [{"id": _YES, "label": "Yes"}, {"id": "no", "label": "No"}],
    },
    {"id": "reason", "kind": "text", "message": "Why? The next attempt reads it."},
]


class JudgeChecks:
    def __init__(self, sessions: TaskSessions, task: str) -> None:
        self._sessions = sessions
        self._task = task

    # -- judges ------------------------------------------------------------------------------------------------

    async def judges(self, check: ModelCheck, models: list[str], prompt: str) -> Checked:
        """Ask all judges concurrently. A judge that crashes has no vote."""
        votes = await asyncio.gather(*(self._vote(prompt, model) for model in models))
        needed = check.quorum or len(models)
        yes = sum(vote for vote, _ in votes)
        words = f"{yes} of {len(models)} judges said yes, {needed} needed"
        if yes >= needed:
            return Checked(True, f"Model check passed: {words}", "")
        reasons = [f"{model}: {reason}" for model, (vote, reason) in zip(models, votes, strict=True) if not vote]
        return Checked(False, "\n".join([f"Model check failed: {words}", *reasons]), "\n".join(reasons))

    async def _vote(self, prompt: str, model: str) -> tuple[bool, str]:
        try:
            report = await self._sessions.judge(prompt, model)
        except TaskCrash as crash:
            return False, f"crashed: {crash.detail}"
        return report.verdict is True, report.reason or "gave no verdict"

    # -- people ------------------------------------------------------------------------------------------------

    async def person(self, check: PersonCheck, question: str, checks: list[Checked]) -> Checked:
        """`checks`: those that hold already, with what they printed."""
        asking = partial(self._sessions.asking, question, YES_OR_NO, check.people, checks)
        try:
            return person_checked(await self._sessions.ask_person(self._task, asking, check.expires))
        except TimeoutError:
            passed = check.on_expiry == "pass"
            words = f"Nobody answered within {check.expires:g} seconds"
            return Checked(passed, f"Person check {'passed' if passed else 'failed'}: {words}", words)


def who(by: str) -> str:
    """The name behind an answer: of a token, or of a client."""
    return by.partition(":")[2].partition("#")[0] or by


def value_of(answer: Answer, field: str) -> str:
    """One field of an answer, as any door gives it: plain, or in AHP's form."""
    value: Any = answer.answers.get(field)
    while isinstance(value, dict):
        value = value.get("value")
    return "" if value is None else str(value)


def person_checked(answer: Answer) -> Checked:
    reason, name = value_of(answer, "reason"), who(answer.by)
    said = f": {reason}" if reason else ""
    if answer.response == "accept" and value_of(answer, "answer") == _YES:
        return Checked(True, f"Person check passed: {name} said yes{said}", "")
    words = "said no" if answer.response == "accept" else "declined"
    return Checked(False, f"Person check failed: {name} {words}{said}", reason or f"{name} {words}")
