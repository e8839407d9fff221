"""Changes in a folder, per turn and per session, made by tools, shell commands or the user.

A capture writes the work tree, including untracked files, as a git tree object and keeps it with a hidden ref under
`refs/portico/`. It uses a private copy of the index, so the user's index, stash, branches and files do not change; refs
to trees (not commits) do not appear in `git log`. Differences are computed between any two captures or commits.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from portico import limits
from portico.kernel.cache import Cache
from portico.kernel.errors import BadRequest
from portico.workspace import refs
from portico.workspace.git import Repository, plumbing, plumbing_text, repository
from portico.workspace.thread import threaded

FILE_MAX = 20 * 1024 * 1024  # an untracked file above this is data; a copy of it in .git would never leave again
FILES_MAX = 5000  # changed files in one answer
REFS = "refs/portico"

Kind = Literal["added", "modified", "deleted", "renamed"]
_Raw = tuple[str, str, str, str, str | None]
_KINDS: dict[str, Kind] = {"A": "added", "D": "deleted", "R": "renamed", "C": "added"}
_DIFF = (
    "diff-tree",
    "-r",
    "-z",
    "-M",
    "--no-ext-diff",
    "--no-textconv",
    "--relative",
    "--full-index",
    "--raw",
    "--numstat",
)
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


class _Index(Struct, frozen=True):
    """The private index after a capture: the next capture of the folder starts from it and sees only what is new."""

    users: tuple[int, ...]
    """Identity of the user's index that it was made from."""
    data: bytes
    modified: int
    tree: str


_INDEXES: Cache[Path, _Index] = Cache(limits.KEPT_INDEXES)


NOTHING = Differences([], cut=False)


