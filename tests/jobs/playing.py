"""Running small entries in a test's own host, and reading what came of it."""

from typing import Any

import pytest

from portico.doors.portal.callbacks import job_elements, session_elements, task_elements
from portico.features.jobs import Entry, Jobs, load_entry
from portico.features.jobs import events as je
from portico.kernel import events as e
from portico.kernel.host import Host
from portico.kernel.log.log import Log

Data = dict[str, Any]
MODELS = {"driving": "gpt-5-mini", "coding": "gpt-5.2"}
both_engines = pytest.mark.parametrize("engine", ["local", "temporal"], indirect=True)
YES = "Well? [[tool:job_boolean_true|fine]]"
NO = "Well? [[tool:job_boolean_false|not good]]"


def task(prompt: str = "[[say:done]]", **more: object) -> Data:
    return {
        "model": {"category": "coding"},
        "prompt": [prompt],
        "requireUserInput": "$user-input" in prompt,
        **more,
    }


def ok(**more: object) -> Data:
    return task("[[say:ok]]", **more)


def failing(**more: object) -> Data:
    """A task that fails by its criteria, at once."""
    return task(
        "[[say:no]]", criteria={"toolExecuted": ["job_prepare_document"], "failureAction": {"retryTimes": 0}}, **more
    )


def crashing(**more: object) -> Data:
    return task("[[crash]]", **more)


def make(tasks: dict[str, Data], work: Data | None = None, **more: object) -> Entry:
    first = next(iter(tasks))
    return load_entry(
        {
            "models": MODELS,
            "drivingSessionRetries": [{"modelId": "gpt-5-mini", "retries": 2}],
            "promptVariables": {},
            "tasks": tasks,
            "jobs": {"main": {"work": work or {"kind": "Ref", "taskId": first}, "retrySeconds": [], **more}},
            "grid": [],
        }
    )


async def opened(host: Host, entry: Entry) -> Jobs:
    jobs = await Jobs.open(host)
    await jobs.install(entry)
    return jobs


async def until_ended(log: Log, channel: str) -> list[e.Event]:
    """The events of a channel through to its end."""
    found: list[e.Event] = []
    async for records in log.follow(channel):
        found += [record.event for record in records]
        if isinstance(found[-1], je.JobEnded | je.TaskEnded):
            break
    return found


async def until_started(log: Log, job: str, works: int = 1) -> list[str]:
    """The tasks of the first works, as soon as they have started."""
    tasks: list[str] = []
    async for records in log.follow(f"job/{job}"):
        tasks += [record.event.task for record in records if isinstance(record.event, je.WorkStarted)]
        if len(tasks) >= works:
            break
    return tasks


async def until_waiting(log: Log, job: str) -> None:
    async for records in log.follow(f"job/{job}"):
        if any(isinstance(record.event, je.JobWaiting) for record in records):
            return


async def play(jobs: Jobs, cwd: object, input: str = "") -> tuple[str, list[str]]:
    """Runs the job `main` to its end; its id and its callbacks in short."""
    job = await jobs.start_job("main", cwd=str(cwd), input=input, by="test")
    return job, short(await until_ended(jobs.host.log, f"job/{job}"))


def short(events: list[e.Event]) -> list[str]:
    """`+0` work 0 started, `-0 ok` it succeeded, and so on."""
    words: list[str] = []
    for element in (element for event in events for element in job_elements(event, {})):
        match element:
            case {"callback": "workStarted", "workId": work}:
                words.append(f"+{work}")
            case {"callback": "workStopped", "workId": work, "succeeded": succeeded}:
                words.append(f"-{work} {'ok' if succeeded else 'no'}")
            case {"callback": name}:
                words.append(name)
            case _:
                words += list(element)
    return words


async def story(log: Log, task: str) -> list[str]:
    """What the clients of a task see, decisions by their text."""
    open: dict[str, str] = {}
    words: list[str] = []
    for event in await until_ended(log, f"task/{task}"):
        for element in task_elements(event, open):
            match element:
                case {"callback": "taskDecision", "reason": reason}:
                    words.append(reason)
                case {"callback": "taskSessionStarted", "isDriving": driving}:
                    words.append("+driving" if driving else "+task")
                case {"callback": "taskSessionStopped", "succeeded": succeeded}:
                    words.append(f"-{'ok' if succeeded else 'no'}")
                case {"callback": name}:
                    words.append(name)
                case _:
                    words += list(element)
    return words


async def prompts(host: Host, task: str) -> list[str]:
    """Every prompt that the task sent, in order."""
    found = []
    for record in await host.log.read_all(limit=10_000):
        event = record.event
        if isinstance(event, e.TurnStarted) and event.by == f"task:{task}":
            found.append((session_elements(event, {})[0])["prompt"])
    return found


async def models(host: Host, task: str) -> list[str]:
    return [
        record.event.model
        for record in await host.log.read(f"task/{task}")
        if isinstance(record.event, je.TaskSessionStarted)
    ]
