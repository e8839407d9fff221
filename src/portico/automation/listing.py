"""The views of automations for lists and pages."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from portico.automation.decide import stop_time
from portico.automation.schedule import cron_of, cron_times, next_due
from portico.automation.state import AutomationState, RunSummary
from portico.events import AutomationPlan, Json, like

if TYPE_CHECKING:
    from portico.automation.automations import Automations


class AutomationInfo(Struct, omit_defaults=True):
    id: str
    name: str
    plan: AutomationPlan
    trigger: str
    """`schedule`, `hook`, `files`, `after` or `none`."""
    enabled: bool
    by: str
    """Who wrote it last."""
    source: str
    """`door`, or `file`: it is written in automations.toml."""
    created: int
    modified: int
    when: str = ""
    """Its trigger in words."""
    reason: str = ""
    """Why it is paused."""
    stopped: bool = False
    """It paused automatically: after failures, a number of runs or a date."""
    next: list[int] = []
    """The next times at which it is due, in milliseconds since the epoch."""
    runs: int = 0
    """By its trigger, since it was switched on."""
    failures: int = 0
    """In a row."""
    open: list[str] = []
    """Unfinished runs."""
    last: RunSummary | None = None
    """The latest run."""
    uri: str = ""
    meta: Json = {}
    scopes: list[str] = []


def info_of(automations: "Automations", state: AutomationState, *, times: int = 3) -> AutomationInfo:
    runs = automations.store.runs_of(state.id)
    return like(
        AutomationInfo,
        state,
        trigger=state.trigger,
        when=words(state.plan, state.name) + _dangling(automations, state.plan),
        next=_times(state, automations.timer.next(state.id), times),
        open=[run.id for run in automations.store.open_runs(state.id)],
        last=runs[-1] if runs else None,
    )


def _dangling(automations: "Automations", plan: AutomationPlan) -> str:
    """A remark if the plan names a missing automation. This is no error: it may be created later."""
    named = plan.after.automation if plan.after is not None else ""
    return "; there is none of this name" if named and automations.store.find(named) is None else ""


def _times(state: AutomationState, first: int | None, count: int) -> list[int]:
    """The next due times. The first is known; each further one takes time to compute."""
    schedule, stop, found = state.plan.schedule, stop_time(state), list[int]()
    while schedule is not None and first is not None and len(found) < count and (stop is None or first < stop):
        found.append(first)
        first = next_due(schedule, first, state.since) if len(found) < count else None
    return found


@lru_cache(maxsize=1000)
def _explained(cron: str) -> str:
    return cron_times(cron, datetime(2026, 1, 1, tzinfo=UTC)).explain()


def words(plan: AutomationPlan, name: str) -> str:
    """Describe the trigger as text."""
    if plan.schedule is not None:
        schedule = plan.schedule
        if schedule.cron:
            return f"{_explained(cron_of(schedule))} ({schedule.zone})"
        return f"every {schedule.every}" if schedule.every else f"once at {schedule.at} ({schedule.zone})"
    if plan.hook is not None:
        return f"POST /hooks/{name}"
    if plan.files is not None:
        return f"{', '.join(plan.files.globs) or 'files'} in {plan.files.folder} change"
    if plan.after is not None:
        what = f"automation {plan.after.automation}" if plan.after.automation else f"job {plan.after.job}"
        return f"after the {what} ({' or '.join(plan.after.outcomes) or 'however it ends'})"
    return "by hand"
