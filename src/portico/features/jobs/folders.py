"""Git worktrees for a run of a job, an item of `each` or a branch of `parallel`. The user's checkout is never changed.

A folder is found again by its key after a crash: a record in the repository names its branch and its base. Every
function here can be repeated after it was interrupted at any point.
"""

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
from pathlib import Path

import msgspec
from msgspec import Struct

from portico.features.jobs.evidence import cut_lines
from portico.kernel.errors import BadRequest, Conflict, NotFound
from portico.locks import KeyedLocks
from portico.workspace.atomic_write import place
from portico.workspace.changes import Changes, Differences
from portico.workspace.git import Repository, call, failure, git, repository
from portico.workspace.git_files import read_file
from portico.workspace.jail import Jail
from portico.workspace.worktree import Worktree

_RECORDS = "portico-folders"
"""In the folder that all worktrees of a repository share."""
_KEY_CHARS = 80
"""A key is the name of a folder; a longer one ends with a digest."""
_NAMES = 100
"""Branches with the same name and a number: more of them is a template without a date or a run."""
CONFLICT_CHARS = 20_000
"""Of the text of a conflict, for the evidence and for the prompt of an agent that resolves it."""
_NO_IDENTITY = {"NAME": "Portico", "EMAIL": "portico@localhost"}
_LOCKS = KeyedLocks()


class _FolderRecord(Struct):
    branch: str
    """Empty: the folder shows a commit, and nothing in it is kept."""
    base: str
    closing: bool = False
    """The worktree is being removed: its files may be incomplete."""


class MergeConflict(Struct, frozen=True):
    files: list[str]
    text: str
    """The differences with conflict markers."""


class Merged(Struct, frozen=True):
    commit: str
    """The tip of the parent's branch after the merge; before it, if there is a conflict."""
    conflict: MergeConflict | None = None


def folder_key(job: str, created: int, *path: str | int) -> str:
    """The same for the same place in the tree of the same run. Other home folders use the same ids of jobs, so the
    time of creation is part of it."""
    text = re.sub(r"[^A-Za-z0-9_-]+", "-", "-".join(map(str, (job, f"{created:x}", *path)))).strip("-")
    if len(text) <= _KEY_CHARS:
        return text
    return f"{text[: _KEY_CHARS - 11]}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


# -- open and close ------------------------------------------------------------------------------------------------


async def open_folder(checkout: Path, key: str, branch: str, *, base: str = "HEAD") -> Worktree:
    """The worktree of this key: made from `base`, or found as an interrupted run left it.

    If there is another branch of this name, a number is added. Uncommitted changes of the checkout stay there."""
    home = await _repository(checkout)
    async with _LOCKS.of(str(home.common)):
        path = _place(home, key)
        record = _read(home, key)
        if record is None:
            _refuse_files(path)
            record = await _new_record(checkout, home, key, branch, base)
        if not await _is_branch(checkout, record.branch):
            await git(checkout, "update-ref", f"refs/heads/{record.branch}", record.base)
        if record.closing or not await _is_complete(checkout, path):
            await _remove_files(checkout, path)
            await _add(checkout, path, record.branch)
            _write(home, key, _FolderRecord(record.branch, record.base))
    await _unlock(path)
    folder = path / home.prefix
    os.makedirs(folder, exist_ok=True)  # a folder without a committed file
    return Worktree(str(path), str(folder), record.branch, record.base, str(home.top))


async def close_folder(tree: Worktree, *, into: Worktree | None = None) -> bool:
    """Remove the files; returns whether the branch stays. It is deleted if it has no commits of its own, or if `into`
    has them all. Changes that are not committed are discarded, so commit first."""
    checkout = Path(tree.repository)
    home = await _repository(checkout)
    key = Path(tree.path).name
    async with _LOCKS.of(str(home.common)):
        _write(home, key, _FolderRecord(tree.branch, tree.base, closing=True))
        await _remove_files(checkout, Path(tree.path))
        with contextlib.suppress(OSError):  # other runs have folders there
            Path(tree.path).parent.rmdir()
        if await _is_branch(checkout, tree.branch):
            done = [tree.base, *([into.branch] if into is not None else [])]
            merged = [await _contains(checkout, each, tree.branch) for each in done]
            if not any(merged):
                return True
            deleted = await call(checkout, "branch", "--quiet", "-D", "--", tree.branch)
            if deleted.code != 0:  # the user has checked it out
                return True
        _record_path(home, key).unlink(missing_ok=True)
    return False


