"""`portico people`: who works on this host."""

import sys
from typing import Annotated

import typer

from portico.cli.output import HomeOption, JsonFlag, print_json, print_table, run, when
from portico.cli.retention import ask, show
from portico.client.client import segment
from portico.features.people.people import add_person, read_people
from portico.kernel.errors import BadRequest
from portico.server.home import Home
from portico.server.identity import read_tokens, remove_person
from portico.server.route import SCOPES
from portico.server.settings_load import load

app = typer.Typer(help="List, add, remove and erase people.", no_args_is_help=True)

PersonArgument = Annotated[str, typer.Argument(help="The name, as `portico people list` shows it.")]


@app.command("list")
def list_people(as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """The people of this host, what they may do, and where they log in.

    Example: portico people list
    """
    place = Home.default(home)
    people, tokens = read_people(place), [each for each in read_tokens(place) if not each.expired and not each.login]
    if as_json:
        print_json([{"name": p.name, "scopes": p.scopes, "created": p.created, "login": p.issuer} for p in people])
        return
    rows = [
        [p.name, ", ".join(p.scopes), p.issuer or "-", str(sum(t.person == p.name for t in tokens)), when(p.created)]
        for p in people
    ]
    print_table(["name", "scopes", "login", "tokens", "since"], rows, "Nobody yet. Add: portico people add NAME")


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="The name, for example ben@example.org.")],
    scope: Annotated[list[str] | None, typer.Option(help=f"One of {', '.join(SCOPES)}; repeatable.")] = None,
    admin: Annotated[bool, typer.Option("--admin", help="All scopes: they see all, and that is audited.")] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Add a person; without --scope they get the scopes of people.scopes.

    Example: portico people add ann@example.org
    """
    place = Home.default(home)
    settings = load(place.settings_path).settings.people
    made = add_person(place, name, SCOPES if admin else scope or settings.scopes, settings.admins)
    if as_json:
        print_json({"name": made.name, "scopes": made.scopes})
    else:
        print(f"Added {made.name}. A token: portico token new NAME --person {made.name}", file=sys.stderr)


@app.command()
def remove(
    name: PersonArgument,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Remove a person: their tokens and logins end; their sessions stay.

    Example: portico people remove ann@example.org
    """
    remove_person(Home.default(home), name)
    print_json({"removed": name}) if as_json else print(f"Removed {name}", file=sys.stderr)


@app.command()
def erase(
    name: PersonArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Delete all sessions of a person, on the running host.

    Example: portico people erase ann@example.org --dry-run
    """
    if not yes and not dry_run:
        if not sys.stdin.isatty():
            raise BadRequest("Nobody is here to be asked. Say --yes if it is meant.", field="yes")
        typer.confirm(f"Delete all sessions of {name} for good?", abort=True)
    show(run(ask(f"/v1/people/{segment(name)}/erase", dry_run, home)), as_json)
