"""git of the host in folders that confined programs can write: it runs in a sandbox, without a network.

The attack: a confined program makes a repository (`git init`, a repository inside of this one, a new `.git`), and its
settings name programs: filters, `gpg.program`, merge drivers, `core.sshCommand`. Later the host asks git for the
status, or a person commits, and git runs them. A list of such settings is never complete, and a process that still
runs inside can change them after a check. So git itself is confined there, with the same files as the session.

Repositories from before the first sandbox have settings that no confined program could write: git runs in them as
before, with the filters, signatures and servers of the user. Two commands are confined everywhere: `git add` looks into
repositories inside of this one, and `git worktree` makes a git folder that is not protected yet.
"""

import asyncio
import bisect
import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from portico import limits
from portico.features.sandboxes.events import SandboxEntered
from portico.features.sandboxes.git_protection import git_folders_in
from portico.features.sandboxes.links import GitLinks
from portico.features.sandboxes.paths import git_folders, git_protected, program_folders
from portico.kernel.errors import Conflict, NotFound, SandboxUnavailable
from portico.kernel.events import HOST, Record
from portico.kernel.log.log import Log
from portico.sandbox.mounts import is_below
from portico.sandbox.policy import SECRET_HOME, SECRET_SYSTEM, SYSTEM, Limits, Policy
from portico.workspace.git import plumbing_text, work_tree
from portico.workspace.git_files import read_file, user_files
from portico.workspace.jail import closed_folders

_KEY = "sandbox.entered"
_ADD, _COMMIT, _WORKTREE = "add", "commit", "worktree"
_CHANGES_FILES = ("restore", "reset", "clean", "merge", "checkout", _WORKTREE)
"""They write the work tree; for all others it is read-only."""
_READS = ("cat-file", "check-ref-format", "diff", "for-each-ref", "log", "ls-files", "ls-tree", "merge-base",
          "rev-parse", "show-ref", "status")  # fmt: skip
"""They write nothing, also not the index (`GIT_OPTIONAL_LOCKS`)."""
_RUNS = r"^(filter\..*\.(clean|smudge|process)|merge\..*\.driver)$"
"""Settings of a repository without which git would write other contents than its author meant."""


