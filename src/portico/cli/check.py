"""`portico check`: is this entry valid, and what is in it?"""

from pathlib import Path
from typing import Annotated

import typer

from portico.cli.output import JsonFlag, print_json
from portico.errors import BadRequest
from portico.jobs.legacy import import_legacy, looks_legacy
from portico.jobs.load import load_entry, read_file
from portico.jobs.schema import entry_schema
from portico.jobs.tree import draw_entry


def check(
    file: Annotated[Path | None, typer.Argument(help="An entry: JSON or YAML.")] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of entries, for editors.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Validate an entry and print its jobs as trees. Exit code 64 and the place of the mistake when it is wrong.

    Example: portico check portico.entry.json
    """
    if schema:
        print_json(entry_schema())
        return
    if file is None:
        raise BadRequest("Name an entry file, or say --schema.", field="file")
    data = read_file(file)
    notes: list[str] = []
    if looks_legacy(data):
        entry, notes = import_legacy(data)
    else:
        entry = load_entry(data)
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    print_json(entry) if as_json else print(draw_entry(entry))
