"""Review of uncommitted changes in a session's folder: show, commit, discard, and undo a discard.

A decision refers to a state of the folder, identified by its tree. If the folder has changed since, it is rejected.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from portico import limits
from portico.features.changes.captures import change_of
from portico.kernel.errors import BadRequest, Conflict, NotFound
from portico.kernel.session import Session
from portico.kernel.state import FileChange
from portico.workspace.changes import Changes, Differences
from portico.workspace.git import git, in_work_tree

_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}
"""Paths are literal names, never patterns: a file may be named `*`."""


Side = Literal["before", "after"]


class Uncommitted(Struct, frozen=True):
    git: bool
    state: str = ""
    """Identifies the current state of the folder; send it with the decision."""
    files: list[FileChange] = []
    cut: bool = False


class _Seen(Struct, frozen=True):
    changes: Changes
    base: str
    tree: str


async def uncommitted(session: Session) -> Uncommitted:
    if not in_work_tree(Path(session.summary.cwd)):
        return Uncommitted(git=False)
    seen = await _look(session)
    found = await seen.changes.between(seen.base, seen.tree)
    return Uncommitted(True, seen.tree, [change_of(each) for each in found.files], found.cut)


async def uncommitted_diff(session: Session) -> str:
    seen = await _look(session)
    return await seen.changes.patch(seen.base, seen.tree, cut=limits.DIFF_BYTES)


async def uncommitted_file(session: Session, path: str, side: Side) -> bytes:
    seen = await _look(session)
    return await _content(seen.changes, await seen.changes.between(seen.base, seen.tree), path, side)


async def changed_file(session: Session, found: Differences | None, path: str, side: Side) -> bytes:
    if found is None:
        raise NotFound("changed file", path)
    return await _content(await Changes.open(Path(session.summary.cwd)), found, path, side)


async def _content(changes: Changes, found: Differences, path: str, side: Side) -> bytes:
    """Return one side of a changed file, for files that cannot be compared by lines."""
    blobs = {each.path: each.before if side == "before" else each.after for each in found.files}
    if not blobs.get(path):
        raise NotFound("changed file", path, f"It is not there {side} the change.")
    return await changes.content(blobs[path])


async def commit(session: Session, message: str, paths: Sequence[str], state: str | None, *, by: str) -> str:
    """Commit only these files and return the new commit. Other staged files stay staged."""
    if not message.strip():
        raise BadRequest("A commit needs a message.", field="message")
    seen = await _unmoved(session, state)
    chosen = await _chosen(seen, paths)
    folder = seen.changes.folder
    await git(folder, "add", "--all", "--", *chosen, env=_LITERAL)
    await git(folder, "commit", "--quiet", "--no-verify", "--only", "--message", message, "--", *chosen, env=_LITERAL)
    await session.host.audit("changes.commit", by, session=session.id, files=len(chosen))
    return (await git(folder, "rev-parse", "HEAD")).strip()


async def discard(session: Session, paths: Sequence[str], state: str | None, *, by: str) -> str:
    """Restore the files to their committed state; return the tree with which this can be undone."""
    seen = await _unmoved(session, state)
    chosen = await _chosen(seen, paths)
    folder = seen.changes.folder
    await seen.changes.keep(seen.tree, f"{session.id}-{session.summary.created}/discarded")
    known = await _in_tree(folder, seen.base, chosen)
    if known:
        await git(folder, "restore", f"--source={seen.base}", "--staged", "--worktree", "--", *known, env=_LITERAL)
    fresh = [path for path in chosen if path not in known]
    if fresh:
        await git(folder, "rm", "--cached", "--quiet", "--ignore-unmatch", "--", *fresh, env=_LITERAL)
        await git(folder, "clean", "--force", "--quiet", "--", *fresh, env=_LITERAL)
    await session.host.audit("changes.discard", by, session=session.id, files=len(chosen))
    return seen.tree


async def undo_discard(session: Session, paths: Sequence[str], tree: str, *, by: str) -> None:
    """Undo the last discard, if the files have not changed since."""
    changes = await Changes.open(Path(session.summary.cwd))
    kept = await changes.find(f"{session.id}-{session.summary.created}/discarded")
    if not tree or kept != tree:
        raise NotFound("discarded state", tree, "Only the last discard can be taken back.")
    seen = await _look(session)
    changed_since = {each.path for each in (await changes.between(seen.base, seen.tree)).files} & set(paths)
    if changed_since:
        raise Conflict(f"{sorted(changed_since)[0]!r} has changed since; it stays as it is.")
    known = await _in_tree(changes.folder, tree, paths)
    gone = [path for path in paths if path not in known]
    if known:
        await git(changes.folder, "restore", f"--source={tree}", "--worktree", "--", *known, env=_LITERAL)
    if gone:
        await git(changes.folder, "rm", "--cached", "--quiet", "--ignore-unmatch", "--", *gone, env=_LITERAL)
        for path in gone:
            (changes.folder / path).unlink(missing_ok=True)
    await session.host.audit("changes.restore", by, session=session.id, files=len(paths))


async def _look(session: Session) -> _Seen:
    changes = await Changes.open(Path(session.summary.cwd))
    return _Seen(changes, await changes.base(), (await changes.capture()).tree)


async def _unmoved(session: Session, state: str | None) -> _Seen:
    seen = await _look(session)
    if state is not None and seen.tree != state:
        raise Conflict("The files have changed since you looked. Look at the changes again.")
    return seen


async def _chosen(seen: _Seen, paths: Sequence[str]) -> list[str]:
    """Return changed files only, with both names of a renamed file. So no path leads out of the folder."""
    found = {each.path: each for each in (await seen.changes.between(seen.base, seen.tree)).files}
    unknown = [path for path in paths if path not in found]
    if unknown:
        raise NotFound("changed file", unknown[0])
    chosen = [name for path in paths or found for name in (found[path].old_path, path) if name]
    if not chosen:
        raise Conflict("Nothing has changed since the last commit.")
    return chosen


async def _in_tree(folder: Path, tree: str, paths: Sequence[str]) -> list[str]:
    listed = await git(folder, "ls-tree", "-r", "-z", "--name-only", tree, "--", *paths, env=_LITERAL)
    return [name for name in listed.split("\0") if name]
