"""Events of sandboxes: connections in the channel of their session or task, folders in that of the host."""

from portico.kernel.events import Event, register_events


class NetworkReached(Event, frozen=True, tag="network.reached"):
    """The connections of one turn, or of an `http` step of a job, to one host. A turn has one for
    each host; a later one adds to it."""

    turn: str
    """Empty: between two turns, or a step of a job."""
    host: str
    """`*`: more hosts than are listed one by one."""
    port: int
    count: int = 0
    """Connections that were made, and requests on a connection that was kept."""
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
    """`policy`, `timeout` (no answer to the card), `network` (no connection was possible), or who answered."""


class SandboxChosen(Event, frozen=True, tag="sandbox.chosen"):
    """The sandbox of conversations that are started in a folder from now on."""

    folder: str
    """Its absolute path."""
    mode: str
    """`off`, `project` or `strict`; empty: the default of the host again."""
    by: str
    """Who chose it."""


class SandboxEntered(Event, frozen=True, tag="sandbox.entered"):
    """Confined programs can write to a folder from now on. git of the host runs in a sandbox there."""

    folder: str
    """Its absolute path."""
    git: list[str] = []
    """Git folders inside that no confined program could have made: their settings are the user's."""


register_events(NetworkReached, SandboxChosen, SandboxEntered)
