"""Writes the methods of the Python client from the table of commands: `python -m tools.client_methods`."""

import ast
import inspect
import re
import textwrap
from pathlib import Path

from portico import command_shapes
from portico.features import builtin as features
from portico.kernel import commands as c
from portico.kernel import events as e

_MODULES = {"e": e, "c": c, **{name: getattr(features, name) for name in features.__all__}}
TARGET = Path(__file__).parents[1] / "src/portico/client/methods.py"

_HEAD = '''"""One method for each command. Written by `python -m tools.client_methods` from the table; do not edit.

`request` is your own id of the command: the host does the same one once, and answers alike.
"""

# mypy: disable-error-code="empty-body"
# ruff: noqa: B006, B008
from typing import Any

FEATURES
from portico.client.call import calls
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.state import Summary


@calls
class Methods:
    """Each has the parameters and the answer of its command; `calls` makes it send the command."""
'''


def source() -> str:
    methods = "".join(_method(kind) for kind in c.COMMANDS.values())
    used = [name for name in features.__all__ if re.search(rf"[ \[]{name}\.", methods)]
    imports = "\n".join(sorted(f"import {getattr(features, name).__name__} as {name}" for name in used))
    return _HEAD.replace("FEATURES", imports) + methods


def _method(kind: type[c.Command]) -> str:
    said = _fields(kind)
    first = [f"{name}: {type_}" for name, type_, default in said if default is None]
    then = [f"{name}: {type_} = {default}" for name, type_, default in said if default is not None]
    takes = ", ".join(["self", *first, "*", *then, 'request: str = ""'])
    return (
        f"\n    async def {command_shapes.method_name(kind)}({takes}) -> {_answer(kind)}:\n"
        f'        """{c.sentence(kind)}"""\n'
    )


def _fields(kind: type[c.Command]) -> list[tuple[str, str, str | None]]:
    """Name, type and default as they are written there, those of what it is about first."""
    written = [each for each in reversed(kind.__mro__) if issubclass(each, c.Command) and each is not c.Command]
    bodies = [ast.parse(textwrap.dedent(inspect.getsource(each))).body[0] for each in written]
    found = []
    for line in (line for body in bodies if isinstance(body, ast.ClassDef) for line in body.body):
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            default = _qualified(ast.unparse(line.value)) if line.value is not None else None
            found.append((line.target.id, _qualified(ast.unparse(line.annotation)), default))
    return [each for each in found if each[0] in kind.__struct_fields__ and each[0] not in kind.private]


def _answer(kind: type[c.Command]) -> str:
    if kind.gives is None:
        return "Summary" if kind.shows == "session" else "e.Json"
    several = kind.gives if isinstance(kind.gives, tuple) else (kind.gives,)
    return _qualified(" | ".join(each.__name__ for each in several))


def _qualified(type_: str) -> str:
    """Its names with the module that they come from."""

    def name(found: re.Match[str]) -> str:
        modules = [short for short, module in _MODULES.items() if hasattr(module, found[0]) and found[0] != "Any"]
        return f"{modules[0]}.{found[0]}" if modules else found[0]

    return re.sub(r"\b(?<![.\"])[A-Z]\w+", name, type_)


if __name__ == "__main__":  # format it afterwards: `ruff format`
    TARGET.write_text(source())
