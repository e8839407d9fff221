"""Writes the methods of the Python client from the table of commands: `python -m tools.client_methods`."""

import ast
import inspect
import re
import textwrap
from pathlib import Path

from portico import command_shapes
from portico import commands as c
from portico import events as e

TARGET = Path(__file__).parents[1] / "src/portico/client/methods.py"

_HEAD = '''"""One method for each command. Written by `python -m tools.client_methods` from the table; do not edit.

`request` is your own id of the command: the host does the same one once, and answers alike.
"""

# mypy: disable-error-code="no-any-return"
# ruff: noqa: B006, B008
from typing import Any, Protocol

from portico import commands as c
from portico import limits
from portico.commands import {commands}
from portico.events import {events}
from portico.host.state import Summary


class Methods(Protocol):
    async def do(self, command: c.Command, *, request: str = "") -> Any: ...
'''


def source() -> str:
    methods = [_method(kind) for kind in c.COMMANDS.values()]
    heads = [line for each in methods for line in each.split("\n") if "def " in line]
    used = set(re.findall(r"\b[A-Z]\w+", " ".join(heads)))
    events = sorted((name for name in used if hasattr(e, name) and name != "Any"), key=str.lower)
    commands = sorted((name for name in used if hasattr(c, name) and name not in (*events, "Any")), key=str.lower)
    return _HEAD.format(commands=", ".join(commands), events=", ".join(events)) + "".join(methods)


def _method(kind: type[c.Command]) -> str:
    said = _fields(kind)
    first = [f"{name}: {type_}" for name, type_, default in said if default is None]
    then = [f"{name}: {type_} = {default}" for name, type_, default in said if default is not None]
    given = ", ".join([f"{name}={name}" for name, _, _ in said])
    takes = ", ".join(["self", *first, "*", *then, 'request: str = ""'])
    return (
        f"\n    async def {command_shapes.method_name(kind)}({takes}) -> {_answer(kind)}:\n"
        f'        """{c.sentence(kind)}"""\n'
        f"        return await self.do(c.{kind.__name__}({given}), request=request)\n"
    )


def _fields(kind: type[c.Command]) -> list[tuple[str, str, str | None]]:
    """Name, type and default as they are written there, those of what it is about first."""
    written = [each for each in reversed(kind.__mro__) if issubclass(each, c.Command) and each is not c.Command]
    bodies = [ast.parse(textwrap.dedent(inspect.getsource(each))).body[0] for each in written]
    found = []
    for line in (line for body in bodies if isinstance(body, ast.ClassDef) for line in body.body):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            default = ast.unparse(line.value) if line.value is not None else None
            found.append((line.target.id, ast.unparse(line.annotation), default))
    return [each for each in found if each[0] not in kind.private]


def _answer(kind: type[c.Command]) -> str:
    if kind.gives is None:
        return "Summary" if kind.shows == "session" else "Json"
    several = kind.gives if isinstance(kind.gives, tuple) else (kind.gives,)
    return " | ".join(each.__name__ for each in several)


if __name__ == "__main__":  # format it afterwards: `ruff format`
    TARGET.write_text(source())
