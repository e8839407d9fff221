"""Events of sandboxes, in the channel of their session."""

from portico.events import Event, register_events


class NetworkReached(Event, frozen=True, tag="network.reached"):
    """The connections of one turn to one host. A turn has one for each host; a later one adds to it."""

    turn: str
    """Empty: between two turns."""
    host: str
    """`*`: more hosts than are listed one by one."""
    port: int
    count: int = 0
    """Connections that were allowed."""
    refused: int = 0
    """Connections that were refused or failed."""
    sent: int = 0
    """Bytes from the sandbox to the host."""
    received: int = 0
    first: int = 0
    """Time of the first and the last connection or transfer, in milliseconds since the epoch."""
    last: int = 0
    allowed_by: list[str] = []
    refused_by: list[str] = []
    """`policy`, `timeout`, `network` (it could not be reached), or who answered."""


register_events(NetworkReached)