async def open_commit(checkout: Path, key: str, commit: str, *, within: str, fresh: bool) -> Worktree:
    """A folder with exactly the files of a commit, without a branch. `within`: the folder in which the name of the
    commit counts. `fresh`: what an earlier attempt has left there is removed."""
    home = await _repository(checkout, "`at`", "at")
    found = await call(Path(within), "rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")
    if found.code != 0:
        raise BadRequest(f"'at' should be a commit of {str(home.top)!r}, and {commit!r} is none.", field="at")
    start = found.data.decode().strip()
    async with _LOCKS.of(str(home.common)):
        path = _place(home, key)
        record = _read(home, key)
        if record is None:
            _refuse_files(path)
        if fresh or record != _FolderRecord("", start) or not await _is_complete(checkout, path):
            _write(home, key, _FolderRecord("", start))
            await _remove_files(checkout, path)
            await git(checkout, "worktree", "add", "--quiet", "--detach", "--", str(path), start)
    folder = path / home.prefix
    os.makedirs(folder, exist_ok=True)
    return Worktree(str(path), str(folder), "", start, str(home.top))


async def close_commit(tree: Worktree) -> None:
    """Remove a folder without a branch, and what was changed in it."""
    checkout = Path(tree.repository)
    home = await _repository(checkout)
    async with _LOCKS.of(str(home.common)):
        await _remove_files(checkout, Path(tree.path))
        with contextlib.suppress(OSError):  # other runs have folders there
            Path(tree.path).parent.rmdir()
        _record_path(home, Path(tree.path).name).unlink(missing_ok=True)


async def forget_folder(checkout: Path, key: str) -> None:
    """Remove what belongs to a deleted run, except for a branch with commits."""
    home = await _repository(checkout)
    record = _read(home, key)
    if record is not None:
        path = str(_place(home, key))
        await close_folder(Worktree(path, path, record.branch, record.base, str(home.top)))
        _record_path(home, key).unlink(missing_ok=True)


async def close_folders(checkout: Path, run: str, message: str) -> None:
    """Remove the folders of all lanes of a run that has ended: those that were not merged, because a lane failed or the
    run was stopped. What is in them is committed, so their branches have it. `run`: the key of the run's own folder."""
    home = await _repository(checkout)
    for path in sorted((home.common / _RECORDS).glob(f"{run}-*.json")):
        record, place = _read(home, path.stem), _place(home, path.stem)
        if record is None or (record.closing and not place.exists()):
            continue
        tree = Worktree(str(place), str(place / home.prefix), record.branch, record.base, str(home.top))
        if not record.branch:
            await close_commit(tree)
            continue
        if not record.closing and await _is_complete(checkout, place):
            await _unlock(place)
            await _abort_merge(place)
            await commit_folder(tree, message)
        await close_folder(tree)


def _place(home: Repository, key: str) -> Path:
    return home.top.parent / f"{home.top.name}.worktrees" / key


def _refuse_files(path: Path) -> None:
    """Files at a place that no record names are not ours to delete."""
    if path.exists() and any(path.iterdir()):
        raise Conflict(f"{str(path)!r} is needed for the files of this job, and it is not empty. Move it away.")


async def _repository(checkout: Path, key: str = "`folder: worktree`", field: str = "folder") -> Repository:
    try:
        return await repository(checkout)
    except NotFound:
        words = f"{key} needs a git repository with a commit, and {str(checkout)!r} is in none."
        otherwise = ", or use `folder: shared`" if field == "folder" else ""
        raise BadRequest(f"{words} Run `git init` and commit there{otherwise}.", field=field) from None


