"""Limits the disk space of the log. If less than a reserve is free, or the log uses more than its share, no turn
starts: running turns can still end, and an agent cannot fill the disk overnight."""

import time
from typing import TYPE_CHECKING

from portico.kernel import limits

if TYPE_CHECKING:
    from portico.kernel.log.log import Log

_RESERVE_SHARE = 0.02
"""Share of a small disk that is kept free, if that is less than the reserve."""
_LOOK_SECONDS = 5.0
"""Interval of disk checks. Filling the reserve in that time takes gigabytes per second."""


class Disk:
    def __init__(self, log: "Log") -> None:
        self._log = log
        self._looked_at = 0.0
        self._why = ""
        self.share = limits.DISK_SHARE
        """Maximum share of the whole disk, from 0 to 1."""

    def full(self) -> str:
        """Return why no turn may start; empty if one may."""
        now = time.monotonic()
        if now - self._looked_at > _LOOK_SECONDS or not self._looked_at:
            self._looked_at = now
            self._why = self._look()
        return self._why

    def _look(self) -> str:
        try:
            used, free, total = self._log.disk()
        except OSError:
            return ""  # the next commit reports the error
        reserve = min(limits.DISK_RESERVE_BYTES, total * _RESERVE_SHARE)
        if free < reserve:
            wanted = f"{reserve / limits.MIB:.0f} MB"
            return f"Only {free / limits.MIB:.0f} MB are free on the log's disk; turns begin again with {wanted}."
        if used > total * self.share:
            taken = f"The log takes {used / limits.MIB:.0f} MB, more than its share of the disk ({self.share:.0%})."
            return f"{taken} Delete sessions, or raise log.disk_share in the settings."
        return ""
