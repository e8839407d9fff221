"""`portico token`: who may come in."""

import sys
from typing import Annotated

import typer

from portico.cli.output import HomeOption, JsonFlag, print_json, print_table, when
from portico.server.home import Home
from portico.server.identity import NamedToken, effective_tokens, new_token, read_uses, revoke_token
from portico.server.route import SCOPES

PersonOption = Annotated[str, typer.Option(help="Whose it is; without it the host's own, which sees everything.")]

app = typer.Typer(help="Make, list and revoke tokens.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="The name it was made with.")]


@app.command()
def new(
    name: Annotated[str, typer.Argument(help="A name for it, for example phone.")],
    scope: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(SCOPES)}; repeatable. [all]")] = None,
    person: PersonOption = "",
    tool: Annotated[
        list[str] | None,
        typer.Option(help="An MCP tool beyond those of read, drive and jobs, or a set (ask, work, all); repeatable."),
    ] = None,
    days: Annotated[float | None, typer.Option(help="How long it lasts. [until it is revoked]")] = None,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Make a token and print it, this once.

    Example: portico token new phone --scope read --scope approve --days 30
    """
    made = new_token(Home.default(home), name, list(scope or SCOPES), person, days=days, tools=tool or ())
    told = {"name": name, "token": made, "scopes": list(scope or SCOPES)}
    told |= {key: value for key, value in (("person", person), ("tools", tool)) if value}
    print_json(told) if as_json else print(made)


@app.command("list")
def list_tokens(as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """The named tokens and what they may do.

    Example: portico token list
    """
    place = Home.default(home)
    found, uses = effective_tokens(place), read_uses(place)
    if as_json:
        print_json([_told(each, uses) for each in found])
        return
    rows = [
        [
            t.name,
            ", ".join([*t.scopes, *t.tools]),
            t.person or "-",
            when(t.created),
            _end(t),
            _when(uses.get(t.id, 0), "-"),
        ]
        for t in found
    ]
    empty = "Only the owner's token. Make another: portico token new NAME"
    print_table(["name", "scopes", "person", "created", "expires", "last used"], rows, empty)


def _told(token: NamedToken, uses: dict[str, int]) -> dict[str, object]:
    told: dict[str, object] = {"name": token.name, "scopes": token.scopes, "created": token.created}
    told["expires"] = token.expires
    more = {"person": token.person, "used": uses.get(token.id, 0), "login": token.login, "tools": token.tools}
    return told | {key: value for key, value in more.items() if value}


def _end(token: NamedToken) -> str:
    return _when(token.expires, "never") + (" (over)" if token.expired else "")


def _when(milliseconds: int, otherwise: str) -> str:
    return when(milliseconds) if milliseconds else otherwise


@app.command()
def revoke(
    name: NameArgument,
    person: PersonOption = "",
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """End a token, its logins and its open connections. `owner` gets a new one.

    Example: portico token revoke phone
    """
    revoke_token(Home.default(home), name, person)
    print_json({"revoked": name}) if as_json else print(f"Revoked {name}", file=sys.stderr)
