"""What a log on PostgreSQL is opened with, and again after a takeover."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from portico.log.postgres.lease import LEASE_SECONDS

OWNED = ("session/", "terminal/", "job/", "task/")
"""What one host runs, and so writes alone."""


class PostgresOpening(NamedTuple):
    url: str
    folder: Path
    host: str = "portico"
    place: str = ""
    lease_seconds: float = LEASE_SECONDS
    clock: Callable[[], float] | None = None
    """None: the database's."""
    owned: tuple[str, ...] = ("",)
    """How the channels begin that only one host writes. Of others, and of `host`, the database gives the positions."""
