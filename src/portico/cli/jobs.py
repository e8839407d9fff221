"""`portico jobs`: every job there ever was."""

import textwrap
from typing import Annotated

import msgspec
import typer

from portico.cli import job_files
from portico.cli.draft_job import draft
from portico.cli.edit_job import agreed, planned_retry
from portico.cli.follow_job import EXIT, JobView, cost_of, follow_job, result_lines, view_of
from portico.cli.job_tree import MARKS, row_name
from portico.cli.network import print_hosts
from portico.cli.output import HomeOption, JobArgument, JsonFlag, plain, print_json, print_table, run, when
from portico.cli.verb import connected
from portico.client import Client
from portico.features.jobs import commands as jc
from portico.features.jobs.commands import JobNamed, RetryPlanned
from portico.features.jobs.state import JobSummary
from portico.kernel import commands as c

app = typer.Typer(help="List, show, follow, stop, resume and retry jobs.", no_args_is_help=True)


class _Listing(msgspec.Struct):
    jobs: list[JobSummary]


@app.command("list")
@connected
async def list_jobs(client: Client, as_json: JsonFlag = False) -> None:
    """All jobs, newest first.

    Example: portico jobs list
    """
    found = msgspec.json.decode(await client.call("GET", "/v1/jobs"), type=_Listing).jobs[::-1]
    if as_json:
        print_json(found)
        return
    rows = [[job.id, plain(job.name), job.status, when(job.started), _took(job), plain(job.cwd)] for job in found]
    print_table(["id", "job", "status", "started", "took", "in"], rows, "No jobs yet. Try: portico run hello")


@app.command()
@connected
async def show(
    client: Client,
    job: JobArgument,
    failed_only: Annotated[bool, typer.Option("--failed", help="Of a workflow: only the steps that failed.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show a job: its result, its steps in the order in which they started, and their sessions.

    Example: portico jobs show job-1
    """
    view = await view_of(client, job, "failed" if failed_only else "")
    view.cost = await cost_of(client, job)
    if as_json:
        print_json(view)
        return
    planned = view.entry.jobs.get(view.summary.name)
    if view.rows or (planned is not None and planned.flow is not None):
        print(plain("\n".join(_workflow_lines(view))))
        _print_network(view)
        return
    failed = [each.task for each in view.summary.works if each.status == "failed"]
    reasons = {task: await _decisions(client, task) for task in failed}
    summary = view.summary
    lines = [f"{summary.id} {summary.name}: {summary.status} {_took(summary)}", f"in {summary.cwd}"]
    lines += [f"from {summary.origin}"] if summary.origin else []
    lines += [each for each in (summary.reason, summary.error) if each]
    sessions = await client.sessions(children=True)
    for each in sorted(summary.works, key=lambda work: work.started):
        own = [found.id for found in reversed(sessions) if found.by == f"task:{each.task}"]
        lines.append(f"  [{each.work}] {each.name}: {each.status} ({', '.join([each.task, *own])})")
        lines += [textwrap.indent(reason, " " * 6) for reason in reasons.get(each.task, [])]
    print(plain("\n".join(lines)))
    _print_network(view)


def _print_network(view: JobView) -> None:
    if view.network:
        print_hosts(view.network)


@app.command()
@connected
async def tail(client: Client, job: JobArgument, as_json: JsonFlag = False) -> None:
    """Follow a job from its beginning to its end. Ctrl-C leaves it running.

    Example: portico jobs tail job-1
    """
    raise typer.Exit(EXIT[await follow_job(client, job, as_json)])


@app.command()
def stop(job: JobArgument, as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """Cancel a job; what it has done stays.

    Example: portico jobs stop job-1
    """
    _order(jc.StopJob(job=job), as_json, home)


@app.command()
def resume(job: JobArgument, as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """Resume a waiting job where it is; a failed or canceled one as a new job that keeps what succeeded.

    Example: portico jobs resume job-1
    """
    _order(jc.ResumeJob(job=job), as_json, home)


@app.command()
def retry(
    job: JobArgument,
    step: Annotated[
        str, typer.Option("--from", help="Of a workflow: keep what succeeded before the step with this id.")
    ] = "",
    edit: Annotated[bool, typer.Option("--edit", help="Edit the workflow first, in $EDITOR.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Start without asking about a changed file.")] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Run a job again: from the beginning, as it was stored, or a workflow from one of its steps.

    With --from the file of the workflow is read again. Differences from the stored one are printed, and a terminal
    asks before it starts.

    Example: portico jobs retry job-1 --from review
    """

    async def work() -> None:
        async with Client.local(home) as client:
            plan = await planned_retry(client, job, step, edit) if step or edit else RetryPlanned("", "", [])
            if not (yes or as_json or agreed(plan)):
                raise typer.Exit(1)
            again = await client.retry_job(job, step=step, workflow=plan.text if plan.differences else "")
        shown = {"differences": plan.differences} if plan.differences else {}
        print_json({"job": again.job} | shown) if as_json else print(again.job)

    run(work())


def _workflow_lines(view: JobView) -> list[str]:
    """The result first, then why it failed, then its rows."""
    summary = view.summary
    cost = view.cost.words if view.cost is not None else ""
    lines = [f"{summary.id} {summary.name}: {summary.status} {_took(summary)} {cost}".rstrip()]
    lines += ["", *result_lines(summary), ""] if summary.done else []
    lines += [f"in {summary.cwd}", *([f"branch {summary.branch}"] if summary.branch else [])]
    lines += [f"from {summary.origin}"] if summary.origin else []
    for row in view.rows:
        took = "" if row.ended is None else f" {(row.ended - row.started) / 1000:.1f}s"
        lines.append(f"  {MARKS[row.status]} {row_name(row)}{took} ({row.step}, {row.task})")
        lines += [textwrap.indent(row.reason, " " * 6)] if row.reason else []
    return lines


app.command("new")(job_files.new)
app.command("test")(job_files.run_cases)
app.command("draft")(draft)


def _order(command: c.Command, as_json: bool, home: HomeOption) -> None:
    async def work() -> None:
        async with Client.local(home) as client:
            answer = await client.do(command)
        ident = answer.job if isinstance(answer, JobNamed) else command.subject
        print_json({"job": ident}) if as_json else print(ident)

    run(work())


async def _decisions(client: Client, task: str) -> list[str]:
    """Why a task came out as it did, in its own words."""
    page = msgspec.json.decode(await client.call("GET", "/v1/events", channel=f"task/{task}"))
    return [each["event"]["reason"] for each in page["events"] if each["event"]["type"] == "task.decided"]


def _took(job: JobSummary) -> str:
    return "" if job.ended is None else f"{(job.ended - job.started) / 1000:.1f}s"
