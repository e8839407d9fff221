"""`portico run`: a job in the foreground, on the running host or on one that lives as long as the job."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from portico.cli.follow_job import EXIT, follow_job
from portico.cli.job_flags import inputs_help, read_flags
from portico.cli.output import HomeOption, JsonFlag, plain, print_json
from portico.cli.output import run as finish
from portico.cli.secret_inputs import ask_secrets, planned_secrets
from portico.client import Client
from portico.features.jobs import Entry, find_entry
from portico.features.jobs.jobs import check_job
from portico.features.jobs.legacy import import_file
from portico.features.jobs.preview import draw_plan, preview
from portico.features.jobs.step import Flow
from portico.features.jobs.workflow.files import FOLDER, find_workflow, load_workflow
from portico.features.jobs.workflow.inputs import check_inputs
from portico.kernel.errors import BadRequest, PorticoError
from portico.server.home import Home

_HELP = {"-h", "--help"}


def run(
    context: typer.Context,
    job: Annotated[str, typer.Argument(help="The job's name: a workflow in .portico/jobs, or a job of the entry.")],
    entry: Annotated[
        Path | None,
        typer.Option(help="The entry file. [portico.entry.json or .portico/entry.json here, else the running host's]"),
    ] = None,
    cwd: Annotated[Path, typer.Option(help="The working directory.")] = Path(),
    text: Annotated[str, typer.Option("--input", "-i", help="The user's input; '-' reads standard input.")] = "",
    agent: Annotated[
        list[str] | None, typer.Option(help="Without a running host: offer only this agent; repeatable.")
    ] = None,
    place: Annotated[str, typer.Option(help="Of several hosts: the place where it runs.")] = "",
    label: Annotated[str, typer.Option(help="A label of the hosts that do its works, where tasks name none.")] = "",
    plan_only: Annotated[
        bool, typer.Option("--plan", help="Print what a workflow would do, with its inputs, and start nothing.")
    ] = False,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Start it on the running host and leave.")] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Run a job and watch it. Exit code 0 when it succeeded, 1 when it failed. Ctrl-C cancels it.

    The inputs of a workflow are options; list them with --help after the name of the job. A secret input is asked for
    without echo, or read from a file: --NAME-file PATH.

    Example: portico run hello --cwd .
    """
    if job in _HELP:
        print(context.get_help())
        return
    folder = os.path.abspath(cwd)
    flow = None if entry is not None else _workflow(Path(folder), job)
    if set(context.args) & _HELP:
        print(context.get_help() if flow is None else inputs_help(job, flow))
        return
    inputs = read_flags(flow.inputs if flow is not None else {}, context.args)
    if plan_only:
        _print_plan(Path(folder), job, inputs, as_json)
        return
    inputs = ask_secrets(flow.inputs if flow is not None else {}, inputs)
    if flow is not None:
        _check_given(job, flow, inputs, text)
    plan = None if flow is not None else _entry(entry, Path(folder), job)
    given = sys.stdin.read() if text == "-" else text

    async def work() -> int:
        async with connect(home, agent or [], detach) as client:
            entry = msgspec.to_builtins(plan)
            started = await client.run_job(
                job, folder, input=given, entry=entry, place=place, label=label, inputs=inputs
            )
            ident = started.job
            if detach:
                print_json({"job": ident}) if as_json else print(ident)
                return 0
            return await watch(client, ident, as_json)

    raise typer.Exit(finish(work()))


# The inputs of a workflow are options that only its file knows. `--help` after its name lists them.
run.context_settings = {  # type: ignore[attr-defined]
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
}


def _workflow(folder: Path, job: str) -> Flow | None:
    """The workflow of that name in the folder; None: there is none."""
    path = find_workflow(folder, job)
    return None if path is None else load_workflow(path).jobs[job].flow


def _check_given(job: str, flow: Flow, given: dict[str, Any], text: str) -> None:
    """Before a host is started for it. `--input` gives the first text."""
    first = next((name for name, each in flow.inputs.items() if each.type == "text" and name not in given), "")
    try:
        check_inputs(flow.inputs, {**given, first: text} if text and first else given)
    except BadRequest as error:
        raise BadRequest(f"{error.message} All inputs: portico run {job} --help", field=error.field) from None


def _print_plan(folder: Path, job: str, given: dict[str, Any], as_json: bool) -> None:
    path = find_workflow(folder, job)
    if path is None:
        raise BadRequest(f"--plan is for workflows, and there is no workflow {job!r} in {FOLDER}.", field="--plan")
    entry = load_workflow(path)
    flow = entry.jobs[job].flow
    assert flow is not None
    plan = preview(entry, job, check_inputs(flow.inputs, planned_secrets(flow.inputs, given)))
    print_json(plan) if as_json else print(plain(draw_plan(plan)))


async def watch(client: Client, job: str, as_json: bool) -> int:
    try:
        return EXIT[await follow_job(client, job, as_json)]
    except asyncio.CancelledError:
        try:
            await client.stop_job(job)
            print(f"\n{job} canceled", file=sys.stderr)
        except PorticoError as error:
            print(f"\n{job} not canceled: {error.message}", file=sys.stderr)
        raise


def _entry(given: Path | None, cwd: Path, job: str) -> Entry | None:
    """The entry given, or the one in the working directory, which must have the job; None: the host's own."""
    path = find_entry(given, cwd) or find_entry(None, Path.cwd())
    if path is None:
        return None
    entry = import_file(path).entry
    check_job(entry, job, str(path))
    return entry


@asynccontextmanager
async def connect(home: Path | None, agents: list[str], detach: bool) -> AsyncIterator[Client]:
    """The running host's client, or that of a host of our own."""
    place = Home.default(home)
    if place.endpoint() is not None:
        async with Client.local(home) as client:
            yield client
        return
    if detach:
        raise BadRequest("There is no running host to leave the job to. Start one with: portico serve", field="detach")
    from portico.server.serve_options import ServeOptions
    from portico.server.server import Server

    flags: dict[str, Any] = {"server.port": 0}
    async with Server(ServeOptions(home=place, flags=flags, agents=tuple(agents))), Client.local(home) as client:
        yield client
