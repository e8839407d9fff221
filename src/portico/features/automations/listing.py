"""The views of automations for lists and pages."""

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from portico.features.automations.decide import stop_time
from portico.features.automations.events import AutomationPlan, Trigger
from portico.features.automations.schedule import cron_of, cron_times, first_due
from portico.features.automations.state import AutomationState, RunSummary
from portico.features.automations.triggers import afters_of, schedules_of, triggers_of
from portico.kernel.events import Json, like

if TYPE_CHECKING:
    from portico.features.automations.automations import Automations


class AutomationInfo(Struct, omit_defaults=True):
    id: str
    name: str
    plan: AutomationPlan
    trigger: str
    """`schedule`, `hook`, `files`, `after` or `none`; the first, if there are several."""
    enabled: bool
    by: str
    """Who wrote it last."""
    source: str
    """`door`, or `file`: it is written in automations.toml."""
    created: int
    modified: int
    triggers: list[str] = []
    """The kinds of all its triggers."""
    when: str = ""
    """Its triggers in words."""
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
        triggers=state.triggers,
        when=words(state.plan, state.name) + _dangling(automations, state.plan),
        next=_times(state, automations.timer.next(state.id), times),
        open=[run.id for run in automations.store.open_runs(state.id)],
        last=runs[-1] if runs else None,
    )


def _dangling(automations: "Automations", plan: AutomationPlan) -> str:
    """A remark if the plan names a missing automation. This is no error: it may be created later."""
    missing = any(each.automation and automations.store.find(each.automation) is None for each in afters_of(plan))
    return "; there is none of this name" if missing else ""


def _times(state: AutomationState, first: int | None, count: int) -> list[int]:
    """The next due times. The first is known; each further one takes time to compute."""
    schedules, stop, found = schedules_of(state.plan), stop_time(state), list[int]()
    while schedules and first is not None and len(found) < count and (stop is None or first < stop):
        found.append(first)
        first = first_due(schedules, first, state.since) if len(found) < count else None
    return found


@lru_cache(maxsize=1000)
def _explained(cron: str) -> str:
    return cron_times(cron, datetime(2026, 1, 1, tzinfo=UTC)).explain()


def words(plan: AutomationPlan, name: str) -> str:
    """Describe the triggers as text."""
    return "; or ".join(_words(each, name) for each in triggers_of(plan))


def _words(trigger: Trigger, name: str) -> str:
    if trigger.schedule is not None:
        schedule = trigger.schedule
        if schedule.cron:
            return f"{_explained(cron_of(schedule))} ({schedule.zone})"
        return f"every {schedule.every}" if schedule.every else f"once at {schedule.at} ({schedule.zone})"
    if trigger.hook is not None:
        return f"POST /hooks/{name}"
    if trigger.files is not None:
        return f"{', '.join(trigger.files.globs) or 'files'} in {trigger.files.folder} change"
    if trigger.after is not None:
        after = trigger.after
        what = f"automation {after.automation}" if after.automation else f"job {after.job}"
        return f"after the {what} ({' or '.join(after.outcomes) or 'however it ends'})"
    return "by hand"
