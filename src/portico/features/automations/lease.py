"""Who claims and starts: the one host that holds the scheduler's lease."""

from typing import Protocol


class Lease(Protocol):
    def held(self) -> bool:
        """Whether this host holds the lease. Checked before every claim of the scheduler and before every start."""


class LocalLease:
    """One process owns its log (the home folder is locked), so it holds the lease."""

    def held(self) -> bool:
        return True
