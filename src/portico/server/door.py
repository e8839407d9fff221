"""The base class of doors: routes, and hooks before the first and after the last request.

A door is a plugin. Its entry point (group `portico.doors`) is called with one argument, the `App`, and returns a
`Door`. Our own doors are discovered in the same way. docs/guide/writing-a-door.md has a complete example.
"""

from portico.server.app import App
from portico.server.route import Table


class Door:
    """One client protocol. It translates requests to commands and records to its wire format, and contains no rules."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.routes: Table = []
        """Each route has the scope that a caller needs. Routes are served after `open` has returned."""

    async def open(self) -> None:
        """Called before the first request, for example to resume work that a crash interrupted."""

    async def close(self) -> None:
        """Called after the last request: the sockets are closed, and the host no longer runs turns."""
