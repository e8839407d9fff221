"""Commands and terminals that a killed host left running.

A killed host cannot terminate its children, and a command that keeps running may act a second time when its turn is
resumed. The mark of every child identifies its host by pid, start time (pids are reused) and PID namespace. The next
host terminates the children of hosts that no longer run. The pid of a host in a container is not valid outside, so its
children are not touched. Agents that hide their environment are on a separate list.
"""

import logging

from portico.workspace import adoption
from portico.workspace.child import MARK, end_all, pid_namespace, started

logger = logging.getLogger("portico.workspace")


def end_orphans() -> list[int]:
    """Terminate the processes that dead hosts of any home folder left running, and return them."""
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
