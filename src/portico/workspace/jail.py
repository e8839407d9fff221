"""The path jail: every file operation of every door and tool goes through here.

The attack: a path that looks harmless and leads out of the working directory. `../../etc/passwd`, a link to `/`, a
sibling that shares a prefix (`/srv/app-evil` beside `/srv/app`), `/proc/self/environ` with the host's secrets, a NUL
that cuts the name short, or a folder that is swapped for a link between the check and the use. Comparing strings after
`realpath` stops only some of these. Another attack stays inside: the host's own folder, with its tokens and settings,
may be in the project (if the working directory is `~`). So that folder is closed in every jail.

So a path is never passed to the kernel as a whole. `Jail.spot` walks it name by name from an open root, each step
relative to the previously opened folder and never through a link. Links are read and walked the same way, and one that
leads out is refused. The result is an open folder and one name in it, which cannot be redirected afterwards.

Not stopped: hard links, which are indistinguishable from the file itself, and commands, which are not file operations.
All of this is plain blocking code; `Files` and the search run it in threads.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from portico.kernel.errors import AlreadyExists, BadRequest, Conflict, Forbidden, NotFound, PorticoError

LINKS_MAX = 40  # the number of links that Linux follows before it returns ELOOP
PATH_MAX = 4096  # the kernel's limit for a path; longer ones cannot exist

# Interfaces to the kernel and to other processes (environments, memory, disks): never part of a project, even if the
# working directory is `/`.
KERNEL_TREES = ("proc", "sys", "dev")

ROOT = Path("/")

_closed: list[Path] = []
"""The home folders of the hosts in this process. Global, so that no jail can omit them."""

# O_PATH needs no read permission on folders that are only traversed; it exists only on Linux.
STEP = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Spot(NamedTuple):
    """A place inside the jail: `name` in the open folder `folder`. `status` is None if nothing exists there."""

    folder: int
    name: str
    path: Path
    status: os.stat_result | None

    @property
    def is_root(self) -> bool:
        return self.name == "."

    def existing(self) -> os.stat_result:
        if self.status is None:
            raise NotFound("path", str(self.path))
        return self.status


@contextmanager
def closed(folder: Path) -> Iterator[None]:
    """Close this folder to all jails during the context. A project inside the folder remains usable."""
    folder = Path(os.path.realpath(folder))
    _closed.append(folder)
    try:
        yield
    finally:
        _closed.remove(folder)


def closed_folders() -> tuple[Path, ...]:
    return tuple(_closed)


def is_closed(path: Path, root: Path = ROOT) -> bool:
    """Whether a path without links, below `root`, is in a closed folder."""
    return any(path.is_relative_to(each) and each not in root.parents for each in _closed)


def check_whole(path: Path) -> None:
    """Refuse to copy, move or delete a whole tree that contains a closed folder."""
    if any(each.is_relative_to(path) for each in _closed):
        raise Forbidden(f"The host keeps its own files in {str(path)!r}.")


def _refuse_closed(path: Path, root: Path) -> None:
    if is_closed(path, root):
        raise Forbidden(f"{str(path)!r} belongs to the host, not to a project.")


@contextmanager
def told(path: object) -> Iterator[None]:
    """Translate errors of the kernel into ours; others (a full disk) are raised unchanged."""
    try:
        yield
    except OSError as error:
        raise translate(error, str(path)) from error


def translate(error: OSError, path: str) -> PorticoError | OSError:
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return NotFound("path", path)
        case errno.EEXIST:
            return AlreadyExists(f"{path!r} exists already.")
        case errno.EACCES | errno.EPERM | errno.EROFS | errno.ETXTBSY:
            return Forbidden(f"The system does not allow this for {path!r}: {os.strerror(error.errno)}.")
        case errno.ELOOP:
            return Forbidden(f"{path!r} was replaced by a link or leads in a circle.")
        case errno.ENOTEMPTY:
            return Conflict(f"The folder {path!r} is not empty. Ask for a recursive delete if you mean it.")
        case errno.EISDIR:
            return BadRequest(f"{path!r} is a folder.", field="path")
        case errno.ENAMETOOLONG | errno.EINVAL:
            return BadRequest(f"{path[:80]!r} is no usable file name: {os.strerror(error.errno)}.", field="path")
        case _:
            return error


class Jail:
    """One or more folders that nothing leads out of. Relative paths start at the first."""

    def __init__(self, roots: Iterable[str | Path]) -> None:
        # The roots come from the host's owner, so links in them are followed, once.
        self.roots = tuple(Path(os.path.realpath(root)) for root in roots)
        if not self.roots:
            raise BadRequest("A jail needs at least one folder.", field="roots")
        self._by_parts = {root.parts[1:]: root for root in self.roots}
        for root in self.roots:
            _refuse_kernel(root.parts[1:])

    @property
    def root(self) -> Path:
        return self.roots[0]

    @contextmanager
    def spot(self, path: str | Path, *, follow: bool = True, make: bool = False) -> Iterator[Spot]:
        """Resolve `path` to an open folder and a name in it.

        `follow`: whether a link at the end of the path is followed (within the jail) or is itself the target.
        `make`: create the folders on the way, as `mkdir -p` does.
        """
        walk = _Walk(self, _text(path), follow, make)
        try:
            with told(path):
                found = walk.run()
            yield found
        finally:
            walk.close()

    def resolve(self, path: str | Path, *, follow: bool = True) -> Path:
        """Return the canonical path, which need not exist. For names in events; to access a file use `spot`."""
        try:
            with self.spot(path, follow=follow) as spot:
                return spot.path
        except NotFound:
            head, name = os.path.split(_text(path).rstrip("/"))
            if not name or name == "..":
                raise
            return self.resolve(head or ".") / name

    def relative(self, path: str | Path) -> str:
        """Return the short name of a path: relative in the first root, absolute in the others."""
        whole = self.resolve(path)
        return (whole.relative_to(self.root) if whole.is_relative_to(self.root) else whole).as_posix()

    def open(self, path: str | Path, flags: int = os.O_RDONLY) -> int:
        """Open a regular file or a folder. Pipes and devices are refused: opening them can block or have effects."""
        with self.spot(path) as spot, told(path):
            spot.existing()
            return open_at(spot, flags)

    def enter(self, parts: list[str], said: str) -> tuple[Path, deque[str]]:
        """Split an absolute path into the root that contains it and the steps below that root."""
        reached: list[str] = []
        for index, part in enumerate(["", *parts]):
            if part == "..":
                reached = reached[:-1]
            elif part:
                reached.append(part)
            root = self._by_parts.get(tuple(reached))
            if root is not None:
                return root, deque(parts[index:])
        raise Forbidden(f"{said!r} is outside the working directory.")


def open_at(spot: Spot, flags: int = os.O_RDONLY) -> int:
    """Open the regular file or folder at `spot`; fail if it is a link now."""
    # O_NONBLOCK: opening a pipe without a writer would otherwise block forever.
    fd = os.open(spot.name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=spot.folder)
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return fd
    os.close(fd)
    raise Forbidden(f"{str(spot.path)!r} is neither a file nor a folder.")


class _Walk:
    """One walk along a path. `opened` holds the root and each folder of `names` below it; none of them is a link."""

    def __init__(self, jail: Jail, said: str, follow: bool, make: bool) -> None:
        self.jail = jail
        self.said = said
        self.follow = follow
        self.make = make
        self.links = 0
        self.opened: list[int] = []
        self.names: list[str] = []
        self.root = jail.root
        self.todo: deque[str] = deque()

    def run(self) -> Spot:
        if self.said.startswith("/"):
            self.restart(_split(self.said))
        else:
            self.restart([*self.jail.root.parts[1:], *_split(self.said)])
        while self.todo:
            name = self.todo.popleft()
            if name == "..":
                self.up()
                continue
            status = self.look(name)
            if status is not None and stat.S_ISLNK(status.st_mode) and (self.todo or self.follow):
                self.follow_link(name)
            elif self.todo:
                self.down(name, status)
            else:
                return self.at(name, status)
        if not self.names:
            return Spot(self.opened[-1], ".", self.root, os.stat(self.opened[-1]))
        # The path ended in `..` or in a link to a folder above: return to the parent of that folder, to name it.
        name = self.names[-1]
        self.leave()
        return self.at(name, self.look(name))

    def at(self, name: str, status: os.stat_result | None) -> Spot:
        return Spot(self.opened[-1], name, self.check_step(name), status)

    def check_step(self, name: str) -> Path:
        # Roots inside these trees do not exist, so only a first step from `/` can lead there.
        if not self.names and self.root == ROOT:
            _refuse_kernel((name,))
        path = self.root.joinpath(*self.names, name)
        _refuse_closed(path, self.root)
        return path

    def look(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self.opened[-1], follow_symlinks=False)
        except FileNotFoundError:
            return None

    def down(self, name: str, status: os.stat_result | None) -> None:
        self.check_step(name)  # before it is opened: even opening some of these has effects
        if status is None:
            if not self.make:
                raise NotFound("path", self.said)
            with suppress(FileExistsError):  # it was created concurrently, which is fine
                os.mkdir(name, dir_fd=self.opened[-1])
        elif not stat.S_ISDIR(status.st_mode):
            raise NotFound("path", self.said, f"{name!r} on the way is not a folder.")
        self.opened.append(os.open(name, STEP, dir_fd=self.opened[-1]))
        self.names.append(name)

    def up(self) -> None:
        if self.names:
            self.leave()
        else:
            self.restart([*self.root.parent.parts[1:], *self.todo])

    def leave(self) -> None:
        self.names.pop()
        os.close(self.opened.pop())

    def follow_link(self, name: str) -> None:
        self.links += 1
        if self.links > LINKS_MAX:
            raise Forbidden(f"{self.said!r} leads through too many links.")
        target = os.readlink(name, dir_fd=self.opened[-1])
        if target.startswith("/"):
            self.restart([*_split(target), *self.todo])
        else:
            self.todo.extendleft(reversed(_split(target)))

    def restart(self, parts: list[str]) -> None:
        """Restart from an absolute path: at the start, at an absolute link, and at a step above the root."""
        root, todo = self.jail.enter(parts, self.said)
        _refuse_closed(root, root)
        self.close()
        self.root, self.todo = root, todo
        self.opened.append(os.open(root, STEP))

    def close(self) -> None:
        while self.opened:
            os.close(self.opened.pop())
        self.names.clear()


def speakable(name: str) -> bool:
    """Whether a file name is valid text. Names with undecodable bytes cannot be sent as JSON, so they are omitted."""
    return not any("\udc80" <= character <= "\udcff" for character in name)


def _text(path: str | Path) -> str:
    text = str(path)
    if "\0" in text:
        raise BadRequest("A path must not contain a NUL character.", field="path")
    try:
        size = len(os.fsencode(text))
    except UnicodeEncodeError as error:
        raise BadRequest(f"{text[:80]!r} cannot be a file name.", field="path") from error
    if size > PATH_MAX:
        raise BadRequest(f"The path is {size} bytes long; {PATH_MAX} is the limit.", field="path")
    return text


def _split(text: str) -> list[str]:
    return [part for part in text.split("/") if part not in ("", ".")]


def _refuse_kernel(parts: tuple[str, ...]) -> None:
    if parts and parts[0] in KERNEL_TREES:
        raise Forbidden(f"{'/' + parts[0]!r} belongs to the kernel, not to a project.")
