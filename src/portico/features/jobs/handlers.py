"""The commands that jobs take; `install` registers their handlers."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from portico.features.jobs import commands as jc
from portico.features.jobs.commands import JobNamed, RetryPlanned, TaskNamed
from portico.features.jobs.entry import Entry, Work, leaves_of
from portico.features.jobs.load import load_entry
from portico.features.jobs.services import Services
from portico.features.jobs.step import FlowStep
from portico.features.jobs.workflow.files import find_workflow, load_text, load_workflow
from portico.features.jobs.workflow.inputs import check_inputs, secrets_of
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest
from portico.kernel.folder_access import check_reach
from portico.locks import KeyedLocks

if TYPE_CHECKING:
    from portico.features.jobs.jobs import Jobs


def install(jobs: "Jobs") -> None:
    async def start(command: jc.StartJob, caller: c.Caller) -> JobNamed:
        if command.entry is not None:
            # An entry has commands (`criteria.command`), and an agent that asks nobody: it is as good as a shell.
            caller.require("terminal")
        check_reach(jobs.host, caller, command.cwd, "terminal")
        entry = None if command.entry is None else load_entry(command.entry)
        inputs: dict[str, Any] = {}
        if (found := _workflow(jobs, command, caller)) is not None:
            if command.by_model:
                _check_model_inputs(command, found)
            entry, inputs = found, inputs_of(command, found)
            await check_secrets(jobs.services, found.jobs[command.job].work)
        elif command.inputs:
            raise BadRequest(f"The job {command.job!r} is no workflow, so it has no inputs.", field="inputs")
        elif command.strict:
            _check_input(command, entry or jobs.entry)
        else:
            entry = _without_waits(command, entry or jobs.entry)
        if command.label:
            entry = _labelled(command, entry or jobs.entry)
        if command.job in (plan := entry or jobs.entry).jobs:
            forward = await jobs.elsewhere(plan, command.job, command, caller, command.place)
            if forward is not None:
                named: JobNamed = await forward()
                return named
        owner = jobs.host.ownership.owner_for(caller)
        job = await jobs.start_job(
            command.job,
            cwd=command.cwd,
            input=command.input,
            by=caller.by,
            entry=entry,
            owner=owner,
            inputs=inputs,
            trigger=command.trigger,
        )
        return JobNamed(job)

    async def stop(command: jc.StopJob, caller: c.Caller) -> c.Done:
        await jobs.stop_job(command.job, by=caller.by)
        return c.Done()

    async def resume(command: jc.ResumeJob, caller: c.Caller) -> JobNamed:
        return JobNamed(await jobs.resume(command.job, by=caller.by))

    async def retry(command: jc.RetryJob, caller: c.Caller) -> JobNamed:
        if command.workflow:
            caller.require("terminal")
        again = await jobs.retry(command.job, by=caller.by, step=command.step, workflow=command.workflow)
        return JobNamed(again)

    async def plan_retry(command: jc.PlanRetry, caller: c.Caller) -> RetryPlanned:
        if not command.workflow:
            check_reach(jobs.host, caller, jobs.job(command.job).cwd, "terminal")
        return await jobs.plan_retry(command.job, command.step, command.workflow)

    async def hook(command: jc.CallHook, caller: c.Caller) -> c.Done:
        await jobs.signal(command.job, command.hook, by=caller.by)
        return c.Done()

    async def start_task(command: jc.StartTask, caller: c.Caller) -> TaskNamed:
        ident = await jobs.start_task(command.name, session=command.session, input=command.input, by=caller.by)
        return TaskNamed(ident)

    async def stop_task(command: jc.StopTask, caller: c.Caller) -> c.Done:
        await jobs.stop_task(command.task)
        return c.Done()

    tasks = KeyedLocks()

    def lock_of(command: jc.StartTask) -> asyncio.Lock:
        session = jobs.host.find(command.session)
        return tasks.of(session.id if session is not None else "")

    jobs.host.commands.take(start, stop, resume, retry, plan_retry, hook, stop_task)
    jobs.host.commands.take(start_task, lock=lock_of)


def _workflow(jobs: "Jobs", command: jc.StartJob, caller: c.Caller) -> Entry | None:
    """The workflow of that name; None: the job is one of an entry."""
    if command.workflow:
        caller.require("terminal")  # it has commands, and an agent that asks nobody
        return load_text(command.workflow, f"<{command.job}>", command.job)
    if command.entry is not None or (not command.strict and command.job in jobs.entry.jobs):
        return None
    path = find_workflow(Path(command.cwd), command.job)
    return None if path is None else load_workflow(path)


def inputs_of(command: jc.StartJob, entry: Entry) -> dict[str, Any]:
    """The checked inputs. `input` is the first text that is not given by name."""
    flow = entry.jobs[command.job].flow
    assert flow is not None
    given = dict(command.inputs)
    if command.input:
        texts = [name for name, each in flow.inputs.items() if each.type == "text" and name not in given]
        if not texts:
            raise BadRequest(f"The job {command.job!r} has no input for a text.", field="input")
        given[texts[0]] = command.input
    return check_inputs(flow.inputs, given, command.trigger.get("payload"))


def _check_model_inputs(command: jc.StartJob, entry: Entry) -> None:
    flow = entry.jobs[command.job].flow
    assert flow is not None
    for name in sorted(secrets_of(flow.inputs)):
        if command.inputs.get(name) or flow.inputs[name].needed:
            words = f"The input {name!r} is a secret, and what a model gives is stored in its session. Ask the user to"
            raise BadRequest(f"{words} start the job: portico run {command.job}", field="inputs")


async def check_secrets(services: Services, work: Work) -> None:
    """Raises if a step needs a secret that is not set."""
    names = {name for leaf in leaves_of(work) if isinstance(leaf, FlowStep) for name in leaf.secrets}
    if names:
        await services.secrets(sorted(names))


def _check_input(command: jc.StartJob, entry: Entry) -> None:
    """Its prompts would say `<MISSING>`."""
    job = entry.jobs.get(command.job)
    if job is not None and job.require_user_input and not command.input:
        raise BadRequest(
            f"The job {command.job!r} needs input from its user. Give it as 'input' (--input on the command line).",
            field="input",
        )


def _without_waits(command: jc.StartJob, entry: Entry) -> Entry:
    """As the portal's clients know jobs: an agent that failed is tried again at once."""
    return _changed(command, entry, retry_seconds=[])


def _labelled(command: jc.StartJob, entry: Entry) -> Entry:
    """With the label that is asked for instead of the job's own."""
    return _changed(command, entry, label=command.label)


def _changed(command: jc.StartJob, entry: Entry, **values: Any) -> Entry:
    jobs = {name: replace(job, **values) if name == command.job else job for name, job in entry.jobs.items()}
    return replace(entry, jobs=jobs)
