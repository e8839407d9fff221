"""`portico log`: what is damaged in the log, and a new log with what can still be read."""

import sys
from typing import Annotated

import typer

from portico.cli.output import HomeOption, JsonFlag, print_json
from portico.errors import BadRequest
from portico.home import Home
from portico.maintenance import repair as work
from portico.maintenance.repair import Report

app = typer.Typer(help="Look at the log as a file, and repair it.", no_args_is_help=True)


@app.command()
def check(
    repair: Annotated[
        bool, typer.Option("--repair", help="Put a new log with all that is readable in its place.")
    ] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Read every event, blob and checksum. Exit code 1 if something is damaged.

    Example: portico log check --repair
    """
    place = Home.default(home)
    if not place.log_path.exists():
        raise BadRequest(f"There is no log in {str(place.path)!r}.", field="home")
    found = work.check(place.log_path)
    if repair and found.damage:
        place.lock()  # a host that runs on it would go on with the old file
        try:
            found = work.repair(place.log_path)
        finally:
            place.unlock()
    print_json(found) if as_json else _tell(found)
    if found.damage and not found.kept_as:
        raise typer.Exit(1)


def _tell(found: Report) -> None:
    for line in found.damage:
        print(line)
    counts = f"{found.events} events in {found.channels} channels, {found.blobs} blobs"
    if found.kept_as:
        print(f"The new log has {counts}. The damaged one is kept: {found.kept_as}", file=sys.stderr)
    elif found.damage:
        print(
            f"Damaged: {counts} can be read. Keep them in a new log with: portico log check --repair", file=sys.stderr
        )
    else:
        print(f"Whole: {counts}.", file=sys.stderr)
