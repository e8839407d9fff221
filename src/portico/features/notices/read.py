"""Convert an event to a notice, or to None."""

from typing import TypeVar
from urllib.parse import quote

import msgspec

from portico.features.automations.events import AutomationCreated, AutomationPaused, RunClaimed, RunEnded
from portico.features.budgets.budgets import WARNED, is_budget_question
from portico.features.jobs import events as je
from portico.features.notices.notice import Notice
from portico.kernel import events as e
from portico.kernel.events import Event, Record
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.redaction import Redaction
from portico.server.settings import NoticeKind

TOLD = (
    *(e.ApprovalAsked, e.QuestionAsked, e.TurnEnded, je.JobWaiting, je.JobEnded),
    *(RunEnded, AutomationPaused, e.Audited),
)
RESULT_CHARS = 500
"""Of a result in a notice: a phone shows less, and a webhook can read all of it at `/v1/jobs/ID/result`."""
SETTLED = (e.ApprovalAnswered, e.QuestionAnswered, e.TurnEnded, je.JobResumed, je.JobEnded)
"""Events that settle an open request."""

_TEXT = 300
"""Characters: a notice is read on a phone."""

T = TypeVar("T", bound=Event)


async def read_notice(host: Host, record: Record, base: str) -> Notice | None:
    event = record.event
    if isinstance(event, je.JobEnded | je.JobWaiting):
        return await _of_job(host, record, base)
    if isinstance(event, RunEnded):
        return await _of_run(host, record, base)
    if isinstance(event, AutomationPaused):
        return await _of_pause(host, record, base)
    if isinstance(event, e.Audited) and event.action != WARNED:
        return None
    named = event.detail["session"] if isinstance(event, e.Audited) else record.channel.removeprefix("session/")
    session = host.find(named)
    if session is None:
        return None  # deleted since
    await session.load()
    if isinstance(event, e.Audited):
        return _in_session(session, record, base, "budget", event.detail["words"])
    if isinstance(event, e.ApprovalAsked):
        words = event.title or event.tool
        return _in_session(session, record, base, "approval", f"Waits for approval: {words}", event.approval)
    if isinstance(event, e.QuestionAsked):
        budget = is_budget_question(event.fields)
        return _in_session(session, record, base, "budget" if budget else "question", event.text, event.question)
    return _of_turn(session, record, base) if isinstance(event, e.TurnEnded) else None


def _of_turn(session: Session, record: Record, base: str) -> Notice | None:
    """The notice of a finished turn. None for turns of jobs, automations and sub-agents, which have their own notices,
    and for cancelled turns: the person who cancels knows."""
    event = record.event
    assert isinstance(event, e.TurnEnded)
    turn = next((each for each in session.state.turns if each.id == event.turn), None)
    if turn is None or event.outcome == "cancelled" or session.state.parent is not None:
        return None
    if turn.by.startswith(("task:", "run:", "automation")) or session.state.by.startswith("task:"):
        return None
    if event.outcome == "completed":
        return _in_session(session, record, base, "turn_done", "The agent is done.")
    words = event.error.message if event.error is not None else f"The turn was {event.outcome}."
    return _in_session(session, record, base, "turn_failed", words)


def _in_session(session: Session, record: Record, base: str, kind: NoticeKind, text: str, ask: str = "") -> Notice:
    state = session.state
    link = f"{base}/app/inbox/{quote(ask, safe='')}" if ask else f"{base}/app/s/{session.id}"
    return Notice(
        kind, _short(text), record.time, session.id, _short(state.title), state.agent, state.cwd, ask=ask, link=link
    )


async def _of_job(host: Host, record: Record, base: str) -> Notice | None:
    event, started = record.event, await _first(host, record, je.JobStarted)
    if started is None:
        return None
    link = f"{base}/app/j/{started.job}"
    known = {"title": started.name, "folder": started.cwd, "job": started.job, "link": link}
    if isinstance(event, je.JobWaiting):
        if event.waits_for == "host":
            return None
        return Notice("question", _short(event.reason), record.time, ask=started.job, **known)
    assert isinstance(event, je.JobEnded)
    if event.outcome == "canceled" or started.by.startswith("run:"):
        return None  # the notice of the automation run covers its job
    if event.outcome == "succeeded":
        return Notice("job_done", f"The job {started.name!r} is done.{_result(event)}", record.time, **known)
    text = f"The job {started.name!r} failed. {event.reason or event.error}"
    return Notice("job_failed", _short(text), record.time, **known)


async def _of_run(host: Host, record: Record, base: str) -> Notice | None:
    event, claimed = record.event, await _first(host, record, RunClaimed)
    assert isinstance(event, RunEnded)
    if claimed is None or event.outcome == "canceled":
        return None
    action = claimed.job or claimed.prompt
    done = event.outcome == "succeeded"
    text = f"The automation {claimed.name!r} " + ("is done." if done else f"{_OUTCOME[event.outcome]}. {event.error}")
    return Notice(
        "automation_done" if done else "automation_failed",
        _short(text),
        record.time,
        folder=(action.cwd if action is not None else "") or "",
        automation=claimed.name,
        run=claimed.run,
        link=f"{base}/app/automations/{claimed.automation}",
    )


async def _of_pause(host: Host, record: Record, base: str) -> Notice | None:
    """The notice of an automation that paused after failures: a person must resume it. Planned stops give no notice."""
    event, created = record.event, await _first(host, record, AutomationCreated)
    assert isinstance(event, AutomationPaused)
    if created is None or event.by != "host" or not event.failed:
        return None
    text = f"The automation {created.name!r} has paused itself: {event.reason}"
    link = f"{base}/app/automations/{created.automation}"
    return Notice("automation_failed", _short(text), record.time, automation=created.name, link=link)


_OUTCOME = {"failed": "failed", "interrupted": "was interrupted"}


async def _first(host: Host, record: Record, kind: type[T]) -> T | None:
    """The first event of the channel."""
    found = await host.log.read(record.channel, limit=5)
    return next((each.event for each in found if isinstance(each.event, kind)), None)


def _short(text: str) -> str:
    """Shorten a text and remove secrets, because it leaves this machine."""
    found = Redaction().text(text.strip())
    return found if len(found) <= _TEXT else found[: _TEXT - 1] + "…"


def settled(record: Record) -> tuple[str, str] | None:
    """The channel and the request that was answered; an empty name: all requests of the channel."""
    event, place = record.event, record.channel.partition("/")[2]
    if isinstance(event, e.ApprovalAnswered):
        return place, event.approval
    if isinstance(event, e.QuestionAnswered):
        return place, event.question
    return (place, "") if isinstance(event, e.TurnEnded | je.JobResumed | je.JobEnded) else None


def _result(event: je.JobEnded) -> str:
    """The result of a workflow, as far as a notice has room for it."""
    if event.result is None:
        return ""
    text = event.result if isinstance(event.result, str) else msgspec.json.encode(event.result).decode()
    return f" {text}" if len(text) <= RESULT_CHARS else f" {text[: RESULT_CHARS - 1]}…"
