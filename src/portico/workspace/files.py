"""Files of a working directory: one implementation for the tools and for every door.

Reads are bounded and ranged. Writes are atomic: a reader sees the old bytes or the new ones, never half of each, and
`if_match` refuses to overwrite a file that was changed since it was read. All paths go through the jail.
"""

import codecs
import contextlib
import itertools
import mimetypes
import os
import stat
import threading
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from portico.kernel.errors import AlreadyExists, BadRequest, Conflict, NotFound, PorticoError, TooLarge
from portico.workspace import tree
from portico.workspace.atomic_write import place
from portico.workspace.jail import Jail, Spot, open_at, speakable, told
from portico.workspace.thread import threaded

READ_MAX = 16 * 1024 * 1024  # one answer travels as one frame and is held in memory a few times on the way
WRITE_MAX = 64 * 1024 * 1024  # append and insert rebuild the file in memory; larger files belong to commands
TEXT_MAX = 256 * 1024  # what a model can take in one go; about 60,000 tokens
LIST_MAX = 10_000  # entries of one folder; more than anybody reads, and still only a megabyte of JSON
SNIFF = 8192  # git and ripgrep look at about this much, too, to call a file binary

Kind = Literal["file", "directory", "symlink", "other"]
Mode = Literal["truncate", "append", "insert"]

# Two writers of one path take turns, so that a check of `if_match` or the end of the file holds until the rename.
# Striped, because a lock per path would have to be kept for ever. Editors and shells outside do not know these locks.
_STRIPES = tuple(threading.Lock() for _ in range(64))


class Content(Struct, frozen=True):
    data: bytes
    start: int
    size: int  # of the whole file
    etag: str
    binary: bool
    content_type: str | None


class Text(Struct, frozen=True):
    """Lines `first` to `last` (from 1) of a text file; `text` is empty and `binary` set when it is none."""

    text: str
    first: int
    last: int
    cut: bool
    binary: bool
    size: int
    etag: str


class DirectoryEntry(Struct, frozen=True):
    """`kind` is what the entry itself is; `leads_to` what it is once links inside the jail are followed."""

    name: str
    kind: Kind
    leads_to: Literal["file", "directory"] | None


class FolderListing(Struct, frozen=True):
    entries: list[DirectoryEntry]
    cut: bool


class FileStatus(Struct, frozen=True):
    path: str  # canonical
    kind: Kind
    size: int
    mtime: float
    ctime: float
    etag: str
    content_type: str | None


