"""Named points at which the crash tests kill the process. In a normal run `reach` does nothing.

`PORTICO_KILL_AT=after-append:3` kills this process with SIGKILL when it reaches that point for the third time.
"""

import os
import signal
from collections import Counter

_point, _, _count = os.environ.get("PORTICO_KILL_AT", "").partition(":")
ARMED = bool(_point)
"""Whether this process is to be killed at a point."""
_seen: Counter[str] = Counter()


def reach(point: str) -> None:
    if point == _point:
        _seen[point] += 1
        if _seen[point] == int(_count or 1):
            os.kill(os.getpid(), signal.SIGKILL)
