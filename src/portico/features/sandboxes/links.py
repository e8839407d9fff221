"""Links in git folders that lead out of them.

The attack: a confined program replaces `.git/logs/HEAD` with a link to `~/.bashrc`, and the next commit outside of the
sandbox writes its message there. Links that were not there before the sandbox are removed after each turn and at its
end. Those of the user stay.
"""

import contextlib
import os
from collections.abc import Iterable, Mapping

from portico.features.sandboxes.paths import git_folders

LINKS_MAX = 20_000
"""Files of a git folder that are searched for links, without its objects."""


class GitLinks:
    def __init__(self, folders: Iterable[str]) -> None:
        """`folders`: of a session. Reads the disk, as all methods do: call them in a thread."""
        self._git = tuple(dict.fromkeys(git for each in folders for git in git_folders(os.path.realpath(each))))
        self._before = links_in(self._git)

    def remove_new(self) -> list[str]:
        return remove_new_links(self._git, self._before)


def links_in(folders: Iterable[str]) -> dict[str, str]:
    """Return the symbolic links of git folders, with where they lead. Objects are left out: git only adds to them."""
    found: dict[str, str] = {}
    for folder in folders:
        seen = 0
        for here, names, files in os.walk(folder):
            names[:] = [name for name in names if name != "objects"]
            seen += len(names) + len(files)
            for path in (os.path.join(here, name) for name in (*names, *files)):
                if os.path.islink(path):
                    with contextlib.suppress(OSError):
                        found[path] = os.readlink(path)
            if seen > LINKS_MAX:
                break
    return found


def remove_new_links(folders: Iterable[str], before: Mapping[str, str]) -> list[str]:
    """Remove links that lead out of their git folder and were not there before; return them."""
    removed: list[str] = []
    for folder in folders:
        for path, target in links_in([folder]).items():
            inside = os.path.realpath(path).startswith(f"{os.path.realpath(folder)}/")
            if before.get(path) != target and not inside:
                with contextlib.suppress(OSError):
                    os.unlink(path)
                    removed.append(path)
    return removed