class Files:
    """File work inside one jail. Every method may be called from the event loop."""

    def __init__(self, jail: Jail) -> None:
        self.jail = jail

    @threaded
    def read(self, path: str, start: int = 0, length: int | None = None) -> Content:
        """Bytes of a file. Without `length` the rest of it, which must then fit one answer."""
        if start < 0 or (length is not None and length < 0):
            raise BadRequest("A range starts at 0 or later and is not negative.", field="range")
        with told(path), os.fdopen(self._open_file(path), "rb") as file:
            status = os.fstat(file.fileno())
            wanted = max(status.st_size - start, 0) if length is None else length
            if wanted > READ_MAX:
                raise TooLarge(f"{path!r} has {status.st_size} bytes; read at most {READ_MAX} at a time, with a range.")
            binary = is_binary(file.read(SNIFF))
            file.seek(start)
            data = file.read(wanted)
        return Content(data, start, status.st_size, etag(status), binary, content_type(path))

    @threaded
    def read_text(self, path: str, first: int = 1, last: int | None = None, limit: int = TEXT_MAX) -> Text:
        """Lines for a model or a page: at most `limit` bytes, `cut` when there is more in the range."""
        if first < 1 or (last is not None and last < first):
            raise BadRequest("Lines count from 1, and the last is not before the first.", field="range")
        with told(path), os.fdopen(self._open_file(path), "rb") as file:
            status = os.fstat(file.fileno())
            if is_binary(file.read(SNIFF)):
                return Text("", 0, 0, False, True, status.st_size, etag(status))
            file.seek(0)
            lines: list[bytes] = []
            room = limit
            cut = False
            # A bounded readline: a file of one endless line must not be read whole either.
            for number in itertools.count(1):
                line = file.readline(READ_MAX)
                if not line or (last is not None and number > last):
                    break
                if number < first:
                    continue
                if len(line) > room:
                    cut = True
                    lines.append(line[:room])
                    break
                room -= len(line)
                lines.append(line)
        text = b"".join(lines).decode("utf-8", "replace")
        return Text(text, first, first + len(lines) - 1, cut, False, status.st_size, etag(status))

    @threaded
    def write(
        self,
        path: str,
        data: bytes,
        *,
        mode: Mode = "truncate",
        position: int = 0,
        if_match: str | None = None,
        create_only: bool = False,
        parents: bool = False,
    ) -> FileStatus:
        """Write `data` to a file atomically. `position` counts from the start, with `append` back from the end."""
        with self.jail.spot(path, make=parents) as spot, _turn(spot), told(path):
            before = _current(spot)
            if create_only and before is not None:
                raise AlreadyExists(f"{path!r} exists already.")
            if if_match is not None:
                check_match(path, before, if_match)
            whole = data if mode == "truncate" and position == 0 else _splice(spot, before, data, mode, position)
            if len(whole) > WRITE_MAX:
                raise TooLarge(f"{path!r} would have {len(whole)} bytes; {WRITE_MAX} is the limit.")
            place(spot, whole, before, exclusive=create_only)
            after = os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False)
            return _status(spot, after)

    @threaded
    def list(self, path: str = ".") -> FolderListing:
        fd = self.jail.open(path)
        try:
            if not stat.S_ISDIR(os.fstat(fd).st_mode):
                raise BadRequest(f"{path!r} is a file, not a folder.", field="path")
            with told(path), os.scandir(fd) as found:
                items = list(itertools.islice(found, LIST_MAX + 1))
                kinds = sorted(
                    (item.name, kind(item.stat(follow_symlinks=False)))
                    for item in items[:LIST_MAX]
                    if speakable(item.name)
                )
        finally:
            os.close(fd)
        entries = [DirectoryEntry(name, what, self._leads_to(os.path.join(path, name), what)) for name, what in kinds]
        return FolderListing(entries, len(items) > LIST_MAX)

    @threaded
    def stat(self, path: str, *, follow: bool = True) -> FileStatus:
        with self.jail.spot(path, follow=follow) as spot:
            if spot.status is None:
                raise NotFound("path", path)
            return _status(spot, spot.status)

    @threaded
    def mkdir(self, path: str) -> None:
        """Create the folder and its parents; an existing folder is not an error."""
        with self.jail.spot(path, make=True) as spot, told(path):
            try:
                os.mkdir(spot.name, dir_fd=spot.folder)
            except FileExistsError:  # also made by another caller since the spot was found
                if not stat.S_ISDIR(os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False).st_mode):
                    raise

    @threaded
    def copy(self, source: str, destination: str, *, fail_if_exists: bool = False) -> None:
        """Copy a file or a whole folder; an existing destination of the same kind is replaced atomically."""
        with self.jail.spot(source) as old, self._destination(destination) as new:
            if old.status is None:
                raise NotFound("path", source)
            if old.path == new.path and not fail_if_exists:
                return
            tree.check_pair(old, new, fail_if_exists=fail_if_exists)
            with told(destination):
                tree.copy(old, new)

    @threaded
    def move(self, source: str, destination: str, *, fail_if_exists: bool = False) -> None:
        """Moves a file, link or folder; also between roots on different disks."""
        with self.jail.spot(source, follow=False) as old, self._destination(destination) as new:
            if old.status is None:
                raise NotFound("path", source)
            if old.path == new.path and not fail_if_exists:
                return
            tree.check_pair(old, new, fail_if_exists=fail_if_exists)
            with told(source):
                tree.move(old, new)

    @threaded
    def delete(self, path: str, *, recursive: bool = False) -> None:
        """Delete a file, a link (never its target) or a folder."""
        with self.jail.spot(path, follow=False) as spot, told(path):
            if spot.status is None:
                raise NotFound("path", path)
            tree.delete(spot, recursive=recursive)

    @contextlib.contextmanager
    def _destination(self, path: str) -> Iterator[Spot]:
        """The destination as it is when other writers of it are done: what is checked holds until it is replaced."""
        with self.jail.spot(path, follow=False) as seen, _turn(seen), self.jail.spot(path, follow=False) as spot:
            yield spot

    def _open_file(self, path: str) -> int:
        fd = self.jail.open(path)
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            os.close(fd)
            raise BadRequest(f"{path!r} is a folder, not a file.", field="path")
        return fd

    def _leads_to(self, path: str, what: Kind) -> Literal["file", "directory"] | None:
        if what == "file" or what == "directory":
            return what
        if what == "other":
            return None
        try:
            with self.jail.spot(path) as spot:
                target = kind(spot.status) if spot.status else "other"
        except PorticoError:
            return None  # a link out, in a circle or to nothing is listed, and leads nowhere
        return target if target == "file" or target == "directory" else None


