"""The states of automations and runs: folds over their events, shown in lists."""

from typing import Literal

from msgspec import Struct

from portico.features.automations import events as ae
from portico.features.automations.events import AutomationPlan
from portico.features.automations.triggers import schedules_of, triggers_of
from portico.kernel import events as e
from portico.kernel.events import Json, like

REFS = 200
"""Ends of jobs that are remembered as done: those that a restart may find again."""
SPANS = 200
"""Spans of due times that are remembered as claimed: those that a clock which is set back may bring again."""

RunStatus = Literal["pending", "running", "succeeded", "failed", "canceled", "interrupted", "skipped"]
OPEN = ("pending", "running")


MISSED = 20
"""Times without a run that the history names: as often as a laptop is opened in some weeks."""


class MissedTimes(Struct, omit_defaults=True):
    """Due times that got no run."""

    count: int
    first: int
    last: int
    reason: str
    more: bool = False
    """There were more than were counted."""


class AutomationState(Struct, omit_defaults=True):
    id: str
    name: str
    plan: AutomationPlan
    by: str
    """Its author: who wrote it last."""
    scopes: list[str]
    created: int
    modified: int
    since: int
    """When its trigger was set or switched on last; `every` counts from there."""
    source: Literal["door", "file"] = "door"
    uri: str = ""
    meta: Json = {}
    enabled: bool = True
    reason: str = ""
    """Why it does not run."""
    stopped: bool = False
    """It stopped automatically, after failures, a number of runs or a date."""
    secrets: int = 0
    """How often its hook got another secret."""
    considered: int = 0
    """The last due time that was given a run or counted as missed."""
    followed: int = 0
    """The last end of another run or job that was given a run; 0: see `considered`."""
    failures: int = 0
    """In a row."""
    runs: int = 0
    """By its trigger, since it was switched on or their number was bounded."""
    refs: list[str] = []
    spans: list[tuple[int, int]] = []
    """From a due time through another: all between them were given a run."""
    missed: list[MissedTimes] = []
    """Oldest first."""
    deleted: bool = False
    pos: int = 0

    @property
    def trigger(self) -> str:
        return next(iter(self.triggers), "none")

    @property
    def triggers(self) -> list[str]:
        """The kinds of its triggers, without repetition."""
        found = [
            name for each in triggers_of(self.plan) for name in ae.Trigger.__struct_fields__ if getattr(each, name)
        ]
        return list(dict.fromkeys(found))

    @property
    def input(self) -> str:
        """What it starts with, before its placeholders are filled."""
        plan = self.plan
        return plan.job.input if plan.job is not None else plan.prompt.text if plan.prompt is not None else ""


class RunSummary(Struct, omit_defaults=True):
    id: str
    automation: str
    name: str
    cause: ae.Cause
    due: int
    claimed: int
    by: str
    status: RunStatus = "pending"
    started: int | None = None
    ended: int | None = None
    reason: str = ""
    """Why it was skipped, or what went wrong."""
    session: str = ""
    turn: str = ""
    job: str = ""
    input: int = 0
    output: int = 0
    cost: float | None = None
    """In dollars; null: unknown."""
    estimated: bool = False
    late: bool = False
    depth: int = 0
    ref: str = ""
    delivery: str = ""
    pos: int = 0

    @property
    def open(self) -> bool:
        return self.status in OPEN


def begin(event: ae.AutomationCreated, time: int) -> AutomationState:
    times = dict.fromkeys(("created", "modified", "since", "considered"), time)
    return like(AutomationState, event, id=event.automation, **times)


def fold(state: AutomationState, event: e.Event, time: int) -> None:
    match event:
        case ae.AutomationEdited():
            if _trigger(event.plan) != _trigger(state.plan):
                state.since = state.considered = time
                state.spans = []
            if event.plan.stop_after_runs and not state.plan.stop_after_runs:
                state.runs = 0
            state.name, state.plan, state.by = event.name, event.plan, event.by
            state.scopes, state.meta, state.modified = event.scopes, event.meta, time
        case ae.AutomationPaused():
            state.enabled, state.reason, state.stopped = False, event.reason, event.by == "host"
        case ae.AutomationResumed():
            state.enabled, state.reason, state.stopped, state.failures, state.runs = True, "", False, 0, 0
            state.since = state.considered = time
        case ae.HookRotated():
            state.secrets += 1
        case ae.RunReserved():
            _reserve(state, event)
        case ae.RunsMissed():
            state.considered = event.last
            if event.count:
                missed = MissedTimes(event.count, event.first, event.last, event.reason, event.more)
                state.missed = [*state.missed[1 - MISSED :], missed]
        case ae.RunSettled():
            _settle(state, event.outcome)
        case ae.AutomationDeleted():
            state.deleted = True


def _trigger(plan: AutomationPlan) -> tuple[object, ...]:
    return tuple(triggers_of(plan))


def _reserve(state: AutomationState, event: ae.RunReserved) -> None:
    if event.cause == "person":
        return
    state.runs += 1
    if event.cause == "schedule":
        _reserve_due(state, event.due)
    elif not schedules_of(state.plan):  # else a delivery would hide a time that is due, too
        state.considered = max(state.considered, event.due)
    if event.cause == "after":
        state.followed = max(state.followed, event.due)
    if event.ref:
        state.refs = [*state.refs[-REFS:], event.ref]


def _reserve_due(state: AutomationState, due: int) -> None:
    """`considered` goes back where the clock did: a year that it was ahead by mistake is still to come."""
    first, last = state.spans[-1] if state.spans else (due, -1)
    if last == state.considered < due:
        state.spans[-1] = (first, due)
    else:
        state.spans = [*state.spans[1 - SPANS :], (due, due)]
    state.considered = due


def _settle(state: AutomationState, outcome: ae.RunOutcome) -> None:
    if outcome == "failed":
        state.failures += 1
    elif outcome == "succeeded":
        state.failures = 0
    elif outcome == "skipped":
        state.runs = max(0, state.runs - 1)


def begin_run(event: ae.RunClaimed, time: int) -> RunSummary:
    return like(RunSummary, event, id=event.run, claimed=time, job="")  # which job it becomes is not known yet


def fold_run(run: RunSummary, event: e.Event, time: int) -> None:
    match event:
        case ae.RunSkipped():
            run.status, run.reason, run.ended = "skipped", event.reason, time
        case ae.RunStarted():
            run.status, run.started = "running", time
            run.session, run.turn, run.job = event.session, event.turn, event.job
        case ae.RunEnded():
            run.status, run.reason, run.ended = event.outcome, event.error, time
            run.input, run.output, run.cost, run.estimated = event.input, event.output, event.cost, event.estimated
