"""`portico check`: is this entry valid, and what is in it?"""

from pathlib import Path
from typing import Annotated

import typer

from portico.cli.output import JsonFlag, print_json
from portico.errors import BadRequest
from portico.jobs.legacy import import_file
from portico.jobs.schema import entry_schema
from portico.jobs.tree import draw_entry


def check(
    file: Annotated[Path | None, typer.Argument(help="An entry: JSON or YAML.")] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of entries, for editors.")] = False,
    api_level: Annotated[
        str, typer.Option(help="000: as `serve --api-level 000` reads it; unknown keys are notes.")
    ] = "latest",
    as_json: JsonFlag = False,
) -> None:
    """Validate an entry and print its jobs as trees. Exit code 64 and the place of the mistake when it is wrong.

    Example: portico check portico.entry.json
    """
    if schema:
        print_json(entry_schema())
        return
    if api_level not in ("000", "latest"):
        raise BadRequest(f"--api-level is 000 or latest, not {api_level!r}.", field="api-level")
    if file is None:
        raise BadRequest("Name an entry file, or say --schema.", field="file")
    imported = import_file(file, old=api_level == "000")
    for note in imported.notes:
        typer.echo(f"note: {note}", err=True)
    print_json(imported.entry) if as_json else print(draw_entry(imported.entry))
