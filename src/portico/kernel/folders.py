"""The folders of a conversation: where its agent may read and write, and what passes there without asking.

A session has the folder it was started in, for good (agents run there), and may be given more. A chat of it (a session
with a parent, or the session's own conversation) works in all of them, or only in those that were chosen for it.
"""

import os
from collections.abc import Callable

from portico.kernel.errors import BadRequest
from portico.kernel.state import Summary


def whole(of: Summary) -> list[str]:
    """All folders of a session at the root of its family."""
    return [of.cwd, *of.folders]


class Folders:
    """The folders of one conversation, from its summary and that of the root of its family."""

    def __init__(self, summary: Callable[[], Summary], family: Callable[[], Summary]) -> None:
        self._summary = summary
        self._family = family

    def reach(self) -> list[str]:
        """Return the folders of this conversation. If its folder differs from its family's, it has only that one."""
        own, given = self._summary(), whole(self._family())
        if own.folder_subset is not None:
            return [folder for folder in own.folder_subset if folder in given]
        return given if own.cwd in given else [own.cwd]

    def own(self) -> list[str]:
        """The folder that it runs in, and those that were chosen for it."""
        return [self._summary().cwd, *(self._summary().folder_subset or ())]


def below(folder: str, path: str) -> str | None:
    """Return the path relative to the folder, with links resolved; None if it is outside. Only for rules: code that
    opens files uses a `Jail`, because a link may change after this check."""
    if "\0" in path:
        return None
    root = os.path.realpath(folder)
    whole = os.path.realpath(os.path.join(root, path))
    if whole != root and not whole.startswith(root.rstrip("/") + "/"):
        return None
    return os.path.relpath(whole, root)


def check_folder(path: str, field: str = "cwd") -> str:
    """An absolute path of a folder that exists."""
    if "\0" in path or not os.path.isabs(path):
        raise BadRequest(f"The working directory {path!r} is not an absolute path.", field=field)
    if not os.path.isdir(path):
        raise BadRequest(f"The working directory {path!r} is not a folder.", field=field)
    return os.path.normpath(path)
