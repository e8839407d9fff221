"""The parameters of a command as a separate struct: for bodies of routes, arguments of tools and the command line."""

import re
from collections.abc import Collection, Mapping
from typing import Any, cast

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from portico.features import builtin  # noqa: F401  # registers the commands of features: the table is complete
from portico.kernel.commands import Command


def public_fields(kind: type[Command]) -> list[FieldInfo]:
    return [each for each in fields(kind) if each.name not in kind.private]


def private_field(kind: type[Command], said: Mapping[str, Any]) -> str | None:
    """The first field in there that is not for `/v1`, tools and the command line."""
    for name in sorted(kind.private):
        outer, _, inner = name.partition(".")
        held = said.get(outer) if inner else said
        if isinstance(held, Mapping) and (inner or outer) in held:
            return name
    return None


def arguments(
    kind: type[Command], *more: tuple[Any, ...], without: Collection[str] = (), module: str = __name__
) -> type[Struct] | None:
    """A struct of its public fields and of some `more`; None when there are none."""
    own = [each for each in public_fields(kind) if each.name not in without]
    made = [(each.name, each.type, *_default(each)) for each in own]
    if not made and not more:
        return None
    shape = cast(Any, [*made, *more])
    return msgspec.defstruct(f"{kind.__name__}Body", shape, forbid_unknown_fields=True, module=module, kw_only=True)


def _default(of: FieldInfo) -> tuple[Any, ...]:
    if of.default_factory is not NODEFAULT:
        return (msgspec.field(default_factory=of.default_factory),)
    return () if of.required else (of.default,)


def method_name(kind: type[Command]) -> str:
    """Of the client's method and of the tool: `SendMessage` is `send_message`."""
    return kind.method or re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()
