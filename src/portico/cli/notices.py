"""`portico notices`: notices that were sent to people, and those that did not arrive."""

from typing import Annotated

import msgspec
import typer

from portico.cli.output import JsonFlag, plain, print_json, print_table, when
from portico.cli.verb import connected
from portico.client import Client
from portico.features.notices.notice import Delivery

app = typer.Typer(help="Notices by webhooks and commands: the list, sending again, a test.", no_args_is_help=True)


class _Listing(msgspec.Struct):
    notices: list[Delivery]


@app.command("list")
@connected
async def list_notices(
    client: Client,
    state: Annotated[
        str | None, typer.Option("--state", help="Only waiting, delivered, failed or unneeded ones.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Notices, newest first: for whom, whether they arrived, and why not.

    Example: portico notices list --state failed
    """
    asked = {"state": state} if state is not None else {}
    found = msgspec.json.decode(await client.call("GET", "/v1/notices", **asked), type=_Listing)
    if as_json:
        print_json(found)
        return
    rows = [
        [each.id, when(each.notice.time), each.notice.kind, each.target, each.state, _next(each), _why(each)]
        for each in found.notices
    ]
    print_table(["notice", "of", "kind", "for", "is", "next", "about"], rows, "No notices.")


@app.command("send-again")
@connected
async def send_again(
    client: Client, notice: Annotated[str, typer.Argument(help="Its id in the list.")], as_json: JsonFlag = False
) -> None:
    """Send a notice again, now, whether it was given up, waits or arrived.

    Example: portico notices send-again notice-120-phone
    """
    named = await client.redeliver_notice(notice)
    print_json(named) if as_json else print(f"{named.notice} is sent again; see: portico notices list")


@app.command("test")
@connected
async def try_target(
    client: Client,
    target: Annotated[str, typer.Argument(help="The webhook or command of the settings, by its name.")],
    as_json: JsonFlag = False,
) -> None:
    """Send a test notice.

    Example: portico notices test phone
    """
    named = await client.test_notice(target)
    print_json(named) if as_json else print(f"{named.notice} is sent; see: portico notices list")


def _next(delivery: Delivery) -> str:
    return when(delivery.next) if delivery.state == "waiting" else ""


def _why(delivery: Delivery) -> str:
    error = delivery.attempts[-1].error if delivery.attempts else ""
    return plain(error or delivery.notice.text)
