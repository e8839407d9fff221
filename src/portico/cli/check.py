"""`portico check`: is this workflow or entry valid, and what is in it?"""

from pathlib import Path
from typing import Annotated

import typer

from portico.cli.apply_automations import triggers_of
from portico.cli.output import JsonFlag, print_json
from portico.features.jobs.legacy import import_file
from portico.features.jobs.schema import entry_schema
from portico.features.jobs.tree import draw_entry, draw_workflow
from portico.features.jobs.workflow.files import is_workflow, load_workflow, workflows
from portico.features.jobs.workflow.problem import WorkflowError
from portico.kernel.errors import BadRequest


def check(
    file: Annotated[
        Path | None, typer.Argument(help="A workflow or an entry. [all workflows in .portico/jobs]")
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of entries, for editors.")] = False,
    api_level: Annotated[
        str, typer.Option(help="000: as `serve --api-level 000` reads it; unknown keys are notes.")
    ] = "latest",
    as_json: JsonFlag = False,
) -> None:
    """Validate a workflow or an entry and print its jobs as trees. Exit code 64 if it is wrong.

    For a workflow, every mistake is printed with its file, line and column.

    Example: portico check .portico/jobs/triage.yaml
    """
    if schema:
        print_json(entry_schema())
        return
    if api_level not in ("000", "latest"):
        raise BadRequest(f"--api-level is 000 or latest, not {api_level!r}.", field="api-level")
    if file is None:
        files = list(workflows(Path.cwd()).values())
        if not files:
            raise BadRequest("There is no workflow in .portico/jobs. Name a file, or use --schema.", field="file")
        _workflows(files, as_json)
        return
    if is_workflow(file):
        _workflows([file], as_json)
        return
    imported = import_file(file, old=api_level == "000")
    for note in imported.notes:
        typer.echo(f"note: {note}", err=True)
    print_json(imported.entry) if as_json else print(draw_entry(imported.entry))


def _workflows(files: list[Path], as_json: bool) -> None:
    """Check several files and print the mistakes of all of them."""
    entries, wrong = [], list[WorkflowError]()
    for file in files:
        try:
            entries.append(load_workflow(file))
            for job in entries[-1].jobs.values():
                if job.flow is not None:
                    triggers_of(job.flow)
        except WorkflowError as error:
            wrong.append(error)
    if as_json:
        print_json({"jobs": entries, "problems": [each for error in wrong for each in error.problems]})
    else:
        print("\n\n".join(draw_workflow(each) for each in entries))
    if wrong:
        raise BadRequest("\n".join(error.message for error in wrong), field=wrong[0].field)
