"""`_meta.git` of a session: its branch, and the distance of its folder from it. Read from git when a client
subscribes, and after every turn that used a tool."""

from pathlib import Path

from portico.doors.ahp.wire.record import Json
from portico.kernel.errors import PorticoError
from portico.workspace.git import git

_STATUS = ("--no-optional-locks", "status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty", "--", ".")
"""A repository inside of this one has its own settings: its files are not compared."""
_HEADS = {"# branch.head ": "branchName", "# branch.upstream ": "upstreamBranchName"}


async def of_folder(folder: Path) -> Json:
    """Empty if git reports nothing."""
    try:
        said = await git(folder, *_STATUS)
    except PorticoError:
        return {}
    return parse(said)


def parse(said: str) -> Json:
    """Parse the output of `git status --porcelain=v2 --branch`."""
    lines = said.splitlines()
    found: Json = {"uncommittedChanges": sum(not line.startswith("#") for line in lines)}
    for line in lines:
        for head, field in _HEADS.items():
            if line.startswith(head):
                found[field] = line.removeprefix(head)
        if line.startswith("# branch.ab "):
            ahead, behind = line.removeprefix("# branch.ab ").split()
            found |= {"outgoingChanges": int(ahead), "incomingChanges": -int(behind)}
    if found.get("branchName") == "(detached)":
        del found["branchName"]
        found["isDetachedHead"] = True
    return found
