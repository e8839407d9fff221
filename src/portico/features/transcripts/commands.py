"""The command that imports a session of another host."""

from portico.kernel.commands import Command, NoLock, register
from portico.kernel.events import Json


class ImportSession(Command, frozen=True, tag="session.import"):
    """A session of another host."""

    scope = "admin"
    lock = NoLock("It reads nothing that another start changes; ids and names are reserved without an await.")
    method = "import_archive"

    archive: Json
    """As `GET /v1/sessions/{id}/archive` gives it."""
    agent: str | None = None
    cwd: str | None = None


register(ImportSession)
