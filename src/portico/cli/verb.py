"""Verbs that talk to the host: each is an async function whose first argument is the client."""

import functools
import inspect
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Concatenate

from portico.cli.output import HomeOption, run
from portico.client import Client


def connected(verb: Callable[Concatenate[Client, ...], Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """The verb as the command line calls it: without the client, and with the option `--home`."""

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
