"""`portico log`: what is damaged in the log, a new log with what can still be read, and a copy in another database."""

import asyncio
import contextlib
import sys
import time
from typing import Annotated

import typer

from portico.cli.output import HomeOption, JsonFlag, print_json
from portico.kernel.errors import BadRequest
from portico.server.home import Home
from portico.server.maintenance import repair as work
from portico.server.maintenance.repair import RepairReport

app = typer.Typer(help="Look at the log as a file, repair it, and move it.", no_args_is_help=True)


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
        place.lock()  # a running host would continue with the old file
        try:
            found = work.repair(place.log_path)
        finally:
            place.unlock()
    print_json(found) if as_json else _tell(found)
    if found.damage and not found.kept_as:
        raise typer.Exit(1)


def _tell(found: RepairReport) -> None:
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


@app.command()
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="A home folder, a log.db, or postgresql://...")],
    target: Annotated[
        str, typer.Argument(metavar="TO", help="The same; it has to be empty, or a copy that was cut off.")
    ],
    as_json: JsonFlag = False,
) -> None:
    """Copy a log between SQLite and PostgreSQL, with every number kept, and compare both.

    No host may run on either. If it is interrupted and started again, it continues. Clients continue with their
    cursors; the old log must not be used any more.

    Example: portico log copy ~/.local/share/portico postgresql://portico@db.example/portico
    """
    from portico.server.maintenance.copy import CopyReport, file_of, opened
    from portico.server.maintenance.copy import copy as copy_log

    async def run() -> CopyReport:
        async with opened(source, new=False) as one, opened(target, new=True) as other:
            return await copy_log(one, other, _Progress(quiet=as_json))

    with contextlib.ExitStack() as stack:
        files = [file_of(place) for place in (source, target) if "://" not in place]
        if source == target or len({*files}) < len(files):
            raise BadRequest("FROM and TO are the same log.", field="to")
        there = "://" in source or files[0].exists()  # else `opened` reports it, and no folder is created
        for home in (Home(file.parent) for file in files if there):
            home.make()
            home.lock()
            stack.callback(home.unlock)
        done = asyncio.run(run())
    if as_json:
        print_json(done)
    else:
        counts = f"{done.events} events in {done.channels} channels, {done.notes} notes, {done.blobs} blobs"
        print(f"Copied and compared: {counts}, up to number {done.seq}.", file=sys.stderr)


class _Progress:
    """A line on standard error, at most four a second."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._shown = 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        now = time.monotonic()
        if not self._quiet and (now - self._shown > 0.25 or done == total):
            self._shown = now
            print(f"{what}: {done} of {total}", file=sys.stderr)
