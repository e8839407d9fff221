"""The paths of a session's sandbox on this machine: its git folders, the files that stay read-only, its programs."""

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from portico.features.approvals.policy import PROTECTED
from portico.features.sandboxes.git_protection import configured_paths, read_only
from portico.sandbox.mounts import is_below
from portico.sandbox.policy import SYSTEM, Policy
from portico.sandbox.vendors import Vendor
from portico.workspace.git import work_tree
from portico.workspace.git_files import read_file
from portico.workspace.glob import Glob

SCAN_ENTRIES = 20_000
"""Files that are searched for protected names: a large repository has 10,000 outside of the folders below."""
_SKIPPED = frozenset({".git", "node_modules", ".venv", "venv", "target", "__pycache__", ".tox", "dist", "build"})
RUNS_LATER = (
    ".portico", ".husky", ".githooks", ".devcontainer", ".vscode", ".idea", ".pre-commit-config.yaml", "lefthook.yml",
    ".lefthook.yml", ".lefthook.yaml", "lefthook.yaml",
)  # fmt: skip
"""At the top of a work tree: programs in them are started outside of the sandbox by a commit, an editor or Portico."""


_WORK_TREE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE | re.IGNORECASE)


def git_folders(folder: str) -> tuple[str, ...]:
    """Return the git folders of a work tree: its own, and of a linked work tree also the common one."""
    top = work_tree(folder)
    if not top:
        return ()
    dot = os.path.join(top, ".git")
    if os.path.isdir(dot):
        return (os.path.realpath(dot),)
    try:
        words = _text(dot).partition("gitdir:")[2].strip()
        own = os.path.realpath(os.path.join(top, words))
        if words and not os.path.lexists(os.path.join(own, "gitdir")):
            return (own,) if _is_submodule(own, top) else ()
        common = _text(os.path.join(own, "commondir")).strip() if words else ""
        back = _text(os.path.join(own, "gitdir")).strip()
    except (OSError, ValueError):
        return ()
    if os.path.realpath(os.path.join(own, back)) != os.path.realpath(dot):
        return ()  # it leads to a git folder that does not know this work tree: not created by git
    return (os.path.realpath(os.path.join(own, common)), own)


def _text(path: str) -> str:
    return os.fsdecode(read_file(path))


def _is_submodule(own: str, top: str) -> bool:
    """Return whether the settings of a git folder name this work tree."""
    named = _WORK_TREE.findall(_text(os.path.join(own, "config")))
    return any(os.path.realpath(os.path.join(own, each.strip('"'))) == os.path.realpath(top) for each in named)


MadeInside = Callable[[str], bool]


def protected(folder: str, git: Iterable[str], made_inside: MadeInside = lambda git: False) -> tuple[str, ...]:
    """Return existing paths that stay read-only: what git runs, what other programs run later, and what approvals
    protect. `made_inside`: whether a confined program may have made this git folder; then it can also configure it."""
    top = work_tree(folder)
    named, nested = _searched(folder)
    found = [path for each in git for path in git_protected(each, top or folder)]
    for each in nested:
        inner = [one for one in git_folders(os.path.dirname(each)) if not made_inside(one)]
        found += [path for one in inner if one not in git for path in git_protected(one, os.path.dirname(each))]
        found += [each] if inner and os.path.isfile(each) else []
    if top and os.path.isfile(os.path.join(top, ".git")):
        found.append(os.path.join(top, ".git"))
    found += [os.path.join(each, name) for each in dict.fromkeys([top or folder, folder]) for name in RUNS_LATER]
    shown = [path for path in found if not os.path.islink(path) or is_below(path, os.path.join(top or folder, ".git"))]
    return tuple(path for path in dict.fromkeys([*shown, *named]) if os.path.lexists(path))


def git_protected(git: str, top: str) -> list[str]:
    """Return what stays read-only for a git folder, whose work tree is at `top`."""
    return [*read_only(git), *configured_paths(git, top)]


