"""Files with which a repository makes git run programs. In a sandbox they are read-only, and cannot be created.

The attack: a confined program changes a file of the repository, and the next git command outside of the sandbox runs
what the file names: a hook, `core.fsmonitor`, a filter, a settings file that is included, `core.hooksPath` inside of
the work tree. Files that do not exist yet are as dangerous: `commondir` in the git folder moves all settings elsewhere,
and `config.worktree` adds some. What is not there cannot be mounted read-only, so it is created without an effect.
"""

import contextlib
import os
import re
from collections.abc import Iterator

from portico.workspace.git_files import read_file

READ_ONLY = ("config", "hooks", "config.worktree", "commondir", "gitdir", "info/attributes")
"""Below a git folder: they name programs that git runs, or lead git elsewhere."""
SAME_FOLDER = ".\n"
"""The content of `commondir` that changes nothing."""
WORDS_MAX = 256 * 1024
"""Bytes of a settings file that are read: far more than one has."""
_PATH = re.compile(r"[^\s\"'=;&|<>()]+")


def read_only(git: str) -> list[str]:
    """Return the paths that a sandbox must not write. Creates those that git would read if they were created."""
    found: list[str] = []
    for folder in git_folders_in(git):
        prepare(folder)
        found += [os.path.join(folder, name) for name in READ_ONLY]
    return found


def git_folders_in(git: str) -> Iterator[str]:
    """The git folder, those of its work trees and of its submodules."""
    yield git
    yield from _entries(os.path.join(git, "worktrees"))
    modules = os.path.join(git, "modules")
    for here, folders, names in os.walk(modules):
        if "HEAD" in names:
            folders[:] = [name for name in folders if name == "modules"]
            yield here
            yield from _entries(os.path.join(here, "worktrees"))


def _entries(folder: str) -> list[str]:
    try:
        return [each.path for each in os.scandir(folder) if each.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def prepare(folder: str) -> None:
    """Create what is missing, without an effect. Where that is not allowed, a confined program cannot do it either."""
    linked = os.path.lexists(os.path.join(folder, "gitdir"))
    with contextlib.suppress(OSError):
        if not linked:
            os.makedirs(os.path.join(folder, "hooks"), exist_ok=True)
        _create(os.path.join(folder, "config.worktree"), "")
        if not linked:
            _create(os.path.join(folder, "commondir"), SAME_FOLDER)


def _create(path: str, text: str) -> None:
    with contextlib.suppress(FileExistsError), open(path, "x") as new:
        new.write(text)


def configured_paths(git: str, top: str) -> list[str]:
    """Return the files and folders of the work tree that the settings of the repository name: hooks, included settings,
    programs. Every word that is a path inside of the work tree counts."""
    found: list[str] = []
    for name in ("config", "config.worktree"):
        found += _named_in(os.path.join(git, name), git, top)
    return list(dict.fromkeys(found))


def _named_in(settings: str, git: str, top: str) -> Iterator[str]:
    try:
        text = os.fsdecode(read_file(settings, WORDS_MAX))
    except OSError:
        return
    for line in text.splitlines():
        _, found, value = line.partition("=")
        for word in _PATH.findall(value) if found else ():
            for base in (top, git):  # git runs programs at the top; an include is relative to its file
                path = os.path.normpath(os.path.join(base, os.path.expanduser(word)))
                if path != top and path.startswith(f"{top}/") and os.path.exists(path) and not _is_git(path, git):
                    yield path


def _is_git(path: str, git: str) -> bool:
    return path == git or path.startswith(f"{git}/")
