"""`portico do`: any command by its name, for scripts."""

import sys
from typing import Annotated, Any

import msgspec
import typer
from msgspec.structs import FieldInfo

from portico import command_shapes
from portico.cli.output import HomeOption, JsonFlag, print_json, print_table, run
from portico.client import Client
from portico.features.registry import installed_features
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest, NotFound, nearest


def do(
    name: Annotated[str | None, typer.Argument(help="The command, such as session.rename. [list them]")] = None,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="FIELD=VALUE...", help="What it takes; JSON for lists and objects.")
    ] = None,
    request: Annotated[str, typer.Option("--request", help="Your own id: the same one is done once.")] = "",
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Do any command and print the host's answer as JSON. Without a name: list the commands and what they take.

    Example: portico do session.rename session=session-1 title="A better title"
    """
    installed_features()  # their commands are in the table after this
    if name is None:
        _list(as_json)
        return
    command = parse(name, values or [])

    async def work() -> Any:
        async with Client.local(home) as client:
            return await client.do(command, request=request)

    print_json(run(work()))


def parse(name: str, values: list[str]) -> c.Command:
    kind = c.COMMANDS.get(name)
    if kind is None:
        near = nearest(name, c.COMMANDS)
        hint = f"Did you mean {near!r}?" if near else "`portico do` lists them."
        raise NotFound("command", name, hint)
    known = {each.name: each for each in command_shapes.public_fields(kind)}
    said: dict[str, Any] = {}
    for each in values:
        field, equals, text = each.partition("=")
        if not equals or field not in known:
            raise BadRequest(f"{name} takes {_takes(kind)}; {each!r} is none of them.", field=field)
        said[field] = _value(known[field], sys.stdin.read() if text == "-" else text)
    missing = [each.name for each in known.values() if each.required and each.name not in said]
    if missing:
        raise BadRequest(f"{name} takes {_takes(kind)}; {missing[0]!r} is missing.", field=missing[0])
    return kind(**said)


def _value(field: FieldInfo, text: str) -> Any:
    """Convert a text to the type of the field: unchanged, as a number or boolean, or as JSON."""
    if text.startswith(("{", "[")):
        try:
            return msgspec.json.decode(text.encode(), type=field.type)
        except msgspec.DecodeError:
            pass  # a plain text may start like this, too
    try:
        return msgspec.convert(text, field.type, strict=False)
    except msgspec.ValidationError as error:
        raise BadRequest(f"{field.name}={text!r}: {error}.", field=field.name) from None


def _takes(kind: type[c.Command]) -> str:
    fields = command_shapes.public_fields(kind)
    return " ".join(f"{each.name}=..." if each.required else f"[{each.name}=...]" for each in fields) or "nothing"


def _list(as_json: bool) -> None:
    if as_json:
        print_json({name: {"scope": kind.scope, "about": c.sentence(kind)} for name, kind in c.COMMANDS.items()})
        return
    rows = [[name, kind.scope, _takes(kind), c.sentence(kind)] for name, kind in c.COMMANDS.items()]
    print_table(["command", "scope", "takes", "does"], rows, "")
