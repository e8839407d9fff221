"""`portico restore`: a home as a backup has it."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from portico.cli.output import HomeOption, JsonFlag, print_json
from portico.server.home import Home
from portico.server.maintenance.backup import restore as put_back


def restore(
    file: Annotated[Path, typer.Argument(help="A file of `portico backup`.")],
    force: Annotated[bool, typer.Option("--force", help="Put aside the log that is there.")] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Restore a backup into a home folder that no host uses. What is there is renamed, not deleted.

    Example: portico restore ~/backups/portico.tar.gz --home ~/restored
    """
    place = Home.default(home)
    place.make()
    place.lock()
    try:
        made = put_back(file.absolute(), place.path, replace=force)
    finally:
        place.unlock()
    if as_json:
        print_json({"home": str(place.path), "events": made.seq, "files": sorted(made.sums)})
    else:
        print(f"{place.path} has {', '.join(sorted(made.sums))} now, up to event {made.seq}.", file=sys.stderr)
