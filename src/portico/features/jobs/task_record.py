"""Read a task from its channel, and end a task that a host left open."""

import contextlib

from msgspec import Struct
from msgspec.structs import replace

from portico.features.jobs import events as je
from portico.features.jobs.engine import OPEN
from portico.features.jobs.state import WorkAttempt
from portico.features.jobs.task_sessions import withdraw
from portico.kernel import events as e
from portico.kernel.errors import Conflict, NotFound, PlaceAway, Unreachable
from portico.kernel.events import Event
from portico.kernel.host import Host

_ELSEWHERE = (Conflict, PlaceAway, Unreachable)
"""Errors if another host owns the session now and has ended it or does not answer. The task ends anyway."""


class TaskInfo(Struct):
    id: str
    name: str
    borrowing: bool
    job: str | None = None
    ended: int | None = None
    """Milliseconds since the epoch."""
    stopped: bool = False
    """It was stopped by a person or client."""


async def events_of(host: Host, task: str) -> list[e.Record]:
    return await host.log.read(f"task/{task}", 0, 10_000)


async def info_of(host: Host, task: str) -> TaskInfo:
    info: TaskInfo | None = None
    for record in await events_of(host, task):
        match record.event:
            case je.TaskStarted() as started:
                info = TaskInfo(task, started.name, started.session is not None, started.job)
            case je.TaskEnded() as ended if info is not None:
                info.ended, info.stopped = record.time, ended.outcome == "stopped"
    if info is None:
        raise NotFound("task", task)
    return info


async def close_task(host: Host, task: str) -> None:
    """Close the sessions of a task, remove its prompts from a borrowed session, and record it as interrupted."""
    opened: dict[str, None] = {}
    borrowed: str | None = None
    for record in await events_of(host, task):
        match record.event:
            case je.TaskEnded():
                return
            case je.TaskStarted(session=session):
                borrowed = session
            case je.TaskSessionStarted(session=session):
                opened[session] = None
            case je.TaskSessionEnded(session=session):
                opened.pop(session, None)
    by = f"task:{task}"
    # Includes a session that was started, but not recorded before the host ended.
    for ident in {**opened, **{each.id: None for each in host.list() if each.by == by and not each.closed}}:
        if host.has(ident):
            with contextlib.suppress(*_ELSEWHERE):
                await (await host.get(ident)).close(by=by, reason="interrupted")
    ends: list[Event] = [je.TaskSessionEnded(session=ident, succeeded=False) for ident in opened]
    if borrowed is not None and host.has(borrowed):
        with contextlib.suppress(*_ELSEWHERE):
            await withdraw(await host.get(borrowed), task)
    channel = f"task/{task}"
    host.log.put_kv(channel, OPEN, None, bound=True)
    await host.log.append(channel, *ends, je.TaskEnded(task=task, outcome="interrupted"))


async def end_of_work(host: Host, path: str, run: WorkAttempt, complete: bool) -> je.WorkEnded:
    """The end of a work whose host has ended. Up to version 0.2 its task may have ended in an earlier commit: that
    counts if the values are `complete`."""
    ended = je.WorkEnded(path=path, work=run.work, task=run.task, outcome="interrupted")
    for record in await events_of(host, run.task):
        event = record.event
        if isinstance(event, je.TaskEnded) and (
            event.outcome == "failed" or (event.outcome == "succeeded" and complete)
        ):
            outcome: je.WorkOutcome = "crashed" if event.error else event.outcome
            ended = replace(ended, outcome=outcome, error=event.error)
    return ended