class Changes:
    """Captures of one folder; the folder may be a part of a repository, and then nothing outside it is shown."""

    def __init__(self, folder: Path, repository: Repository) -> None:
        self.folder = folder
        self._repository = repository
        self._refs_are_files = refs.are_files(repository.common)

    @classmethod
    async def open(cls, folder: Path) -> "Changes":
        """NotFound, with what to do, when `folder` is in no repository (or git is not installed)."""
        return cls(folder, await repository(folder))

    @threaded
    def capture(self, name: str = "") -> Capture:
        """Store the folder as it is now; with a `name` (`SESSION/TURN`) it is kept until `forget`."""
        ref = _ref(name) if name else ""
        with tempfile.TemporaryDirectory(prefix="portico-index-") as private:
            taken = self._capture(Path(private, "index"))
        if ref:
            self._write({ref: taken.tree})
        return taken

    def _capture(self, index: Path) -> Capture:
        users = _identity(self._repository.git_folder / "index")
        env = {"GIT_INDEX_FILE": str(index), **self._repository.calm}
        kept = _INDEXES.get(self.folder)
        if kept is not None and kept.users == users:
            index.write_bytes(kept.data)
            os.utime(index, ns=(kept.modified, kept.modified))
            wanted, left_out = self._changed(env)
            if not wanted:
                return Capture(kept.tree, left_out)
            if not any(name.rpartition("/")[2] == ".gitignore" for name in wanted):
                return self._update(index, env, users, wanted, left_out)
        # The first capture, or other rules of what is ignored: from the user's index.
        index.unlink(missing_ok=True)
        _copy_index(self._repository.git_folder / "index", index)
        return self._update(index, env, users, *self._changed(env))

    def _changed(self, env: Mapping[str, str]) -> tuple[list[str], list[str]]:
        """Files that differ from the index, parents before children, and those that are left out."""
        options = ("-t", "-z", "--modified", "--deleted", "--others", "--exclude-standard")
        listed = plumbing_text(self.folder, "ls-files", *options, "--", ".", env=env).split("\0")
        # A name that ends in a slash is another repository inside this one; it has its own changes.
        names = {each[2:]: each[0] == "?" for each in listed if each and not each.endswith("/")}
        small, left_out = _by_size(self.folder, [name for name, untracked in names.items() if untracked])
        wanted = {*small, *(name for name, untracked in names.items() if not untracked)}
        return sorted(wanted), [_shown(name) for name in left_out]

    def _update(
        self, index: Path, env: Mapping[str, str], users: tuple[int, ...], wanted: list[str], left_out: list[str]
    ) -> Capture:
        if wanted:
            self._add(env, wanted)
        tree = plumbing_text(self.folder, "write-tree", env=env).strip()
        if index.exists() and index.stat().st_size <= limits.KEPT_INDEX_BYTES:
            _INDEXES[self.folder] = _Index(users, index.read_bytes(), index.stat().st_mtime_ns, tree)
        return Capture(tree, left_out)

    def _add(self, env: Mapping[str, str], wanted: list[str]) -> None:
        lines = os.fsencode("".join(f"{name}\0" for name in wanted if self._is_readable(name)))
        # --remove: a file that has vanished since it was listed is no error. --replace: a folder became a file.
        options = ("--add", "--remove", "--replace", "-z", "--stdin")
        plumbing(self.folder, "update-index", *options, stdin=lines, env=env)

    def _is_readable(self, name: str) -> bool:
        """A file that cannot be read stays as it was, and the others count."""
        path = os.path.join(self.folder, name)
        return os.path.islink(path) or not os.path.exists(path) or os.access(path, os.R_OK)

    @threaded
    def keep(self, tree: str, *names: str, once: Sequence[str] = ()) -> None:
        """Name a capture that was taken before; of `once` those that are free."""
        free = [ref for ref in map(_ref, once) if self._read(ref) is None]
        self._write(dict.fromkeys([*map(_ref, names), *free], _revision(tree)))

    @threaded
    def find(self, name: str) -> str | None:
        """The tree of a named capture."""
        return self._read(_ref(name))

    def _read(self, ref: str) -> str | None:
        if self._refs_are_files:
            return refs.read(self._repository.common, ref)
        found = plumbing_text(self.folder, "rev-parse", "--verify", "--quiet", ref, fine=(0, 1))
        return found.strip() or None

    def _write(self, named: Mapping[str, str]) -> None:
        if self._refs_are_files:
            refs.write(self._repository.common, named)
            return
        lines = "".join(f"update {ref} {tree}\n" for ref, tree in named.items())
        plumbing(self.folder, "update-ref", "--stdin", stdin=lines.encode())

    @threaded
    def forget(self, prefix: str) -> None:
        """Delete the ref of a named capture, or of all captures of a session (`SESSION`); git collects them later."""
        ref = _ref(prefix)
        listed = plumbing_text(self.folder, "for-each-ref", "--format=%(refname)", ref)
        lines = "".join(f"delete {found}\n" for found in listed.split())
        if lines:
            plumbing(self.folder, "update-ref", "--stdin", stdin=lines.encode())

    async def between(self, old: str, new: str) -> Differences:
        """Files that differ between two trees or commits, with renames detected."""
        return NOTHING if old == new else await self._between(old, new)

    @threaded
    def _between(self, old: str, new: str) -> Differences:
        return _parse(plumbing_text(self.folder, *_DIFF, _revision(old), _revision(new), "--"))[0]

    async def all_between(self, *pairs: tuple[str, str]) -> list[Differences]:
        """The same for several pairs of trees, by one process."""
        different = sorted({pair for pair in pairs if pair[0] != pair[1]})
        found = dict(zip(different, await self._all_between(different), strict=True)) if different else {}
        return [found.get(pair, NOTHING) for pair in pairs]

    @threaded
    def _all_between(self, pairs: list[tuple[str, str]]) -> list[Differences]:
        lines = [f"{_revision(old)} {_revision(new)}\n" for old, new in pairs]
        return _parse(plumbing_text(self.folder, *_DIFF, "--stdin", stdin="".join(lines).encode()), lines)

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


def _identity(path: Path) -> tuple[int, ...]:
    """Changes whenever git writes its index, which it replaces."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


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


def _parse(said: str, heads: Sequence[str] = ()) -> list[Differences]:
    """Read `--raw --numstat -z`: all raw records, then all numbers, in the same order. With `--stdin`, a line that
    names the two trees comes before the records of each pair."""
    fields = iter(said.split("\0"))
    groups: list[tuple[list[_Raw], list[tuple[str, str]]]] = [] if heads else [([], [])]
    for field in fields:
        while len(groups) < len(heads) and field.startswith(heads[len(groups)]):
            field = field.removeprefix(heads[len(groups)])
            groups.append(([], []))
        raw, counts = groups[-1]
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
    return [_differences(*group) for group in groups]


def _differences(raw: "list[_Raw]", counts: list[tuple[str, str]]) -> Differences:
    files = [_change(record, count) for record, count in zip(raw, counts, strict=True)]
    return Differences(files[:FILES_MAX], len(files) > FILES_MAX)


def _change(record: _Raw, count: tuple[str, str]) -> Change:
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
