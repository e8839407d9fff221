"""The REST door, `/v1`: the host's own words over HTTP and server-sent events.

The Python client, the command line and the pages use it. It translates and decides nothing.
"""

from portico.doors.app import App
from portico.doors.door import Door
from portico.doors.rest import (
    admin,
    archive,
    board,
    changes,
    commands,
    events,
    hosts,
    notices,
    people,
    queue,
    review,
    search,
    sessions,
    terminals,
)


class RestDoor(Door):
    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.routes = [
            *commands.table(app),
            *sessions.table(app),
            *queue.table(app),
            *people.table(app),
            *events.table(app),
            *changes.table(app),
            *archive.table(app),
            *search.table(app),
            *terminals.table(app),
            *board.table(app),
            *review.table(app),
            *admin.table(app),
            *hosts.table(app),
            *notices.table(app),
        ]