def _searched(folder: str) -> tuple[list[str], list[str]]:
    """Return the files with a protected name, and the `.git` of repositories below the folder."""
    globs = [Glob(pattern) for pattern in PROTECTED if ".git" not in pattern]
    found: list[str] = []
    nested: list[str] = []
    seen = 0
    for here, folders, names in os.walk(folder):
        if here != folder and (".git" in folders or ".git" in names):
            nested.append(os.path.join(here, ".git"))
        folders[:] = [name for name in folders if name not in _SKIPPED]
        seen += len(names) + len(folders)
        if seen > SCAN_ENTRIES:
            break
        paths = [os.path.join(here, name) for name in names]
        found += [
            path
            for path in paths
            if not os.path.islink(path) and any(glob.matches(os.path.relpath(path, folder).lower()) for glob in globs)
        ]
    return found, nested


def unmoved(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the granted paths that still are what was granted. The attack: a path inside of a writable folder is
    granted, and then replaced by a link to another folder."""
    return tuple(path for path in paths if os.path.realpath(path) == path)


def without_links(vendor: Vendor, home: str) -> Vendor:
    """Leave out parts of the agent's state that are links inside of it: an agent may have written them in another
    session. The state itself may be a link of the user."""

    def real(path: str) -> bool:
        above = next((each for each in vendor.state if path != each and path.startswith(f"{each}/")), None)
        if above is None:
            return True
        inside = os.path.relpath(path, above)
        return os.path.realpath(os.path.join(home, path)) == os.path.join(
            os.path.realpath(os.path.join(home, above)), inside
        )

    return replace(vendor, strict_state=tuple(filter(real, vendor.strict_state)))


def create_state(policy: Policy, vendor: Vendor) -> None:
    """Create the folders of an agent's state: what does not exist cannot be shared with the sandbox, and would be lost
    at its end."""
    for name in (*vendor.state, *vendor.strict_state):
        path = os.path.join(policy.home, name)
        if path in policy.write and "." not in os.path.basename(name).lstrip("."):
            with contextlib.suppress(OSError):  # it is a file, or not ours: then it is not shared
                os.makedirs(path, mode=0o700, exist_ok=True)


def program_folders(command: Sequence[str] = (), path: str | None = None) -> tuple[str, ...]:
    """Return the folders of programs outside of the system: those on the PATH, Python's, and those of a command."""
    listed = (path or os.environ.get("PATH", os.defpath)).split(os.pathsep)
    found = [_prefix(each) for each in listed if os.path.isabs(each)]
    found += [sys.prefix, sys.base_prefix]
    for word in command:
        if located := shutil.which(word, path=path) if not os.path.isabs(word) else word:
            found += [_package(each) for each in (located, os.path.realpath(located)) if os.path.isfile(each)]
    outside = (each for each in found if each and not any(is_below(each, system) for system in SYSTEM))
    return tuple(dict.fromkeys(outside))


def _prefix(folder: str) -> str:
    """The folder that a `bin` belongs to, which has its libraries; a `bin` in the home folder stands alone.
    Programs in `shims` (pyenv, rbenv, asdf) start others of the same folder."""
    parent = os.path.dirname(folder)
    if os.path.basename(folder) == "shims" and os.path.isdir(os.path.join(parent, "bin")):
        return parent
    homes = (os.path.expanduser("~"), os.path.expanduser("~/.local"), "/")
    if os.path.basename(folder) != "bin" or parent in homes or os.path.lexists(os.path.join(parent, ".git")):
        return folder  # a project with a `bin` is not a program
    return parent


def _package(file: str) -> str:
    """The folder with everything that a program needs: the outermost `node_modules`, or its own."""
    parts = Path(file).parts
    if "node_modules" in parts:
        return str(Path(*parts[: parts.index("node_modules") + 1]))
    return _prefix(os.path.dirname(file))
