"""What reading needs, decided once for all doors: commands carry their scope, and this is the same for what is shown.

A diff is part of what a session did, as its turns and tool outputs are; whole files and folders are not.
"""

from typing import Literal

from portico.kernel.commands.caller import Scope

Readable = Literal["sessions", "changes", "jobs", "automations", "metrics", "files", "terminals", "logs", "audit"]

READS: dict[Readable, Scope] = {
    "sessions": "read",
    "changes": "read",
    "jobs": "jobs",
    "automations": "read",
    "metrics": "read",
    "files": "files",
    "terminals": "terminal",
    "logs": "admin",
    "audit": "admin",
}

EVERYBODYS: dict[Readable, str] = {
    "automations": "Automations belong to no single person",
    "metrics": "These figures are of the sessions of all people",
}
"""What belongs to no single person, and why: on a host with people only an admin reads it."""
