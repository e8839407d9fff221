"""The REST door, `/v1`: the host's own words over HTTP and server-sent events.

The Python client, the command line and the pages use it. It translates and decides nothing.
"""

from portico.doors.house import House
from portico.doors.rest import board, changes, events, people, queue, review, search, sessions, terminals
from portico.doors.route import Table


def rest(house: House) -> Table:
    return [
        *sessions.table(house),
        *queue.table(house),
        *people.table(house),
        *events.table(house),
        *changes.table(house),
        *search.table(house),
        *terminals.table(house),
        *board.table(house),
        *review.table(house),
    ]
