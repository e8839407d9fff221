"""`portico usage`: tokens and cost, by what one wants to compare."""

import sys
import time
from typing import Annotated, Any

import typer

from portico.cli.output import JsonFlag, plain, print_json, print_table
from portico.cli.verb import connected
from portico.client import Client
from portico.features.usage.rollup import read_keys
from portico.features.usage.shapes import KEYS, UsageSum

_EAST = 14 * 60


@connected
async def usage(
    client: Client,
    by: Annotated[str, typer.Option(help=f"Added up by some of: {', '.join(KEYS)}.")] = "day,agent,model",
    days: Annotated[int, typer.Option(min=1, help="How many days back.")] = 30,
    as_json: JsonFlag = False,
) -> None:
    """What was used and what it cost. A cost that was not reported is estimated by list prices, or unknown.

    Example: portico usage --by agent,model --days 7
    """
    keys = read_keys(by) or ["day"]
    found = await client.usage(keys, days, _EAST + time.localtime().tm_gmtoff // 60)
    if as_json:
        dated = {"prices": found.prices, "prices_date": found.prices_date, "priced_as": found.priced_as}
        print_json({**dated, "sums": found.sums})
        return
    rows = [_row(each, keys) for each in found.sums]
    print_table([*keys, "turns", "read", "cached", "written", "cost"], rows, f"Nothing was used in {days} days.")
    if any(each.estimated for each in found.sums):
        print(f"~: estimated by the list prices of {found.prices} ({found.prices_date}).", file=sys.stderr)
        for model, entry in found.priced_as.items():
            print(plain(f"   {model} is priced as {entry}."), file=sys.stderr)


def _row(each: UsageSum, keys: list[str]) -> list[str]:
    counts = (each.turns, each.input, each.cached, each.output)
    return [*(plain(each.key[name]) or "-" for name in keys), *(f"{count:,}" for count in counts), cost_words(each)]


def cost_words(each: Any) -> str:
    """`$1.20`, `~$1.20` where a part is estimated, `and more` where a part is unknown, `unknown` where all of it is."""
    dollars = each.cost + each.estimated
    if not dollars:
        return "unknown" if each.unpriced else "$0.00"
    more = " and more" if each.unpriced else ""
    return f"{'~' if each.estimated else ''}${dollars:.{2 if dollars >= 0.1 else 4}f}{more}"