async def _new_record(checkout: Path, home: Repository, key: str, branch: str, base: str) -> _FolderRecord:
    wanted = await call(checkout, "check-ref-format", "--branch", branch)
    if wanted.code != 0 or branch.startswith("-"):
        words = f"{branch!r} cannot be the name of a branch: no spaces, `..`, `~`, `^`, `:`, `?`, `*`, `[` or `\\`."
        raise BadRequest(words, field="branch")
    found = await call(checkout, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}")
    if found.code != 0:
        words = f"{base!r} is no commit in {str(checkout)!r}. A worktree needs at least one commit: run `git commit`."
        raise BadRequest(words, field="folder")
    start = found.data.decode().strip()
    for name in (branch, *(f"{branch}-{number}" for number in range(2, _NAMES))):
        record = _FolderRecord(name, start)
        _write(home, key, record)  # before the branch: an interrupted run finds both again
        made = await call(checkout, "update-ref", f"refs/heads/{name}", start, "0" * len(start))
        if made.code == 0:
            return record
        if "reference already exists" not in made.output:  # a branch `a` forbids `a/b`, for example
            break
    _record_path(home, key).unlink(missing_ok=True)
    raise BadRequest(f"The branch {branch!r} cannot be made: {made.output.strip()[-300:]}", field="branch")


async def _add(checkout: Path, path: Path, branch: str) -> None:
    done = await call(checkout, "worktree", "add", "--quiet", "--", str(path), branch)
    if done.code != 0 and "already checked out" in done.output:
        raise Conflict(f"The branch {branch!r} of this job is checked out elsewhere. Switch to another branch there.")
    if done.code != 0:
        raise failure(checkout, "worktree add", done)


async def _is_complete(checkout: Path, path: Path) -> bool:
    """Whether git knows the worktree and has finished its checkout. Git locks it while that runs."""
    listed = await git(checkout, "worktree", "list", "--porcelain", "-z")
    for entry in listed.split("\0\0"):
        lines = entry.split("\0")
        if lines[0] == f"worktree {path}":
            return (path / ".git").exists() and not any(line.startswith("locked") for line in lines)
    return False


async def _remove_files(checkout: Path, path: Path) -> None:
    await call(checkout, "worktree", "remove", "--force", "--force", "--", str(path))
    await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)  # not known to git any more, or only in part
    await git(checkout, "worktree", "prune")


async def _unlock(path: Path) -> None:
    """Remove locks of a git that was killed. Nothing else runs in this folder now."""
    folder = Path((await git(path, "rev-parse", "--absolute-git-dir")).strip())
    for name in ("index.lock", "HEAD.lock"):
        (folder / name).unlink(missing_ok=True)


# -- commits -------------------------------------------------------------------------------------------------------


async def commit_folder(tree: Worktree, message: str) -> str:
    """Commit everything that is in the folder, on its branch, and return the commit; the same one if nothing changed.

    No hook of the repository runs. An agent may have left the branch: the files of the folder count."""
    folder = Path(tree.path)
    await _return_to_branch(tree)
    await git(folder, "add", "--all")
    if await _differs(folder):
        env = await _identity(folder)
        options = ("--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace")
        await git(folder, "commit", *options, "--message", message or "Portico", env=env)
    return await _tip(folder)


async def restore_folder(tree: Worktree, commit: str) -> None:
    """Make the folder equal to a commit, for a step that runs again. Ignored files stay."""
    folder = Path(tree.path)
    await _return_to_branch(tree)
    await git(folder, "reset", "--quiet", "--hard", commit)
    await git(folder, "clean", "--quiet", "--force", "-d")


async def folder_changes(tree: Worktree, since: str) -> Differences:
    """The files that differ from a commit now, committed or not. No other step works in this folder, so these are the
    changes of the steps since that commit."""
    changes = await Changes.open(Path(tree.folder))
    return await changes.between(since, (await changes.capture()).tree)


