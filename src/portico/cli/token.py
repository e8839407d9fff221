"""`portico token`: who may come in."""

import sys
from typing import Annotated

import typer

from portico.cli.output import HomeOption, JsonFlag, print_json, print_table, when
from portico.doors.identity import new_token, read_tokens, revoke_token
from portico.doors.route import SCOPES
from portico.home import Home

app = typer.Typer(help="Make, list and revoke tokens.", no_args_is_help=True)


@app.command()
def new(
    name: str,
    scope: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(SCOPES)}; repeatable. [all]")] = None,
    days: Annotated[float | None, typer.Option(help="How long it lasts. [until it is revoked]")] = None,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Make a token and print it, this once.

    Example: portico token new phone --scope read --scope approve --days 30
    """
    made = new_token(Home.default(home), name, list(scope or SCOPES), days=days)
    print_json({"name": name, "token": made, "scopes": list(scope or SCOPES)}) if as_json else print(made)


@app.command("list")
def list_tokens(as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """The named tokens and what they may do.

    Example: portico token list
    """
    found = read_tokens(Home.default(home))
    if as_json:
        print_json([{"name": t.name, "scopes": t.scopes, "created": t.created, "expires": t.expires} for t in found])
        return
    ends = {each.name: f"{when(each.expires)}{' (over)' * each.expired}" if each.expires else "never" for each in found}
    rows = [[each.name, ", ".join(each.scopes), when(each.created), ends[each.name]] for each in found]
    print_table(
        ["name", "scopes", "created", "expires"], rows, "Only the owner's token. Make another: portico token new NAME"
    )


@app.command()
def revoke(name: str, as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """End a token, its logins and its open connections. `owner` gets a new one.

    Example: portico token revoke phone
    """
    revoke_token(Home.default(home), name)
    print_json({"revoked": name}) if as_json else print(f"Revoked {name}", file=sys.stderr)
