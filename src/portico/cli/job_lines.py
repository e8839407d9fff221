"""What `portico run` and `jobs tail` print without a terminal: lines for a log."""

from typing import Any

import msgspec

from portico.cli.job_tree import label
from portico.features.jobs import events as je
from portico.features.jobs.entry import Job, Leaf, leaves_of, name_of
from portico.features.jobs.result import Lane, StepResult
from portico.features.jobs.state import LANE, RESULT, up_from
from portico.features.jobs.step import FlowStep
from portico.kernel import events as e


class EntryLines:
    """Of a job of an entry: one line for each start and end, with the path of the work."""

    def __init__(self, job: Job) -> None:
        self._names = {leaf.work_id_in_job: name_of(leaf) for leaf in leaves_of(job.work)}

    def line(self, event: e.Event, time: int) -> str:
        """The line for an event; nothing for most events."""
        match event:
            case je.WorkStarted():
                again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
                return f"{event.path} {self._names.get(event.work, '')} started as {event.task}{again}"
            case je.WorkEnded():
                return f"{event.path} {self._names.get(event.work, '')} {event.outcome}"
        return job_line(event)


class FlowLines:
    """Of a workflow: each step by its id and its item, with the time that it took and the reason of a failure."""

    def __init__(self, job: Job) -> None:
        self._leaves: dict[int, Leaf] = {leaf.work_id_in_job: leaf for leaf in leaves_of(job.work)}
        self._lanes: dict[str, str] = {}
        self._results: dict[str, StepResult] = {}
        self._started: dict[str, int] = {}

    def line(self, event: e.Event, time: int) -> str:
        match event:
            case je.JobValue(name=name) if name == LANE:
                self._lanes[event.path] = msgspec.json.decode(event.value, type=Lane).name
            case je.JobValue(name=name) if name.startswith(RESULT):
                self._results[event.path] = msgspec.json.decode(event.value, type=StepResult)
            case je.WorkStarted():
                self._started[event.path] = time
                again = f", attempt {event.attempt}" if event.attempt > 1 else ""
                return f"{self._name(event.path, event.work)} started ({event.task}{again})"
            case je.WorkEnded():
                result = self._results.get(event.path)
                took = max(0, time - self._started.get(event.path, time)) / 1000
                reason = result.reason.partition("\n")[0] if result is not None and event.outcome == "failed" else ""
                words = f"{event.outcome} after {took:.1f}s" + (f": {reason}" if reason else "")
                return f"{self._name(event.path, event.work, result)} {words}"
        return job_line(event)

    def _name(self, path: str, work: int, result: StepResult | None = None) -> str:
        """The step, and the names of the items around it."""
        leaf = self._leaves.get(work)
        name = (result.name if result is not None else "") or (name_of(leaf) if leaf is not None else "")
        lanes = [self._lanes[place] for place in up_from(path) if place in self._lanes]
        items = f" [{' / '.join(reversed(lanes))}]" if lanes else ""
        return f"{label(leaf.id if isinstance(leaf, FlowStep) else '', name)}{items}"


def job_line(event: e.Event) -> str:
    match event:
        case je.JobDecided() | je.JobWaiting():
            return event.reason
        case je.JobEnded():
            ended = f"{event.job} {event.outcome} {event.reason or event.error}".rstrip()
            return ended if event.result is None else f"{ended}\n{result_text(event.result)}"
    return ""


def result_text(result: Any) -> str:
    return result if isinstance(result, str) else msgspec.json.format(msgspec.json.encode(result), indent=2).decode()
