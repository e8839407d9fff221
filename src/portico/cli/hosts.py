"""`portico hosts`: the hosts on one log."""

import sys
from typing import Any

import msgspec
import typer

from portico.cli.output import HomeOption, JsonFlag, print_json, print_table, run, when
from portico.client.client import Client, segment
from portico.host.members import Member

app = typer.Typer(help="List, drain and give up the hosts on one log.", no_args_is_help=True)


async def _call(home: Any, method: str, path: str) -> Any:
    async with Client.local(home) as client:
        body: dict[str, Any] | None = {} if method == "POST" else None
        return msgspec.json.decode(await client.call(method, path, body))


@app.command("list")
def list_hosts(as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """The hosts on this log, their load and their sessions; `*` marks the one that answers.

    Example: portico hosts list
    """
    found = msgspec.convert(run(_call(home, "GET", "/v1/hosts"))["hosts"], list[Member])
    if as_json:
        print_json(found)
        return
    rows = [
        [
            f"{'*' if each.here else ''}{each.name}",
            each.place,
            each.state,
            str(each.sessions),
            f"{each.running}/{each.capacity}",
            each.version,
            when(each.seen),
        ]
        for each in found
    ]
    head = ["host", "place", "state", "sessions", "running", "version", "seen"]
    print_table(head, rows, "This host is alone on its log. Several share one with: log.url in the settings")


@app.command()
def drain(name: str, as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """Hand over what a host has: idle sessions at once, busy ones after their turn. Stop it when it has none.

    Example: portico hosts drain box-2
    """
    found = run(_call(home, "POST", f"/v1/hosts/{segment(name)}/drain"))
    words = f"{name} hands over {found['sessions']} sessions; watch with: portico hosts list"
    print_json(found) if as_json else print(words, file=sys.stderr)


@app.command("give-up")
def give_up(name: str, as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """End what a host had that never comes back: its turns count as interrupted, everything can be read.

    Example: portico hosts give-up box-2
    """
    found = run(_call(home, "POST", f"/v1/hosts/{segment(name)}/give-up"))
    print_json(found) if as_json else print(f"{found['sessions']} sessions of {name} were ended.", file=sys.stderr)
