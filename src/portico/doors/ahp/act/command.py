"""What a command is, and how its parameters are read."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.versions import Dialect
from portico.kernel.commands import Command, Readable
from portico.kernel.errors import BadRequest

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient

Run = Callable[[Any, Json], Awaitable[Any]]
"""Gets an `EditorClient`; the methods that open and close a connection get the `Connection` itself."""
T = TypeVar("T")


class Method(NamedTuple):
    run: Run
    needs: Readable | type[Command] | None = None
    """What it shows or the command it becomes: who may not, learns nothing else first. None: it becomes a command that
    everybody who is connected may send, or `host.do` refuses it."""
    beside: bool = False
    """May run concurrently with others: it does not depend on their order."""
    is_slow: Callable[[Json], bool] | None = None
    """Requests of this method that run concurrently because they are slow. The others are answered in order."""
    seed: bool = True
    """Version 1 has it."""
    since: str = ""
    """The first version that has it, where not all do."""

    def runs_beside(self, params: Json) -> bool:
        return self.beside or (self.is_slow is not None and self.is_slow(params))

    def known(self, dialect: Dialect) -> bool:
        return (self.seed or not dialect.seed) and (not self.since or dialect.since(self.since))


def text(params: Json, field: str) -> str:
    found = optional(params, field, str)
    if found is None or not found:
        raise BadRequest(f"{field!r} is missing.", field=field)
    return found


def optional(params: Json, field: str, kind: type[T]) -> T | None:
    found = params.get(field)
    if found is None:
        return None
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
        raise BadRequest(f"{field!r} must be of type {kind.__name__}.", field=field)
    return found


def texts(params: Json, field: str) -> list[str]:
    found = optional(params, field, list) or []
    if not all(isinstance(each, str) for each in found):
        raise BadRequest(f"{field!r} must be a list of strings.", field=field)
    return found


def subject(connection: "EditorClient", params: Json, old: str) -> str:
    """The subject of the command: `channel`, or a separate field in version 1."""
    return text(params, old if connection.dialect.seed else "channel")
