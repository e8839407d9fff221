"""A git worktree for one session, on request. It is created before the session and removed when the session is deleted.

Work is never lost: a worktree with uncommitted files is kept, and so is a branch with commits. The response to the
deletion reports this.
"""

import secrets
from pathlib import Path

import msgspec

from portico.kernel.commands import Isolation
from portico.kernel.errors import AlreadyExists, PorticoError
from portico.kernel.events import Json
from portico.workspace import worktree
from portico.workspace.worktree import Worktree


async def isolate(folder: str, session: str, wanted: Isolation) -> Worktree:
    try:
        return await worktree.create(Path(folder), wanted.name or session, base=wanted.base)
    except AlreadyExists:
        if wanted.name:
            raise
        # The name is used by a session of another home folder, or by the branch of a deleted session.
        return await worktree.create(Path(folder), f"{session}-{secrets.token_hex(3)}", base=wanted.base)


async def release(kept: Json) -> str:
    """Remove a worktree as far as no work is lost; return a sentence that names what is kept."""
    tree = msgspec.convert(kept, Worktree)
    try:
        if await worktree.remove(tree):
            return f"The branch {tree.branch!r} has commits and stays."
    except PorticoError as error:  # for example a deleted repository: this must not prevent the deletion of the session
        return f"The worktree {tree.path!r} stays: {error.message}"
    return ""
