"""What reading needs, decided once for all doors: commands carry their scope, and this is the same for what is shown.

A diff is part of what a session did, as its turns and tool outputs are; whole files and folders are not.
"""

from typing import Literal

from portico.commands.caller import Scope

Readable = Literal["sessions", "changes", "automations", "files", "terminals", "logs"]

READS: dict[Readable, Scope] = {
    "sessions": "read",
    "changes": "read",
    "automations": "read",
    "files": "files",
    "terminals": "terminal",
    "logs": "admin",
}