def etag(status: os.stat_result) -> str:
    """Changes whenever the file is written. Atomic writes make a new inode, so equal times alone do not fool it."""
    return f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}-{status.st_ctime_ns:x}"


def check_match(path: str, status: os.stat_result | None, wanted: str) -> None:
    if status is None or etag(status) != wanted:
        raise Conflict(f"{path!r} has changed since it was read. Read it again, then write.", field="ifMatch")


def is_binary(sample: bytes) -> bool:
    """NUL bytes or broken UTF-8 in the first bytes; a character cut by the end of the sample is no fault."""
    if b"\0" in sample:
        return True
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final=False)
    except UnicodeDecodeError:
        return True
    return False


def content_type(path: str) -> str | None:
    return mimetypes.guess_type(path, strict=False)[0]


def kind(status: os.stat_result) -> Kind:
    if stat.S_ISREG(status.st_mode):
        return "file"
    if stat.S_ISDIR(status.st_mode):
        return "directory"
    return "symlink" if stat.S_ISLNK(status.st_mode) else "other"


def _status(spot: Spot, status: os.stat_result) -> FileStatus:
    what = kind(status)
    return FileStatus(
        path=str(spot.path),
        kind=what,
        size=status.st_size,
        mtime=status.st_mtime,
        ctime=status.st_ctime,
        etag=etag(status),
        content_type=content_type(spot.name) if what == "file" else None,
    )


def _turn(spot: Spot) -> threading.Lock:
    return _STRIPES[hash(spot.path) % len(_STRIPES)]


def _current(spot: Spot) -> os.stat_result | None:
    """What is there now that we have the turn. Only ordinary files can be written."""
    try:
        status = os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if kind(status) != "file":
        raise BadRequest(f"{str(spot.path)!r} is no ordinary file ({kind(status)}).", field="path")
    return status


def _splice(spot: Spot, before: os.stat_result | None, data: bytes, mode: Mode, position: int) -> bytes:
    size = before.st_size if before else 0
    if not 0 <= position <= size:
        raise BadRequest(f"Position {position} is outside the file of {size} bytes.", field="position")
    if size > WRITE_MAX:
        raise TooLarge(f"{str(spot.path)!r} has {size} bytes; {WRITE_MAX} is the limit for changing a part of it.")
    old = b""
    if before:
        with os.fdopen(open_at(spot), "rb") as file:
            old = file.read(WRITE_MAX)
    if mode == "append":
        position = len(old) - position
    return old[:position] + data + (b"" if mode == "truncate" else old[position:])
