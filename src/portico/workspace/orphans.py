"""Commands and terminals that a killed host left running.

A host that is killed cannot end its children, and a command that goes on alone may act a second time once its turn is
resumed. The mark of every child names the host that started it, by its number and the time it began (numbers are used
again) in its PID namespace: the next host ends those whose own is gone. A host in a container has a number that means
nothing out here, so what it started is left alone. Agents that hide their environment are on a list of their own.
"""

import logging
import os
from pathlib import Path

from portico.workspace.child import MARK, end_all, pid_namespace, started

logger = logging.getLogger("portico.workspace")


def end_orphans() -> list[int]:
    """Ends what dead hosts left behind, of whichever home; returns the processes."""
    found = orphans()
    if found:
        logger.warning("ending what a killed host left running: processes %s", ", ".join(map(str, found)))
        end_all(orphans)
    return found


def orphans() -> list[int]:
    if not os.path.isdir("/proc/self"):
        return []  # without /proc nobody can be recognised, and a wrong kill is worse than an orphan
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _is_orphan(pid)]


def _is_orphan(pid: int) -> bool:
    mark = f"\0{MARK}=".encode()
    try:
        said = (b"\0" + Path(f"/proc/{pid}/environ").read_bytes()).partition(mark)[2]
    except OSError:
        return False  # it ended while we looked, or belongs to somebody else
    host, began, _, namespace, *_ = [*said.partition(b"\0")[0].decode("ascii", "replace").split("."), "", "", "", ""]
    if (namespace or pid_namespace(pid)) != pid_namespace():  # marks of 0.1.0 do not name theirs
        return False
    return host.isdigit() and began.isdigit() and started(int(host)) != began and started(pid) is not None
