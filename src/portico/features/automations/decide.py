"""The rules of runs, as pure functions of state: is a cause given a run, which one starts next, when does it stop?"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from portico import limits
from portico.features.automations import events as ae
from portico.features.automations.plan import zone
from portico.features.automations.schedule import first_due, missed_dues, moment
from portico.features.automations.state import AutomationState, RunSummary
from portico.features.automations.triggers import overlap_of, schedules_of
from portico.kernel import events as e
from portico.kernel.events import Channel

Appended = list[tuple[Channel, e.Event]]
DELETED = "The automation was deleted."


class Cause(Struct, frozen=True):
    """The cause of a run."""

    kind: ae.Cause
    due: int
    by: str
    input: str | None = None
    late: bool = False
    depth: int = 0
    ref: str = ""
    delivery: str = ""
    refused: str = ""
    """Why it must not start: it is only recorded."""
    payload: Any = None
    """Of the delivery."""


def claim(state: AutomationState, runs: Sequence[RunSummary], run: str, cause: Cause, before: int = 0) -> Appended:
    """The run in the log, before anything starts: to be started, or skipped with the reason. So many `before` it count
    and are not in the log yet."""
    most, count = state.plan.stop_after_runs, state.runs + before
    full = f"It has run {most} times (stop_after_runs)."
    reason = cause.refused or refusal(state, runs, cause)
    if cause.kind != "person" and 0 < most <= count:
        reason = full
    job, prompt = state.plan.job, state.plan.prompt
    if prompt is not None and not prompt.title:
        prompt = replace(prompt, title=state.plan.title)  # lists show the title of the automation, not its name
    if cause.input is not None:
        job = replace(job, input=cause.input) if job is not None else None
        prompt = replace(prompt, text=cause.input) if prompt is not None else None
    own, channel = f"automation/{state.id}", f"run/{run}"
    named = {"run": run, "automation": state.id, "name": state.name, "scopes": state.scopes, "author": state.by}
    started = {"cause": cause.kind, "job": job, "prompt": prompt, "budget": state.plan.budget}
    claimed = e.like(ae.RunClaimed, cause, **named, **started)
    reserved = ae.RunReserved(run=run, cause=cause.kind, due=cause.due, ref=cause.ref)
    events: Appended = [(own, reserved), (channel, claimed)]
    if reason:
        events += [(channel, ae.RunSkipped(reason=reason)), (own, ae.RunSettled(run=run, outcome="skipped"))]
    elif cause.kind != "person" and most == count + 1:
        events.append((own, ae.AutomationPaused(by="host", reason=full)))
    return events


def refusal(state: AutomationState, runs: Sequence[RunSummary], cause: Cause) -> str:
    """Why this run is skipped; empty: it is not."""
    open_runs = [each for each in runs if each.open]
    if cause.depth > limits.AUTOMATION_DEPTH:
        return f"Automations start one another {limits.AUTOMATION_DEPTH} deep at most: this is a loop."
    match overlap_of(state.plan):
        case "skip" if open_runs and not _catches_up(state, open_runs, cause):
            return f"{open_runs[0].id} was not over (overlap = 'skip')."
        case "parallel" if len(open_runs) >= state.plan.parallel:
            return f"{len(open_runs)} runs were not over (parallel = {state.plan.parallel})."
        case "queue" if len(open_runs) > limits.QUEUED_RUNS:
            return f"{limits.QUEUED_RUNS} runs were waiting already."
    return ""


def _catches_up(state: AutomationState, open_runs: Sequence[RunSummary], cause: Cause) -> bool:
    """Runs that make up for missed times wait for each other, and so does the one on time behind them."""
    late = cause.late or any(each.late for each in open_runs)
    return state.plan.missed == "all" and cause.kind == "schedule" and late and len(open_runs) <= limits.QUEUED_RUNS


class Next(Struct):
    """What to do with an automation's open runs."""

    start: list[str] = []
    cancel: list[str] = []
    skip: list[str] = []
    """Pending ones that a later one replaces."""


