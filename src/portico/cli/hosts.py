"""`portico hosts`: the hosts on one log."""

import sys
from typing import Annotated

import msgspec
import typer

from portico.cli.output import JsonFlag, plain, print_json, print_table, when
from portico.cli.verb import connected
from portico.client import Client
from portico.kernel.members import Member

app = typer.Typer(help="List, drain and give up the hosts on one log.", no_args_is_help=True)

HostArgument = Annotated[str, typer.Argument(help="The name of the host, as `portico hosts list` shows it.")]


@app.command("list")
@connected
async def list_hosts(
    client: Client,
    session: Annotated[str, typer.Option(help="Only the host that runs this session.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """The hosts on this log, their load and their sessions; `*` marks the one that answers.

    Example: portico hosts list
    """
    answer = await client.call("GET", "/v1/hosts", session=session or None)
    found = msgspec.json.decode(answer, type=dict[str, list[Member]])["hosts"]
    if as_json:
        print_json(found)
        return
    rows = [
        [
            f"{'*' if each.here else ''}{each.name}",
            each.place,
            plain(", ".join(each.labels)),
            each.state,
            str(each.sessions),
            f"{each.running}/{each.capacity}",
            each.version,
            when(each.seen),
        ]
        for each in found
    ]
    head = ["host", "place", "labels", "state", "sessions", "running", "version", "seen"]
    print_table(head, rows, "This host is alone on its log. Several share one with: log.url in the settings")


@app.command()
@connected
async def drain(
    client: Client,
    name: HostArgument,
    as_json: JsonFlag = False,
) -> None:
    """Hand over the sessions of a host: idle ones immediately, busy ones after their turn. Stop it when it has none.

    Example: portico hosts drain box-2
    """
    found = await client.drain_host(name)
    words = f"{name} hands over {found.sessions} sessions; watch with: portico hosts list"
    print_json(found) if as_json else print(words, file=sys.stderr)


@app.command("give-up")
@connected
async def give_up(
    client: Client,
    name: HostArgument,
    as_json: JsonFlag = False,
) -> None:
    """Give up a host that is gone for good: its turns count as interrupted, everything can be read.

    Example: portico hosts give-up box-2
    """
    found = await client.give_up_host(name)
    print_json(found) if as_json else print(f"{found.sessions} sessions of {name} were ended.", file=sys.stderr)
