"""Verbs that talk to the host: each is an async function whose first argument is the client."""

import functools
import inspect
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Concatenate, get_type_hints

from msgspec import structs

from portico.cli.output import HomeOption, run
from portico.client import Client


def connected(verb: Callable[Concatenate[Client, ...], Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Adapt a verb for the command line: without the client parameter, and with the option `--home`."""

    @functools.wraps(verb)
    def called(*args: Any, home: Path | None = None, **kwargs: Any) -> None:
        async def work() -> None:
            async with Client.local(home) as client:
                await verb(client, *args, **kwargs)

        run(work())

    _, *taken = inspect.signature(verb).parameters.values()
    option = inspect.Parameter("home", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=HomeOption)
    called.__annotations__ = {each.name: each.annotation for each in (*taken, option)}
    called.__signature__ = inspect.Signature([*taken, option])  # type: ignore[attr-defined]
    return called


def with_options(verb: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., Coroutine[Any, Any, None]]:
    """Adapt a verb that takes several options as one struct, `said`: each field becomes a separate option."""
    taken = inspect.signature(verb).parameters
    shape = taken["said"].annotation
    hints = get_type_hints(shape, include_extras=True)
    options = [
        inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[each.name])
        for each in structs.fields(shape)
    ]

    @functools.wraps(verb)
    async def called(client: Client, *args: Any, **kwargs: Any) -> None:
        said = {each.name: kwargs.pop(each.name) for each in options}
        await verb(client, *args, said=shape(**said), **kwargs)

    others = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in taken.values() if each.name != "said"]
    called.__signature__ = inspect.Signature([*others[:-1], *options, others[-1]])  # type: ignore[attr-defined]
    return called