async def _return_to_branch(tree: Worktree) -> None:
    folder, ref = Path(tree.path), f"refs/heads/{tree.branch}"
    found = await git(folder, "symbolic-ref", "--quiet", "HEAD", fine=(0, 1))
    if found.strip() == ref:
        return
    head = await call(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    if head.code == 0 and await _contains(folder, tip := head.data.decode().strip(), tree.branch):
        await git(folder, "update-ref", ref, tip)
    await git(folder, "symbolic-ref", "HEAD", ref)


async def _differs(folder: Path) -> bool:
    done = await call(folder, "diff", "--cached", "--quiet", "HEAD", "--")
    return done.code != 0 or await _is_merging(folder)


async def _identity(folder: Path) -> dict[str, str]:
    """The user's name, or ours where none is configured: git would refuse to commit."""
    known = await call(folder, "-c", "user.useConfigOnly=true", "var", "GIT_COMMITTER_IDENT")
    roles = ("AUTHOR", "COMMITTER") if known.code != 0 else ()
    return {f"GIT_{role}_{part}": value for role in roles for part, value in _NO_IDENTITY.items()}


# -- merge ---------------------------------------------------------------------------------------------------------


async def merge_folder(parent: Worktree, child: Worktree, message: str, *, leave: bool = False) -> Merged:
    """Merge the branch of an item into its parent's branch. A merge that was done before is done once.

    A conflict changes nothing, unless `leave` is set: then the folder of the parent has the conflict markers, and
    `commit_folder` concludes the merge when `unresolved` names no more files."""
    folder = Path(parent.path)
    await _abort_merge(folder)
    await _return_to_branch(parent)
    env = await _identity(folder)
    options = ("--no-ff", "--no-verify", "--no-gpg-sign", "--quiet", "--no-edit", "-m", message)
    done = await call(folder, "merge", *options, "--", child.branch, env=env)
    if done.code == 0:
        return Merged(await _tip(folder))
    conflict = await _conflict(folder)
    if conflict is None:
        await _abort_merge(folder)
        raise failure(folder, f"merge of {child.branch!r}", done)
    if not leave:
        await _abort_merge(folder)
    return Merged(await _tip(folder), conflict)


async def unresolved(parent: Worktree, conflict: MergeConflict) -> list[str]:
    """The files of a conflict that still have its markers."""
    return [name for name in conflict.files if _has_markers(Path(parent.path, name))]


def _has_markers(path: Path) -> bool:
    try:
        lines = path.read_bytes().splitlines()
    except (FileNotFoundError, IsADirectoryError):
        return False
    return any(line.startswith((b"<<<<<<< ", b">>>>>>> ")) for line in lines)


async def _conflict(folder: Path) -> MergeConflict | None:
    listed = await git(folder, "diff", "--name-only", "-z", "--diff-filter=U", "--ignore-submodules=dirty")
    files = [os.fsencode(name).decode("utf-8", "replace") for name in listed.split("\0") if name]
    if not files:
        return None
    text = await git(folder, "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=dirty")
    return MergeConflict(files, cut_lines(text, CONFLICT_CHARS))


async def _is_merging(folder: Path) -> bool:
    done = await call(folder, "rev-parse", "--verify", "--quiet", "MERGE_HEAD")
    return done.code == 0


async def _abort_merge(folder: Path) -> None:
    """Also one that a crash interrupted, which begins again."""
    if await _is_merging(folder):
        await git(folder, "reset", "--quiet", "--hard", "HEAD")


# -- git -----------------------------------------------------------------------------------------------------------


async def _tip(folder: Path) -> str:
    return (await git(folder, "rev-parse", "--verify", "HEAD")).strip()


async def _is_branch(folder: Path, branch: str) -> bool:
    return (await call(folder, "show-ref", "--verify", "--quiet", f"refs/heads/{branch}")).code == 0


async def _contains(folder: Path, tip: str, branch: str) -> bool:
    """Whether all commits of a branch are in `tip`."""
    return (await call(folder, "merge-base", "--is-ancestor", f"refs/heads/{branch}", tip)).code == 0


# -- records -------------------------------------------------------------------------------------------------------


def _record_path(home: Repository, key: str) -> Path:
    return home.common / _RECORDS / f"{key}.json"


def _read(home: Repository, key: str) -> _FolderRecord | None:
    with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):
        return msgspec.json.decode(read_file(_record_path(home, key)), type=_FolderRecord)
    return None


def _write(home: Repository, key: str, record: _FolderRecord) -> None:
    path = _record_path(home, key).relative_to(home.common)
    with Jail([home.common]).spot(path, follow=False, make=True) as spot:  # an agent may have created a link there
        place(spot, msgspec.json.encode(record), None)
