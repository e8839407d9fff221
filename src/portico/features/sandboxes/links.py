"""Links in git folders that lead out of them.

The attack: a confined program replaces `.git/logs/HEAD` with a link to `~/.bashrc`, and the next commit outside of the
sandbox writes its message there. Links that were not there before the sandbox are removed after each turn and at its
end. What was there before is stored, so that the start after a kill removes them as well. While they exist, git of the
host does not write there. Links of the user stay.
"""

import contextlib
import os
import socket
from collections.abc import Iterable, Mapping

from msgspec import Struct

from portico.features.sandboxes.paths import git_folders
from portico.workspace import adoption

LINKS_MAX = 1_000_000
"""Files of a git folder that are searched for links, without its objects: seconds in a thread. A low limit would
let a program hide a link behind many files."""


class GitLinks(Struct, frozen=True):
    """The links from before a sandbox, as they are stored. All methods read the disk: call them in a thread."""

    git: tuple[str, ...]
    before: dict[str, str]
    machine: str = ""
    pid: int = 0
    """The process that has the sandbox."""
    started: int = 0
    """When it has started."""

    @classmethod
    def of(cls, folders: Iterable[str]) -> "GitLinks":
        """`folders`: of a session."""
        git = tuple(dict.fromkeys(git for each in folders for git in git_folders(os.path.realpath(each))))
        own = adoption.status(os.getpid())
        return cls(git, links_in(git), socket.gethostname(), os.getpid(), own.start if own is not None else 0)

    @property
    def is_left(self) -> bool:
        """Whether its process has been killed: it is stored, and this process has just started."""
        if self.machine != socket.gethostname():
            return False
        owner = adoption.status(self.pid)
        return self.pid == os.getpid() or owner is None or owner.dead or owner.start != self.started

    def new(self) -> list[str]:
        """The links that lead out of their git folder and were not there before."""
        return new_links(self.git, self.before)

    def remove_new(self) -> list[str]:
        removed: list[str] = []
        for path in self.new():
            with contextlib.suppress(OSError):
                os.unlink(path)
                removed.append(path)
        return removed


def links_in(folders: Iterable[str]) -> dict[str, str]:
    """Return the symbolic links of git folders, with where they lead. Objects are left out: git only adds to them."""
    found: dict[str, str] = {}
    for folder in folders:
        left, seen = [folder], 0
        while left and seen <= LINKS_MAX:
            with contextlib.suppress(OSError), os.scandir(left.pop()) as entries:
                for entry in entries:
                    seen += 1
                    if entry.is_symlink():
                        with contextlib.suppress(OSError):
                            found[entry.path] = os.readlink(entry.path)
                    elif entry.name != "objects" and entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
    return found


def new_links(folders: Iterable[str], before: Mapping[str, str]) -> list[str]:
    found: list[str] = []
    for folder in folders:
        for path, target in links_in([folder]).items():
            inside = os.path.realpath(path).startswith(f"{os.path.realpath(folder)}/")
            if before.get(path) != target and not inside:
                found.append(path)
    return found
