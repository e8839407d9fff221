"""Commands and terminals that a killed host left running.

A host that is killed cannot end its children, and a command that goes on alone may act a second time once its turn is
resumed. The mark of every child names the host that started it, by its number and the time it began (numbers are used
again) in its PID namespace: the next host ends those whose own is gone. A host in a container has a number that means
nothing out here, so what it started is left alone. Agents that hide their environment are on a list of their own.
"""

import logging

from portico.workspace import adoption
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
    return [pid for pid, each in adoption.processes().items() if not each.dead and _is_orphan(pid)]


def _is_orphan(pid: int) -> bool:
    host, began, _, namespace, *_ = [*(adoption.carries(pid, MARK) or "").split("."), "", "", "", ""]
    if (namespace or pid_namespace(pid)) != pid_namespace():  # marks of 0.1.0 do not name theirs
        return False
    return host.isdigit() and began.isdigit() and started(int(host)) != began
