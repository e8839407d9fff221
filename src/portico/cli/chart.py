"""`portico chart`: the flow chart of a job."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from portico.cli.output import JsonFlag, print_json
from portico.features.jobs import generate_chart
from portico.features.jobs.draw import draw_svg
from portico.features.jobs.legacy import import_file
from portico.features.jobs.tree import draw_tree
from portico.kernel.errors import NotFound


def chart(
    file: Annotated[Path, typer.Argument(help="An entry: JSON or YAML.")],
    job: Annotated[str, typer.Argument(help="The job's name.")],
    form: Annotated[Literal["text", "json", "svg"], typer.Option("--format", help="text, json or svg.")] = "text",
    as_json: JsonFlag = False,
) -> None:
    """Print the flow chart of a job.

    Example: portico chart portico.entry.json hello --format svg > hello.svg
    """
    jobs = import_file(file).entry.jobs
    if job not in jobs:
        raise NotFound("job", job, f"There are: {', '.join(map(repr, jobs)) or 'none'}.")
    work = jobs[job].work
    if as_json or form == "json":
        print_json(generate_chart(work))
    elif form == "text":
        print(draw_tree(work))
    else:
        print(draw_svg(jobs[job], job))
