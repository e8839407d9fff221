"""Parameters to open a log on PostgreSQL, also used after a takeover."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from portico.cluster.postgres.lease import LEASE_SECONDS

OWNED = ("session/", "terminal/", "job/", "task/")
"""What one host runs, and so writes alone."""


class PostgresOpening(NamedTuple):
    url: str
    folder: Path
    host: str = "portico"
    place: str = ""
    lease_seconds: float = LEASE_SECONDS
    clock: Callable[[], float] | None = None
    """None: the clock of the database."""
    owned: tuple[str, ...] = ("",)
    """Prefixes of channels that only one host writes. The database assigns the positions of others and of `host`."""
