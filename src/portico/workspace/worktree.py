"""A git worktree per session, on request: the agent works on a separate branch, and the user's files do not change.

The worktrees of `/srv/app` are in `/srv/app.worktrees`, next to it and not inside, where every tool would find them.
"""

import re
from pathlib import Path

from msgspec import Struct

from portico.kernel.errors import AlreadyExists, BadRequest, Conflict
from portico.workspace.git import call, failure, git, repository

BRANCH_PREFIX = "portico/"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*")


class Worktree(Struct, frozen=True):
    path: str  # the top of the worktree
    folder: str  # where the session works: as deep in it as the folder it was made for
    branch: str
    base: str  # the commit it started from
    repository: str


async def create(folder: Path, name: str, *, base: str = "HEAD", place: Path | None = None) -> Worktree:
    """Makes the worktree and the branch `portico/NAME` at `base`. Uncommitted changes stay where they are."""
    if not _NAME.fullmatch(name) or name.endswith(".lock"):
        raise BadRequest(f"{name!r} cannot name a worktree: letters, digits, - and _, with . between.", field="name")
    home = await repository(folder)
    commit = await _commit(folder, base)
    path = (place or home.top.parent / f"{home.top.name}.worktrees") / name
    branch = BRANCH_PREFIX + name
    done = await call(folder, "worktree", "add", "--quiet", "-b", branch, "--", str(path), commit)
    if done.code != 0 and "already exists" in done.output:
        raise AlreadyExists(f"There is already a worktree or a branch for {name!r}.")
    if done.code != 0:
        raise failure(folder, "worktree add", done)
    return Worktree(str(path), str(path / home.prefix), branch, commit, str(home.top))


async def remove(worktree: Worktree, *, force: bool = False) -> bool:
    """Removes it; refused while it has uncommitted work, unless forced. The branch stays if it has commits: True."""
    repository = Path(worktree.repository)
    forced = ["--force", "--force"] if force else []
    done = await call(repository, "worktree", "remove", *forced, "--", worktree.path)
    if done.code != 0 and "use --force" in done.output:
        raise Conflict(f"The worktree {worktree.path!r} has uncommitted work. Commit it, or force the removal.")
    if done.code != 0 and "is not a working tree" not in done.output:
        raise failure(repository, "worktree remove", done)
    await git(repository, "worktree", "prune")
    tip = await git(repository, "rev-parse", "--verify", "--quiet", f"refs/heads/{worktree.branch}", fine=(0, 1))
    if tip.strip() == worktree.base:
        await git(repository, "branch", "--quiet", "-D", "--", worktree.branch)
    return tip.strip() not in ("", worktree.base)


async def _commit(folder: Path, base: str) -> str:
    if base.startswith("-"):
        raise BadRequest(f"{base!r} is no branch or commit.", field="base")
    found = await call(folder, "rev-parse", "--verify", "--quiet", f"{base}^{{commit}}")
    if found.code != 0:
        raise BadRequest(f"{base!r} is no branch or commit here. A worktree needs at least one commit.", field="base")
    return found.data.decode().strip()
