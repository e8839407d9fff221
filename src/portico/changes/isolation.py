"""A git worktree for one session, on request: made before the session begins, removed when it is deleted.

Work is never lost: a worktree with uncommitted files stays where it is, a branch with commits too, and whoever deletes
the session is told.
"""

import secrets
from pathlib import Path

import msgspec

from portico.commands import Isolation
from portico.errors import AlreadyExists, PorticoError
from portico.events import Json
from portico.workspace import worktree
from portico.workspace.worktree import Worktree


async def isolate(folder: str, session: str, wanted: Isolation) -> Worktree:
    try:
        return await worktree.create(Path(folder), wanted.name or session, base=wanted.base)
    except AlreadyExists:
        if wanted.name:
            raise
        # Another home folder's session of the same number, or the branch that a deleted one left behind.
        return await worktree.create(Path(folder), f"{session}-{secrets.token_hex(3)}", base=wanted.base)


async def release(kept: Json) -> str:
    """Removes it as far as nothing is lost; says what stays, in a sentence."""
    tree = msgspec.convert(kept, Worktree)
    try:
        if await worktree.remove(tree):
            return f"The branch {tree.branch!r} has commits and stays."
    except PorticoError as error:  # the repository may be gone, too: nobody is kept from deleting the session
        return f"The worktree {tree.path!r} stays: {error.message}"
    return ""
