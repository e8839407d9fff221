"""What changed in a folder, per turn and per session, whoever changed it: tools, shell commands or the user.

A capture writes the work tree, untracked files included, as a git tree object and keeps it by a hidden ref under
`refs/portico/`. It works on a private copy of the index, so the user's index, stash, branches and files stay as they
are; refs to trees (not commits) show up in no log. Differences are then between any two captures or commits.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from portico.errors import BadRequest
from portico.workspace.git import plumbing, plumbing_text, repository, without_filters
from portico.workspace.thread import threaded

FILE_MAX = 20 * 1024 * 1024  # an untracked file above this is data; a copy of it in .git would never leave again
FILES_MAX = 5000  # changed files in one answer
REFS = "refs/portico"

Kind = Literal["added", "modified", "deleted", "renamed"]
_KINDS: dict[str, Kind] = {"A": "added", "D": "deleted", "R": "renamed", "C": "added"}
_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*(?:/[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)*")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@{}^~-]*")


class Capture(Struct, frozen=True):
    tree: str
    left_out: list[str]  # untracked files that were too large


class Change(Struct, frozen=True):
    """One file; `before` and `after` are blob ids for `Changes.content`, empty where there is none."""

    path: str
    kind: Kind
    old_path: str | None
    added: int
    removed: int
    binary: bool
    before: str
    after: str


class Differences(Struct, frozen=True):
    files: list[Change]
    cut: bool


class Changes:
    """Captures of one folder; the folder may be a part of a repository, and then nothing outside it is shown."""

    def __init__(self, folder: Path, private: Path) -> None:
        self.folder = folder
        self._git_folder = private

    @classmethod
    async def open(cls, folder: Path) -> "Changes":
        """NotFound, with what to do, when `folder` is in no repository (or git is not installed)."""
        return cls(folder, (await repository(folder)).git_folder)

    @threaded
    def capture(self, name: str = "") -> Capture:
        """Writes down the folder as it is now; with a `name` (`SESSION/TURN`) it is kept until `forget`."""
        ref = _ref(name) if name else ""
        with tempfile.TemporaryDirectory(prefix="portico-index-") as private:
            index = Path(private, "index")
            _copy_index(self._git_folder / "index", index)
            env = {"GIT_INDEX_FILE": str(index), **without_filters(self.folder)}
            # Code 1: some files could not be read. They stay as they were, and the others count.
            plumbing(self.folder, "add", "--update", "--ignore-errors", "--", ".", env=env, fine=(0, 1))
            left_out = self._add_untracked(env)
            tree = plumbing_text(self.folder, "write-tree", env=env).strip()
        if ref:
            plumbing(self.folder, "update-ref", ref, tree)
        return Capture(tree, [_shown(name) for name in left_out])

    def _add_untracked(self, env: dict[str, str]) -> list[str]:
        listed = plumbing_text(self.folder, "ls-files", "--others", "--exclude-standard", "-z", "--", ".", env=env)
        # A name that ends in a slash is another repository inside this one; it has its own changes.
        names = [name for name in listed.split("\0") if name and not name.endswith("/")]
        small, left_out = _by_size(self.folder, names)
        if small:
            wanted = os.fsencode("".join(f"{name}\0" for name in small))
            # --remove: a file that has vanished since it was listed is no error.
            plumbing(self.folder, "update-index", "--add", "--remove", "-z", "--stdin", stdin=wanted, env=env)
        return left_out

    @threaded
    def keep(self, tree: str, *names: str, once: Sequence[str] = ()) -> None:
        """Names a capture that was taken before; of `once` those that are free."""
        refs = [_ref(name) for name in names]
        if once:
            listed = plumbing_text(self.folder, "for-each-ref", "--format=%(refname)", *map(_ref, once))
            refs += [ref for ref in map(_ref, once) if ref not in listed.split()]
        lines = "".join(f"update {ref} {_revision(tree)}\n" for ref in refs)
        plumbing(self.folder, "update-ref", "--stdin", stdin=lines.encode())

    @threaded
    def find(self, name: str) -> str | None:
        """The tree of a named capture."""
        found = plumbing_text(self.folder, "rev-parse", "--verify", "--quiet", _ref(name), fine=(0, 1))
        return found.strip() or None

    @threaded
    def forget(self, prefix: str) -> None:
        """Lets go of a named capture, or of all of a session (`SESSION`); git collects them in its own time."""
        ref = _ref(prefix)
        listed = plumbing_text(self.folder, "for-each-ref", "--format=%(refname)", ref)
        lines = "".join(f"delete {found}\n" for found in listed.split())
        if lines:
            plumbing(self.folder, "update-ref", "--stdin", stdin=lines.encode())

    @threaded
    def between(self, old: str, new: str) -> Differences:
        """Files that differ between two trees or commits, renames recognised."""
        options = ("diff-tree", "-r", "-z", "-M", "--no-ext-diff", "--no-textconv", "--relative", "--full-index")
        return _parse(plumbing_text(self.folder, *options, "--raw", "--numstat", _revision(old), _revision(new), "--"))

    @threaded
    def patch(self, old: str, new: str, *paths: str, cut: int | None = None) -> str:
        """The unified diff of some files, or of everything; with `cut` only its first bytes."""
        options = ("--no-ext-diff", "--no-textconv", "--no-color", "--relative", "-M")
        where = paths or (".",)
        data = plumbing(self.folder, "diff", *options, _revision(old), _revision(new), "--", *where, cut=cut)
        return data.decode("utf-8", "replace")

    @threaded
    def content(self, blob: str) -> bytes:
        """A file as it was, by the id in a `Change`."""
        if not re.fullmatch(r"[0-9a-f]{40,64}", blob):
            raise BadRequest(f"{blob!r} is no object id.", field="blob")
        return plumbing(self.folder, "cat-file", "blob", blob)

    @threaded
    def base(self) -> str:
        """The commit that is checked out, or the empty tree before the first one: what uncommitted means."""
        found = plumbing_text(self.folder, "rev-parse", "--verify", "--quiet", "HEAD", fine=(0, 1))
        return found.strip() or plumbing_text(self.folder, "mktree").strip()


def _copy_index(source: Path, target: Path) -> None:
    """With its times: git trusts a file's recorded state only when that is older than the index itself."""
    if source.exists():
        shutil.copy2(source, target)


