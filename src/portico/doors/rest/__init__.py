"""The REST door, `/v1`: the native API of the host over HTTP and server-sent events.

The Python client, the command line and the pages use it. It only translates and contains no rules.
"""

from portico.doors.rest import (
    admin,
    agents,
    board,
    changes,
    commands,
    events,
    native,
    network,
    notices,
    people,
    search,
    sessions,
    terminals,
)
from portico.server.app import App
from portico.server.door import Door

_ROOMS = (
    commands,
    agents,
    sessions,
    people,
    events,
    changes,
    search,
    terminals,
    board,
    admin,
    notices,
    native,
    network,
)


class RestDoor(Door):
    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.routes = [route for room in _ROOMS for route in room.table(app)]
