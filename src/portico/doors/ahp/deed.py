"""One action of a client, on its way to the host."""

from typing import TYPE_CHECKING

from portico.doors.ahp.record import Json

if TYPE_CHECKING:
    from portico.doors.ahp.connection import Connection


class Deed:
    __slots__ = ("action", "by", "client_seq", "connection", "name", "type")

    def __init__(self, connection: "Connection", name: str, action: Json, client_seq: int) -> None:
        self.connection = connection
        self.name = name
        self.action = action
        self.client_seq = client_seq
        self.type: str = action["type"]
        self.by = f"{connection.by}#{client_seq}.{self.type}"

    @property
    def prefix(self) -> str:
        """The kind of channel that its type belongs to."""
        return self.type.partition("/")[0]

    def refuse(self, reason: str) -> None:
        self.connection.echo(self.name, self.action, self.client_seq, reason)

    def echo(self) -> None:
        """It was right and changed nothing."""
        self.connection.echo(self.name, self.action, self.client_seq)
