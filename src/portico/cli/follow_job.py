"""Shows the progress of a job: a live tree on a terminal, one line per event without one, JSON on request."""

import asyncio
import contextlib
import itertools
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import msgspec
from rich.live import Live
from rich.text import Text

from portico.cli.job_lines import EntryLines, FlowLines, result_text
from portico.cli.job_questions import JobQuestions
from portico.cli.job_tree import MARKS, workflow_lines
from portico.cli.output import plain, terminal, trouble
from portico.cli.usage import cost_words
from portico.client.client import Client, segment
from portico.client.record import RemoteRecord
from portico.features.jobs import events as je
from portico.features.jobs.entry import Ask, Entry, Ref, Wait, Work, name_of, parts_of
from portico.features.jobs.rows import JobRow
from portico.features.jobs.state import JobSummary, WorkSummary
from portico.features.sandboxes.shapes import HostUse
from portico.kernel.errors import PorticoError
from portico.kernel.state import TextPart
from portico.tasks import end_tasks
from portico.workspace.escapes import visible_json

_COLOURS = {"running": "yellow", "succeeded": "green", "failed": "red", "stopped": "dim"}
COST_TICKS = 8
"""The cost is read every so many ticks: it changes with the end of a turn."""
EXIT = {"succeeded": 0, "failed": 1, "canceled": 130}


class JobCost(msgspec.Struct):
    dollars: float
    """With `estimated`."""
    estimated: float
    """The part that follows from list prices."""
    unpriced: bool
    """A part has no known price."""
    words: str
    """As it is printed: `~$1.20`."""


class JobView(msgspec.Struct):
    """The response of `/v1/jobs/ID`, and what the job has cost."""

    summary: JobSummary
    entry: Entry
    network: list[HostUse] = []
    rows: list[JobRow] = []
    cost: JobCost | None = None


async def view_of(client: Client, job: str, rows: str = "") -> JobView:
    """`rows`: only those with this status."""
    only = {"rows": rows} if rows else {}
    data: dict[str, Any] = msgspec.json.decode(await client.call("GET", f"/v1/jobs/{segment(job)}", **only))
    entry = msgspec.convert(data.pop("entry"), Entry)
    network = msgspec.convert(data.pop("network", []), list[HostUse])
    listed = msgspec.convert(data.pop("rows", []), list[JobRow])
    return JobView(msgspec.convert(data, JobSummary), entry, network, listed)


async def follow_job(client: Client, job: str, as_json: bool) -> str:
    """Show the job until it ends, and return its outcome."""
    view = await view_of(client, job)
    if as_json or not terminal():
        return await _lines(client, view, as_json)
    return await _tree(client, view)


async def cost_of(client: Client, job: str) -> JobCost | None:
    """What a job has cost so far; None if no agent has worked in it, or no price is known."""
    with contextlib.suppress(PorticoError):  # the cost is an extra: the host restarts, or this token cannot read it
        for each in (await client.usage(["job"])).sums:
            if each.key["job"] == job and (dollars := each.cost + each.estimated):
                return JobCost(dollars, each.estimated, bool(each.unpriced), cost_words(each))
    return None


async def _events(client: Client, job: str) -> AsyncIterator[RemoteRecord]:
    """Yield the job's events until it ends. With one channel a cursor is a position."""
    async with aclosing(client.follow("/v1/events", channel=f"job/{job}")) as records:
        async for record in records:
            yield record
            if isinstance(record.event, je.JobEnded):
                return


async def _lines(client: Client, view: JobView, as_json: bool) -> str:
    job = view.entry.jobs[view.summary.name]
    lines = FlowLines(job) if job.flow is not None else EntryLines(job)
    outcome = "failed"
    client.on_trouble = trouble
    questions = JobQuestions(client, view.summary.id)
    async with _beside(questions):
        async for record in _events(client, view.summary.id):
            event = record.event
            if isinstance(event, je.WorkStarted):
                questions.tasks.add(event.task)
            if isinstance(event, je.JobEnded):
                outcome = event.outcome
            line = lines.line(event, record.time)
            line = visible_json(msgspec.json.encode(record).decode()) if as_json else plain(line)
            if line:
                print(line, flush=True)
    cost = await cost_of(client, view.summary.id)
    if cost is not None and as_json:  # like the lines before it, so that one reader fits all; the log has no such event
        last = {"type": "job.cost", "job": view.summary.id, "outcome": outcome, "cost": cost}
        line = msgspec.json.encode({"channel": f"job/{view.summary.id}", "event": last}).decode()
        print(visible_json(line), flush=True)
    elif cost is not None:
        print(f"cost: {cost.words}", flush=True)
    return outcome


def result_lines(summary: JobSummary) -> list[str]:
    """What a workflow was for: its result, or why it failed, and the files that it keeps."""
    lines = [summary.error] if summary.error else []
    lines += [result_text(summary.result)] if summary.result is not None else []
    return [*lines, *(f"{each.path} ({each.size} bytes): /v1/blobs/{each.blob}" for each in summary.artifacts)]


