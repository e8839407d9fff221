"""`portico pair`: connect a phone."""

import sys
from typing import Annotated

import typer

from portico.cli.output import JsonFlag, print_json
from portico.cli.verb import connected
from portico.client import Client
from portico.server.route import SCOPES


@connected
async def pair(
    client: Client,
    scopes: Annotated[
        list[str] | None, typer.Option("--scopes", help=f"One of {', '.join(SCOPES)}; repeatable. [all but admin]")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Connect a phone: print a QR code and a short code that log in one device within five minutes.

    Example: portico pair
    """
    made = await client.pair_device(scopes=[each for given in scopes for each in given.split(",")] if scopes else None)
    if as_json:
        print_json(made)
        return
    print("\n".join(qr_lines(made.qr)))
    page = made.url.partition("#")[0]
    print(f"\nScan this code with the phone, or open {page} and type  {made.code}")
    if made.note:
        print(made.note, file=sys.stderr)
    print(f"Valid for five minutes and one device. It may: {', '.join(made.scopes)}.", file=sys.stderr)


def qr_lines(rows: list[str]) -> list[str]:
    """Two rows of the code per line of text, dark on light: terminals have light text on dark, or the reverse."""
    padded = [*rows, "0" * len(rows[0])] if len(rows) % 2 else rows
    blocks = {"00": "█", "01": "▀", "10": "▄", "11": " "}
    return [
        "\x1b[37;40m" * sys.stdout.isatty()
        + "".join(blocks[upper + lower] for upper, lower in zip(above, below, strict=True))
        + "\x1b[0m" * sys.stdout.isatty()
        for above, below in zip(padded[::2], padded[1::2], strict=True)
    ]