def _by_size(folder: Path, names: list[str]) -> tuple[list[str], list[str]]:
    small: list[str] = []
    large: list[str] = []
    for name in names:
        try:
            size = os.lstat(folder / name).st_size
        except OSError:
            continue  # gone again
        (small if size <= FILE_MAX else large).append(name)
    return small, large


def _shown(text: str) -> str:
    """Bytes that are no UTF-8 can be in no JSON."""
    return os.fsencode(text).decode("utf-8", "replace")


def _ref(name: str) -> str:
    if not _NAME.fullmatch(name) or name.endswith(".lock"):
        raise BadRequest(
            f"{name!r} cannot name a capture: letters, digits, - and _, with / and . between.", field="name"
        )
    return f"{REFS}/{name}"


def _revision(text: str) -> str:
    # Nothing that git could take for an option or a range.
    if not _REVISION.fullmatch(text) or ".." in text:
        raise BadRequest(f"{text!r} is no tree or commit.", field="revision")
    return text


def _parse(said: str) -> Differences:
    """Reads `--raw --numstat -z`: all raw records, then all numbers, in the same order."""
    fields = iter(said.split("\0"))
    raw: list[tuple[str, str, str, str, str | None]] = []
    counts: list[tuple[str, str]] = []
    for field in fields:
        if field.startswith(":"):
            _, _, before, after, status = field.split(" ")
            first = next(fields)
            second = next(fields) if status[0] in "RC" else None
            raw.append((status[0], before, after, second or first, first if second else None))
        elif field:
            added, removed, path = field.split("\t", 2)
            if not path:  # a rename: two names follow
                next(fields)
                next(fields)
            counts.append((added, removed))
    files = [_change(record, count) for record, count in zip(raw, counts, strict=True)]
    return Differences(files[:FILES_MAX], len(files) > FILES_MAX)


def _change(record: tuple[str, str, str, str, str | None], count: tuple[str, str]) -> Change:
    letter, before, after, path, old_path = record
    binary = count[0] == "-"
    return Change(
        path=_shown(path),
        kind=_KINDS.get(letter, "modified"),
        old_path=_shown(old_path) if old_path and letter == "R" else None,
        added=0 if binary else int(count[0]),
        removed=0 if binary else int(count[1]),
        binary=binary,
        before=before if before.strip("0") else "",
        after=after if after.strip("0") else "",
    )
