"""Callbacks for events of the log. If one raises, the error is logged and the others are still called: a bug in one of
them must not block a commit, a caller or a reader."""

import logging
from collections.abc import Callable
from typing import Generic, ParamSpec

P = ParamSpec("P")
logger = logging.getLogger("portico.log")


class Listeners(Generic[P]):
    def __init__(self, what: str) -> None:
        self._what = what
        self._functions: list[Callable[P, None]] = []

    def add(self, function: Callable[P, None]) -> Callable[[], None]:
        """Add a callback and return a function that removes it."""
        self._functions.append(function)
        return lambda: self._functions.remove(function)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> None:
        for function in tuple(self._functions):
            try:
                function(*args, **kwargs)
            except Exception:  # one listener's bug must not keep the record from the others
                name = getattr(function, "__qualname__", repr(function))
                logger.exception("the %s listener %s failed", self._what, name)
