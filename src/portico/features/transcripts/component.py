"""The room's share in the host: sessions of other hosts are taken in."""

from typing import TYPE_CHECKING

import msgspec

from portico.features.transcripts.archive import Archive, import_archive
from portico.features.transcripts.commands import ImportSession
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest
from portico.kernel.feature import Feature, handle
from portico.kernel.state import Summary

if TYPE_CHECKING:
    from portico.kernel.host import Host


class Transcripts(Feature):
    name = "transcripts"
    commands = (ImportSession,)

    def __init__(self, host: "Host") -> None:
        super().__init__(host)
        self._host = host

    @handle
    async def _import(self, command: ImportSession, caller: c.Caller) -> Summary:
        try:
            archive = msgspec.convert(command.archive, Archive)
        except msgspec.ValidationError as error:
            raise BadRequest(f"The archive is not as expected: {error}.", field="archive") from None
        session = await import_archive(
            self._host,
            archive,
            by=caller.by,
            agent=command.agent,
            cwd=command.cwd,
            owner=self._host.ownership.owner_for(caller),
        )
        return session.summary
