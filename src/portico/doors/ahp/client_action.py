"""One action of a client, on its way to the host."""

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from portico.commands import Caller
from portico.doors.ahp import origin
from portico.doors.ahp.record import Json

if TYPE_CHECKING:
    from portico.doors.ahp.connection import Connection


class ClientAction(Struct, eq=False, gc=False):
    connection: "Connection"
    name: str
    action: Json
    client_seq: int
    type: str = ""
    by: str = ""

    def __post_init__(self) -> None:
        self.type = self.action["type"]
        self.by = origin.written(self.connection.client_id, self.client_seq, self.type)

    @property
    def prefix(self) -> str:
        """The kind of channel that its type belongs to."""
        return self.type.partition("/")[0]

    @property
    def caller(self) -> Caller:
        """Who says it, named in events so that the echo is known again."""
        connection = self.connection
        return replace(connection.caller, door="ahp", client=connection.client_id, label=self.by)

    def refuse(self, reason: str) -> None:
        self.connection.echo(self.name, self.action, self.client_seq, reason)

    def echo(self) -> None:
        """It was right and changed nothing."""
        self.connection.echo(self.name, self.action, self.client_seq)
