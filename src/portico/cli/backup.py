"""`portico backup`: one file with everything that a host cannot make anew."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from portico.cli.output import HomeOption, JsonFlag, print_json
from portico.server.home import Home
from portico.server.maintenance.backup import back_up


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; it must not be there yet.")],
    without_secrets: Annotated[
        bool, typer.Option("--without-secrets", help="Leave out tokens and the key of the logins.")
    ] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Back up the log, the settings and the tokens, also of a running host. It is read again before it counts.

    Example: portico backup ~/backups/portico.tar.gz
    """
    made = back_up(Home.default(home).path, file.absolute(), secrets=not without_secrets)
    size = file.stat().st_size
    if as_json:
        print_json({"file": str(file), "bytes": size, "events": made.seq, "files": sorted(made.sums)})
        return
    print(f"{file}: {size / 1e6:.1f} MB, up to event {made.seq}, verified.", file=sys.stderr)
    if not without_secrets:
        print("It holds the tokens of this host: keep it as safe as they are.", file=sys.stderr)
