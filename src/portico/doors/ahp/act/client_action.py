"""One action of a client, on its way to the host."""

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from portico.doors.ahp.wire import origin
from portico.doors.ahp.wire.record import Json
from portico.kernel.commands import Caller, Command
from portico.kernel.events import Marked
from portico.kernel.session import Session

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient


class ClientAction(Struct, eq=False, gc=False):
    connection: "EditorClient"
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
    def marked(self) -> Marked | None:
        """What a flag applies to. None in versions that only have session flags: there it applies to both."""
        if not self.connection.dialect.since("1.0.0"):
            return None
        return "chat" if self.prefix == "chat" else "session"

    @property
    def caller(self) -> Caller:
        """The author of the action. Its label is stored in events to recognize the echo."""
        return replace(self.connection.as_client, label=self.by)

    async def do(self, command: Command) -> None:
        await self.connection.host.do(command, self.caller)

    async def changes(self, session: Session, command: Command) -> bool:
        """The same; False if the session already has this value and nothing was written."""
        log = self.connection.host.log
        before = log.head(session.channel)
        await self.do(command)
        return log.head(session.channel) > before

    def refuse(self, reason: str) -> None:
        self.connection.echo(self.name, self.action, self.client_seq, reason)

    def echo(self) -> None:
        """Echo a valid action that changed nothing."""
        self.connection.echo(self.name, self.action, self.client_seq)
