"""Where files are read and written and terminals begin, of all that there is on the machine."""

from portico.kernel.commands import Caller
from portico.kernel.errors import Forbidden
from portico.kernel.folders import whole
from portico.kernel.host import Host
from portico.workspace.jail import Jail


def jail_of(host: Host, *first: str, caller: Caller) -> Jail:
    """`first`, the workspaces, and the folders of sessions that the caller may drive, except one that is the whole
    machine."""
    roots = [*first, *(str(each) for each in host.workspaces if each.is_dir())]
    sessions = host.ownership.visible(caller, host.list(drafts=True), "drive")
    own = {folder for each in sessions if each.parent is None for folder in whole(each)} - {"", "/"}
    try:
        return Jail(dict.fromkeys([*roots, *sorted(own)]))
    except Forbidden:  # a session's folder is gone
        return Jail(dict.fromkeys(roots))
