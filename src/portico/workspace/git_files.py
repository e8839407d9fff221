"""The files that decide which repository a folder belongs to and what its settings are, with their contents.

While they are the same, git would answer the same, so it need not be started to ask. Contents and not times are
compared: a time can be set back by the same program that changed the file.
"""

import errno
import os
import re
import shutil
import stat
from functools import lru_cache
from pathlib import Path

GitFiles = tuple[tuple[str, bytes | None], ...]
_BYTES = 64 * 1024
"""A larger settings file is not compared: git is asked each time."""
_DEPTH = 3
"""Levels of included settings files that are followed."""
_PATH = re.compile(rb"^\s*path\s*=\s*(.+?)\s*$", re.MULTILINE | re.IGNORECASE)
_HEAD = re.compile(rb"(ref: refs/\S+|[0-9a-f]{40,64})\s*")
_BARE = re.compile(rb"^[ \t]*bare[ \t]*(=(?![ \t]*false[ \t]*$).*)?$", re.MULTILINE)


class _Unclear(Exception):
    """Some file cannot be compared."""


def read_file(path: str | Path, most: int = _BYTES) -> bytes:
    """Return the beginning of a regular file. A pipe in its place, which an agent may create, would block us."""
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "It is no regular file", str(path))
        return file.read(most)


def git_files(folder: Path) -> GitFiles | None:
    """None: git must be asked."""
    entry = _entry(folder)
    if entry is None:
        return None
    try:
        return tuple(_all(entry))
    except (_Unclear, OSError, ValueError):
        return None


def _entry(folder: Path) -> Path | None:
    for each in (folder, *folder.parents):
        if os.path.lexists(each / ".git"):
            return each / ".git"
    return None


def _all(entry: Path) -> list[tuple[str, bytes | None]]:
    private = common = entry.resolve(strict=True)
    found: list[tuple[str, bytes | None]] = [(str(private), b"link" if entry.is_symlink() else b"")]
    if not private.is_dir():
        pointer = read_file(private)
        found.append((str(entry), pointer))
        target = os.fsdecode(pointer.partition(b"gitdir:")[2].strip())
        private = common = (entry.parent / target).resolve(strict=True)
    shared = _content(private / "commondir")
    if shared is not None:
        common = (private / os.fsdecode(shared.strip())).resolve(strict=True)
    found += [(str(private / name), _content(private / name)) for name in ("HEAD", "commondir", "gitdir")]
    found += [
        (str(common / name), b"" if (common / name).is_dir() else None) for name in ("objects", "refs", "reftable")
    ]
    home = Path(os.environ.get("HOME", "/nonexistent"))
    user = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    for settings in (common / "config", private / "config.worktree", home / ".gitconfig", user / "git" / "config"):
        found += _settings(settings, home, _DEPTH)
    for settings in _of_the_system(shutil.which("git") or ""):
        found += _settings(settings, home, _DEPTH)
    return found


_NAMED = re.compile(rb"^\s*(?:path|excludesfile|attributesfile)\s*=\s*(.+?)\s*$", re.MULTILINE | re.IGNORECASE)


def user_files(home: Path) -> list[str]:
    """Return the settings files of the user, and the files that they name: included settings, what is ignored."""
    user = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    found = [user / "ignore", user / "attributes"]
    for settings in (home / ".gitconfig", user / "config"):
        try:
            each = _settings(settings, home, _DEPTH)
        except (_Unclear, OSError):
            each = [(str(settings), None)]
        found += [Path(path) for path, _ in each]
        for path, data in each:
            found += [_target(named, Path(path), home) for named in _NAMED.findall(data or b"")]
    return [str(each) for each in dict.fromkeys(found) if each.is_file()]


@lru_cache(maxsize=8)
def _of_the_system(program: str) -> tuple[Path, ...]:
    """Where the builds of git have their own settings: Linux, Homebrew, Xcode."""
    prefix = Path(os.path.realpath(program)).parent.parent
    return Path("/etc/gitconfig"), prefix / "etc" / "gitconfig", prefix / "share" / "git-core" / "gitconfig"


def plain_work_tree(folder: Path, files: GitFiles) -> Path | None:
    """The top of the work tree, if that is certain without git: a `.git` folder, with no setting that moves the work
    tree and none that names a filter."""
    entry, *others = files
    top, inside = Path(entry[0]).parent, folder.resolve()
    contents = dict(others)
    is_folder = entry == (str(top / ".git"), b"") and str(top / ".git" / "HEAD") in contents
    head = contents.get(str(top / ".git" / "HEAD")) or b""
    complete = all(contents.get(str(top / ".git" / name)) == b"" for name in ("objects", "refs"))
    if not is_folder or not complete or not _HEAD.fullmatch(head) or inside.is_relative_to(top / ".git"):
        return None
    settings = b"\n".join(data for path, data in others if data and path != str(top / ".git" / "HEAD")).lower()
    return None if b"filter" in settings or b"worktree" in settings or _BARE.search(settings) else top


def _settings(path: Path, home: Path, depth: int) -> list[tuple[str, bytes | None]]:
    data = _content(path)
    found = [(str(path), data)]
    if data is None or b"include" not in data.lower():
        return found
    if not depth:
        raise _Unclear
    for named in _PATH.findall(data):
        found += _settings(_target(named, path, home), home, depth - 1)
    return found


def _target(named: bytes, settings: Path, home: Path) -> Path:
    text = os.fsdecode(named.strip(b'"'))
    return home / text[2:] if text.startswith("~/") else settings.parent / text


def _content(path: Path) -> bytes | None:
    try:
        data = read_file(path, _BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if len(data) > _BYTES:
        raise _Unclear
    return data
