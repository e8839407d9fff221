"""Output of the command line: tables and colors on a terminal, plain lines without one, JSON on request."""

import asyncio
import json
import re
import shutil
import signal
import sys
from collections.abc import Coroutine, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer

from portico.kernel.errors import PorticoError
from portico.workspace.escapes import visible, visible_json

T = TypeVar("T")

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
HomeOption = Annotated[
    Path | None,
    typer.Option("--home", envvar="PORTICO_HOME", help="The host's private folder.", show_envvar=True),
]


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run one command; Ctrl-C cancels it and exits without a traceback."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # asyncio cancels the work on Ctrl-C only with this one
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def dollars(text: str) -> float:
    """For options: JSON has no `nan` and no `inf`, so as budgets they would be none at all."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise typer.BadParameter(f"{text!r} is no amount of dollars such as 0.5.")
    return found


def trouble(words: str) -> None:
    """Print why the stream has stalled, because it may take a while."""
    print(f"\n-- {words}", file=sys.stderr, flush=True)


def program() -> str:
    """Return the command that runs this program: in a checkout `portico` is not on the PATH."""
    typed, found = Path(sys.argv[0]), shutil.which("portico")
    is_found = found is not None and typed.exists() and Path(found).samefile(typed)
    return str(typed) if typed.name == "portico" and not is_found else "portico"


def terminal() -> bool:
    return sys.stdout.isatty()


def print_json(value: Any) -> None:
    text = json.dumps(msgspec.to_builtins(value), indent=2 if terminal() else None, ensure_ascii=False)
    print(visible_json(text), flush=True)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> None:
    """A table on a terminal, tab-separated lines without one."""
    if not rows:
        print(empty, file=sys.stderr)
    elif not terminal():
        for row in rows:
            print("\t".join(each.replace("\t", " ").replace("\n", " ") for each in row))
    else:
        from rich.console import Console  # late: only people need it
        from rich.table import Table

        table = Table(box=None, header_style="bold", pad_edge=False)
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in rows:
            table.add_row(*row)
        Console(highlight=False, markup=False).print(table)


def when(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000).strftime("%Y-%m-%d %H:%M")


_LISTS = {
    "session": "portico sessions list",
    "job": "portico jobs list",
    "token": "portico token list",
    "automation": "portico automations list",
    "run": "portico automations history",
}
"""The verb that lists existing items, for the message about one that does not exist."""
_MISSING = re.compile(r"There is no (\w+) '[^']*'\.$")


JobArgument = Annotated[str, typer.Argument(help="The job's id, for example job-1.")]
SessionArgument = Annotated[str, typer.Argument(help="The session's id, for example session-1.")]


def complain(error: PorticoError) -> None:
    """Print an error to standard error, as JSON if `--json` was given."""
    if "--json" in sys.argv:
        body = {"error": error.message, "code": error.code, "field": error.field}
        print(json.dumps({key: value for key, value in body.items() if value is not None}), file=sys.stderr)
        return
    field = f" [{error.field}]" if error.field and error.field not in error.message else ""
    missing = _MISSING.match(error.message)
    shows = _LISTS.get(missing[1]) if missing else None
    print(f"portico: {error.message}{field}" + (f" See: {shows}" if shows else ""), file=sys.stderr)


def plain(text: str) -> str:
    """Make agent text safe for a terminal, so that it cannot control it or look like another text: escapes and other
    control characters are removed, and bidirectional or invisible characters are spelled out."""
    kept = "".join(c for c in text if c in "\n\t" or (c >= " " and not "\x7f" <= c <= "\x9f"))
    return visible(kept)