class EnteredFolders:
    """The folders that confined programs can write, with the git folders that none of them could have made. The list
    is durable before the first of these programs starts."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._folders: dict[str, tuple[str, ...]] = {}
        self._sorted: list[str] = []
        self._before: frozenset[str] = frozenset()
        self._writing = asyncio.Lock()

    async def read(self) -> None:
        data = await self._log.get_kv(HOST, _KEY)
        if data is not None:
            self._set(msgspec.json.decode(data, type=dict[str, tuple[str, ...]]))

    def _set(self, folders: dict[str, tuple[str, ...]]) -> None:
        self._folders = folders
        self._sorted = sorted(folders)
        self._before = frozenset(git for each in folders.values() for git in each)

    def apply(self, record: Record) -> None:
        """Called with each committed event, also of other hosts on the same log."""
        event = record.event
        assert isinstance(event, SandboxEntered)
        self._set({**self._folders, event.folder: tuple(event.git)})

    def made_inside(self, git: str) -> bool:
        """Return whether a confined program may have made this git folder."""
        return self._covers(git) and git not in self._before

    def are_of_the_user(self, git: Iterable[str]) -> bool:
        """Return whether these git folders are from before the first sandbox that could write there."""
        return self._before.issuperset(git)

    def touches(self, paths: Iterable[str]) -> bool:
        """Return whether a confined program can write to one of these paths, or inside of it."""
        return any(self._covers(path) or self._is_above(path) for path in paths)

    def _covers(self, path: str) -> bool:
        return path in self._folders or any(str(each) in self._folders for each in Path(path).parents)

    def _is_above(self, path: str) -> bool:
        return next(self._inside(path), None) is not None

    def _inside(self, path: str) -> Iterator[str]:
        """The recorded folders inside of this one."""
        start = f"{path.rstrip('/')}/"
        listed = self._sorted
        for at in range(bisect.bisect_left(listed, start), len(listed)):
            if not listed[at].startswith(start):
                return
            yield listed[at]

    def news(self, policy: Policy) -> dict[str, tuple[str, ...]]:
        """Return what has to be recorded before a process of this policy starts. Reads the disk."""
        wanted = [each for each in (policy.folder, *policy.write) if os.path.exists(each)]
        wanted += [below for each in wanted for below in self._inside(each) if self._folders[below]]
        found = {each: self._git_of(each, policy) for each in wanted}
        return {each: git for each, git in found.items() if self._folders.get(each) != git}

    def _git_of(self, folder: str, policy: Policy) -> tuple[str, ...]:
        """Return the git folders of the user in this folder. One that was removed or that may be changed is none."""
        known = self._folders.get(folder)
        if known is None:
            git = (os.path.dirname(path) for path in policy.protect if os.path.basename(path) == "config")
            known = tuple(one for one in dict.fromkeys(git) if is_below(one, folder) and not self._covers(one))
        writable = set(policy.write)
        return tuple(
            one
            for one in known
            if os.path.isdir(os.path.join(one, "objects"))
            and writable.isdisjoint(git_protected(one, os.path.dirname(one)))
        )

    async def enter(self, news: dict[str, tuple[str, ...]]) -> None:
        """Record it durably."""
        async with self._writing:
            after = {**self._folders, **news}
            if len(after) > limits.ENTERED_FOLDERS:
                after = await asyncio.to_thread(_existing, after)
            if len(after) > limits.ENTERED_FOLDERS:
                raise SandboxUnavailable(
                    f"Sandboxes have been used in more than {limits.ENTERED_FOLDERS} folders that still exist. Remove"
                    " worktrees that are not needed any more."
                )
            self._log.put_kv(HOST, _KEY, msgspec.json.encode(after), bound=True)
            await self._log.append(HOST, *(SandboxEntered(folder, list(git)) for folder, git in news.items()))


def _existing(folders: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """What a confined program has left in a folder is removed with it."""
    return {each: git for each, git in folders.items() if os.path.lexists(each)}


class HostGit:
    """Decides which git commands of the host run in a sandbox, and in which."""

    def __init__(self, entered: EnteredFolders, links: Mapping[str, GitLinks]) -> None:
        """`links`: those from before each sandbox that runs."""
        self._entered = entered
        self._links = links

    def policy(self, folder: Path, arguments: Sequence[str], env: Mapping[str, str]) -> Policy | None:
        """Return the sandbox of a git command; None: it needs none. Raises Conflict if a repository that may be made by
        a confined program has filters, and the command would store or write files without knowing them."""
        here = os.path.realpath(folder)
        top = work_tree(here) or here
        git = git_folders(top)
        if not self._entered.touches([top, *git]):
            return None
        verb = _verb(arguments)
        planted = self._planted(git) if verb not in _READS else []
        if planted and verb != _WORKTREE and verb in (*_CHANGES_FILES, _COMMIT):
            raise Conflict(
                f"{planted[0]!r} leads out of the git folder, and git would write there. It was created in a sandbox"
                " and is removed when the turn ends: try it again then."
            )
        if git and self._entered.are_of_the_user(git) and verb not in (_ADD, _WORKTREE) and not planted:
            return None
        if not git and os.path.lexists(os.path.join(top, ".git")):
            raise NotFound("git repository", top, "Its '.git' leads to a repository that does not name this folder.")
        if verb in (*_CHANGES_FILES, _ADD, _COMMIT) and not self._entered.are_of_the_user(git[:1]):
            _refuse_programs(folder, git)
        if verb == _COMMIT and "--no-gpg-sign" not in arguments:
            _refuse_signature(folder)
        return _policy(top, git, verb, arguments, env)

    def _planted(self, git: Sequence[str]) -> list[str]:
        """The links that a sandbox which runs has created in these folders, and that lead out of them."""
        running = [each for each in list(self._links.values()) if not set(git).isdisjoint(each.git)]
        return [path for each in running for path in each.new() if any(is_below(path, folder) for folder in git)]


def _verb(arguments: Sequence[str]) -> str:
    words = iter(arguments)
    for word in words:
        if word == "-c":
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""


def _refuse_programs(folder: Path, git: Sequence[str]) -> None:
    if git:
        listed = plumbing_text(folder, "config", "--local", "--includes", "-z", "--name-only", "--get-regexp", _RUNS,
                               fine=(0, 1))  # fmt: skip
        names = sorted(set(filter(None, listed.split("\0"))))
        if names:
            raise Conflict(
                f"The repository {git[0]!r} may have been made in a sandbox, and its settings name programs:"
                f" {', '.join(names[:5])}. Read them, and use git in a terminal."
            )


def _refuse_signature(folder: Path) -> None:
    found = plumbing_text(folder, "config", "--type=bool", "--get", "commit.gpgSign", fine=(0, 1))
    if found.strip() == "true":
        raise Conflict(
            "Commits are signed here (commit.gpgSign), and git of the host has no keys in a folder in which sandboxes"
            " work. Commit in a terminal."
        )


def _policy(top: str, git: Sequence[str], verb: str, arguments: Sequence[str], env: Mapping[str, str]) -> Policy:
    home = os.path.expanduser("~")
    place = _place(arguments) if verb == _WORKTREE else ""
    read = [*SYSTEM, *program_folders(["git"], os.defpath), *user_files(Path(home))]
    write = [*git, *([os.path.dirname(place)] if place else [])]
    protect = [path for each in git for path in git_protected(each, top)]
    if verb == _WORKTREE:  # git removes the records of work trees that it does not find
        trees = [each for each in git_folders_in(git[0]) if _is_of_worktree(each)] if git else []
        linked = _linked(trees, place)
        read += linked.values()
        removed = [each for each in trees if each not in linked]
        protect = [path for path in protect if not any(is_below(path, each) for each in removed)]
    if index := env.get("GIT_INDEX_FILE"):
        write.append(os.path.dirname(index))
    (write if verb in _CHANGES_FILES else read).append(top)
    return Policy(
        mode="project",
        folder=(write or [top])[0],
        home=home,
        read=tuple(read),
        write=tuple(write),
        protect=tuple(path for path in dict.fromkeys(protect) if os.path.lexists(path)),
        hide=(*SECRET_SYSTEM, *(os.path.join(home, each) for each in SECRET_HOME), *map(str, closed_folders())),
        limits=Limits(tmp=limits.GIT_TMP_BYTES),
    )


def _is_of_worktree(git: str) -> bool:
    return os.path.basename(os.path.dirname(git)) == "worktrees"


def _place(arguments: Sequence[str]) -> str:
    """Return the work tree that is made or removed. The folder that it is in must exist."""
    if "--" not in arguments[:-1]:
        return ""
    place = os.path.realpath(arguments[arguments.index("--") + 1])
    os.makedirs(os.path.dirname(place), exist_ok=True)
    return place


def _linked(trees: Iterable[str], removed: str) -> dict[str, str]:
    """Return the `.git` files of linked work trees by their git folders."""
    found: dict[str, str] = {}
    for each in trees:
        with contextlib.suppress(OSError, ValueError):
            target = os.fsdecode(read_file(os.path.join(each, "gitdir"))).strip()
            tree = os.path.dirname(target)
            if os.path.isfile(target) and os.path.realpath(tree) != removed and each in git_folders(tree):
                found[each] = target
    return found
