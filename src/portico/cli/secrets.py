"""`portico secrets`: values for steps of jobs. A value comes from a prompt or standard input, never from an argument:
arguments are in the history of the shell and in the list of processes."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from portico.cli.output import HomeOption, JsonFlag, print_json, print_table, run, when
from portico.client import Client
from portico.client.context import chosen
from portico.features.secrets.commands import RemoveSecret, SetSecret
from portico.features.secrets.store import LONGEST, Secret, SecretStore, check_name
from portico.kernel.errors import BadRequest
from portico.server.home import Home

app = typer.Typer(help="Set, list and remove the secrets of jobs.", no_args_is_help=True)

SecretArgument = Annotated[str, typer.Argument(metavar="NAME", help="Capital letters, digits and _: GH_TOKEN.")]


class _Listing(msgspec.Struct):
    secrets: list[Secret]


@app.command("set")
def set_secret(
    name: SecretArgument,
    keyring: Annotated[
        bool, typer.Option("--keyring", help="Store it in the keyring of this system (portico[keyring]).")
    ] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Set a secret, or replace its value. The value is asked for, or read from standard input.

    Example: portico secrets set GH_TOKEN < token.txt
    """
    check_name(name)
    if keyring and chosen() is not None:
        raise BadRequest("--keyring is for the host of this machine.", field="--keyring")
    value = _value(name)
    if keyring or not _is_running(home):
        changed = SecretStore(Home.default(home)).set(name, value, keyring=keyring).changed
    else:
        changed = run(_set(SetSecret(name=name, value=value), home))
    print_json({"name": name, "changed": changed}) if as_json else print(f"{name} is set", file=sys.stderr)


@app.command("list")
def list_secrets(as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """The names of the secrets, and where each is stored. Values are not shown.

    Example: portico secrets list
    """
    found = run(_list(home)) if _is_running(home) else SecretStore(Home.default(home)).list()
    if as_json:
        print_json(found)
        return
    rows = [[each.name, each.place, when(each.changed) if each.changed else "-"] for each in found]
    print_table(["name", "stored in", "changed"], rows, "No secrets. Set one: portico secrets set NAME")


@app.command()
def remove(name: SecretArgument, as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """Remove a secret. Steps that name it fail until it is set again.

    Example: portico secrets remove GH_TOKEN
    """
    if _is_running(home):
        run(_remove(name, home))
    else:
        SecretStore(Home.default(home)).remove(name)
    print_json({"removed": name}) if as_json else print(f"{name} is removed", file=sys.stderr)


def _value(name: str) -> str:
    if sys.stdin.isatty():
        value: str = typer.prompt(f"Value of {name}", hide_input=True, confirmation_prompt=True, err=True)
        return value
    data = sys.stdin.buffer.read(LONGEST + 2)
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise BadRequest("The value is no text; encode it, for example with base64.", field="value") from None


def _is_running(home: Path | None) -> bool:
    """Ask the host if there is one: it has credentials that this process has not, and keeps an audit record."""
    return chosen() is not None or Home.default(home).endpoint() is not None


async def _set(command: SetSecret, home: Path | None) -> int:
    async with Client.local(home) as client:
        changed: int = (await client.do(command)).changed
        return changed


async def _list(home: Path | None) -> list[Secret]:
    async with Client.local(home) as client:
        return msgspec.json.decode(await client.call("GET", "/v1/secrets"), type=_Listing).secrets


async def _remove(name: str, home: Path | None) -> None:
    async with Client.local(home) as client:
        await client.do(RemoveSecret(name=name))
