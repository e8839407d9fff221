"""`portico retention`: old sessions go by rule."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from portico.cli.output import HomeOption, JsonFlag, plain, print_json, print_table, run
from portico.client import Client


def retention(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Archive and delete old sessions on the running host, by the rules of [retention] in the settings.

    The host does the same every hour.

    Example: portico retention --dry-run
    """
    show(run(ask("/v1/retention", dry_run, home)), as_json)


async def ask(path: str, dry_run: bool, home: Path | None) -> dict[str, Any]:
    async with Client.local(home) as client:
        found: dict[str, Any] = msgspec.json.decode(await client.call("POST", path, {"dry_run": dry_run}))
        return found


def show(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    rows = [
        [each["session"], each["action"], each["owner"] or "-", str(each["idle_days"]), plain(each["title"])]
        for each in found["sessions"]
    ]
    print_table(["session", "action", "owner", "idle days", "title"], rows, "Nothing to do.")
