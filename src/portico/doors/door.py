"""What a door is: routes, what it does before the first request, and what it does after the last.

A door is a plugin. Its entry point (group `portico.doors`) is called with one argument, the `App`, and returns a
`Door`; our own are found in the same way. docs/guide/writing-a-door.md has a complete example.
"""

from portico.doors.app import App
from portico.doors.route import Table


class Door:
    """One client protocol. It translates requests into commands and records into its own words; it decides nothing."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.routes: Table = []
        """Each with the scope that a caller needs. They are served when `open` has returned."""

    async def open(self) -> None:
        """Before the first request, for example to go on with what a crash has left."""

    async def close(self) -> None:
        """After the last one: the sockets are closed, and the host no longer runs turns."""
