"""What the methods of the client have in common: each does the command of its name with what it was given."""

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from portico.command_shapes import method_name
from portico.kernel import commands as c

T = TypeVar("T")


def calls(methods: type[T]) -> type[T]:
    """The class with bodies for its methods, by the table of commands."""
    for kind in c.COMMANDS.values():
        name = method_name(kind)
        if hasattr(methods, name):  # features of other packages have none
            setattr(methods, name, _does(kind, getattr(methods, name)))
    return methods


def _does(kind: type[c.Command], method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    @functools.wraps(method)
    async def call(self: Any, *args: Any, request: str = "", **fields: Any) -> Any:
        given = inspect.signature(method).bind(self, *args, **fields).arguments
        del given["self"]
        return await self.do(kind(**given), request=request)

    return call