def next_runs(state: AutomationState, runs: Sequence[RunSummary], starting: frozenset[str]) -> Next:
    """`starting` are those that this process runs already."""
    pending = [
        each.id for each in runs if each.status == "pending" and each.id not in starting and not _waits(state, each)
    ]
    running = [each.id for each in runs if each.status == "running" or (each.open and each.id in starting)]
    match overlap_of(state.plan):
        case "parallel":
            return Next(pending[: max(0, state.plan.parallel - len(running))])
        case "cancel" if pending:
            return Next([] if running else pending[-1:], running, pending[:-1])
    return Next(pending[:1] if not running else [])


def _waits(state: AutomationState, run: RunSummary) -> bool:
    """Claimed before a person paused the automation, or before it failed too often: it starts after the resume. The
    last runs before a maximum number of runs or a date still start."""
    failed = 0 < state.plan.stop_after_failures <= state.failures
    return not state.enabled and run.cause != "person" and (failed or not state.stopped)


def due_causes(state: AutomationState, first: int, now: int) -> tuple[list[Cause], Appended]:
    """For a schedule: the runs that are due by `now`, and what is written down of those that were missed. `first` was
    the next due time: it lies before `considered` where the clock was set back."""
    by = f"automation:{state.id}"
    dues, more = missed_dues(schedules_of(state.plan), min(state.considered, first - 1), now, state.since)
    dues = [due for due in dues if _claimed_through(state, due) is None]
    if not dues:
        return [], []
    late = now - limits.LATE_SECONDS * 1000
    on_time = [dues.pop()] if dues[-1] >= late else []
    match state.plan.missed:
        case "all":
            made_up = dues[-state.plan.missed_limit :]
        case "last":
            made_up = dues[-1:] if not on_time else []
        case _:
            made_up = []
    lost = dues[: len(dues) - len(made_up)]
    events: Appended = []
    if lost or more:
        window = lost or made_up or on_time
        first, last = window[0], lost[-1] if lost else window[0]
        reason = f"No run at these times: the host did not run, or its clock was set (missed = {state.plan.missed!r})."
        missed = ae.RunsMissed(count=len(lost), first=first, last=last, reason=reason, more=more)
        events.append((f"automation/{state.id}", missed))
    causes = [Cause("schedule", due, by, late=True) for due in made_up]
    return [*causes, *(Cause("schedule", due, by) for due in on_time)], events


def next_time(state: AutomationState, now: int) -> int | None:
    """When its schedule is due next, or it ends; None: never, or it is paused."""
    schedules, stop = schedules_of(state.plan), stop_time(state)
    if not state.enabled or state.deleted:
        return None
    if not schedules:
        return stop
    due = first_due(schedules, min(state.considered, now), state.since)
    while due is not None and (last := _claimed_through(state, due)) is not None:
        due = first_due(schedules, last, state.since)
    return due if due is None or stop is None or due < stop else stop


def _claimed_through(state: AutomationState, due: int) -> int | None:
    """The end of the span of claimed due times that it lies in."""
    return next((last for first, last in state.spans if first <= due <= last), None)


def stop_time(state: AutomationState) -> int | None:
    return moment(state.plan.stop_at, zone(state.plan), "stop_at") if state.plan.stop_at else None


def stop_reason(state: AutomationState, now: int, more: int = 0) -> str:
    """Why it pauses itself now; empty: it does not. So many `more` failures are not in the log yet."""
    failures, stop = state.plan.stop_after_failures, stop_time(state)
    if stop is not None and now >= stop:
        return f"It ends at {state.plan.stop_at} (stop_at)."
    if 0 < failures <= state.failures + more:
        runs = "The last run failed" if failures == 1 else f"{failures} runs failed in a row"
        return f"{runs} (stop_after_failures). Check {'it' if failures == 1 else 'them'}, then turn it back on."
    return ""