@contextlib.asynccontextmanager
async def _beside(questions: JobQuestions) -> AsyncIterator[None]:
    asking = asyncio.ensure_future(questions.follow())
    try:
        yield
    finally:
        await end_tasks(asking)


async def _tree(client: Client, view: JobView) -> str:
    """Redraw the tree a few times a second: durations change also without events."""
    outcome = "failed"
    last: dict[str, str] = {}
    screen = _Screen(_drawn(view, last))
    questions = JobQuestions(client, view.summary.id, paused=screen.paused)
    ticking = asyncio.ensure_future(_tick(client, view, last, screen))
    with screen:
        try:
            async with _beside(questions):
                async for record in _events(client, view.summary.id):
                    if isinstance(record.event, je.WorkStarted):
                        questions.tasks.add(record.event.task)
                    if isinstance(record.event, je.JobEnded):
                        outcome = record.event.outcome
        finally:
            await end_tasks(ticking)
        now = await view_of(client, view.summary.id)
        view.summary, view.rows = now.summary, now.rows
        view.cost = await cost_of(client, view.summary.id)
        screen.draw(_drawn(view, {}))
    if view.summary.error:
        print(plain(view.summary.error), file=sys.stderr)
    if view.summary.result is not None:
        print(plain(result_text(view.summary.result)))
    if any(row.status == "failed" for row in view.rows):
        print(f"Reasons: portico jobs show {view.summary.id} --failed", file=sys.stderr)
    return outcome


class _Screen:
    """The tree at the end of the terminal. While it is paused, something else writes there. Then the tree is drawn anew
    below: a `Live` that is started again would erase what was written."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._live = self._new()

    def _new(self) -> Live:
        return Live(self._text, refresh_per_second=4)

    def __enter__(self) -> None:
        self._live.start()

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def draw(self, text: Text) -> None:
        self._text = text
        self._live.update(text)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        self._live.stop()
        try:
            yield
        finally:
            self._live = self._new()
            self._live.start()


async def _tick(client: Client, view: JobView, last: dict[str, str], screen: _Screen) -> None:
    for tick in itertools.count():
        now = await view_of(client, view.summary.id)
        if tick % COST_TICKS == 0:
            view.cost = await cost_of(client, view.summary.id)
        view.summary, view.rows = now.summary, now.rows
        for work in view.summary.works:
            if work.status == "running":
                last[work.task] = await _last_line(client, work.task)
        screen.draw(_drawn(view, last))
        await asyncio.sleep(max(0.25, len(view.rows) / 1000))


async def _last_line(client: Client, task: str) -> str:
    """Return the last line of text from the task's newest session."""
    page = msgspec.json.decode(await client.call("GET", "/v1/events", channel=f"task/{task}"))
    started = [r["event"] for r in page["events"] if r["event"]["type"] == "task.session.started"]
    if not started:
        return ""
    state = await client.session(started[-1]["session"]).state()
    texts = [part.text for turn in state.turns for part in turn.parts if isinstance(part, TextPart)]
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    return plain(lines[-1].strip())[:60] if lines else ""


def _drawn(view: JobView, last: dict[str, str]) -> Text:
    summary = view.summary
    cost = f", {view.cost.words}" if view.cost is not None else ""
    took = _seconds(summary.started, summary.ended)
    # One line for each row: a long name or reason would push the tree out of the terminal.
    head = f"{summary.id} {plain(summary.name)}: {summary.status} {took}{cost}\n"
    text = Text(head, no_wrap=True, overflow="ellipsis")
    works = {work.work: work for work in summary.works}
    if view.entry.jobs[summary.name].flow is not None:
        text.append("\n".join(workflow_lines(view.entry.jobs[summary.name].work, view.rows)) + "\n")
    else:
        _draw(text, view.entry.jobs[summary.name].work, works, last, 1)
    if summary.reason and not summary.done:  # the error is printed below
        text.append(plain(summary.reason) + "\n", style="yellow")
    return text


def _draw(text: Text, work: Work, works: dict[int, WorkSummary], last: dict[str, str], depth: int) -> None:
    indent = "  " * depth
    if isinstance(work, Ref | Ask | Wait):
        run = works.get(work.work_id_in_job)
        mark = MARKS[run.status] if run else "·"
        text.append(f"{indent}{mark} {plain(name_of(work))}", style=_COLOURS[run.status] if run else "dim")
        if run is not None:
            text.append(f" {_seconds(run.started, run.ended)}{f' x{run.runs}' if run.runs > 1 else ''}")
            text.append(f"  {last.get(run.task, '')}" if run.status == "running" else "", style="dim")
        text.append("\n")
    else:
        text.append(f"{indent}{type(work).__name__}\n", style="dim")
    for _, child in parts_of(work):
        _draw(text, child, works, last, depth + 1)


def _seconds(started: int, ended: int | None) -> str:
    until = ended if ended is not None else int(time.time() * 1000)
    return f"{max(0, until - started) / 1000:.1f}s"
