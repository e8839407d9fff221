"""Copying, moving and deleting whole trees between two spots of the jail, relative to open folders only.

Links inside a tree are copied as links and never followed, so a tree cannot pull in what lies outside.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from portico.kernel.errors import AlreadyExists, BadRequest, Forbidden, TooLarge
from portico.workspace.atomic_write import place_with, temporary_name
from portico.workspace.jail import STEP, Spot, check_whole, open_at

COPY_MAX = 50_000  # entries of one copy; a dependency folder has this many, a mistake has more
DEPTH_MAX = 200  # each level holds two descriptors open; no real project is nearly as deep
COPY_BYTES_MAX = 4 * 1024**3  # a slip of the hand must not fill the disk


def check_pair(old: Spot, new: Spot, *, fail_if_exists: bool) -> None:
    if old.is_root or new.is_root:
        raise Forbidden("The working directory itself cannot be moved, copied over or replaced.")
    check_whole(old.path)
    check_whole(new.path)
    if old.path in new.path.parents or new.path in old.path.parents:
        raise BadRequest(f"{str(old.path)!r} and {str(new.path)!r} lie inside one another.", field="destination")
    if new.status is None:
        return
    if fail_if_exists:
        raise AlreadyExists(f"{str(new.path)!r} exists already.")
    if stat.S_ISDIR(old.existing().st_mode) != stat.S_ISDIR(new.status.st_mode):
        raise AlreadyExists(f"{str(new.path)!r} exists already and is of another kind. Delete it first.")


def copy(old: Spot, new: Spot) -> None:
    mode = old.existing().st_mode
    if stat.S_ISDIR(mode):
        with _beside(new) as fresh:
            _Copy().folder(old, fresh)
            _swap(fresh, new)
    elif stat.S_ISLNK(mode):
        with _beside(new) as fresh:
            os.symlink(os.readlink(old.name, dir_fd=old.folder), fresh.name, dir_fd=new.folder)
            os.rename(fresh.name, new.name, src_dir_fd=new.folder, dst_dir_fd=new.folder)
    else:
        _Copy().file(old, new)


def move(old: Spot, new: Spot) -> None:
    try:
        if new.status is not None and stat.S_ISDIR(new.status.st_mode):
            _swap(old, new)
        else:
            os.rename(old.name, new.name, src_dir_fd=old.folder, dst_dir_fd=new.folder)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy(old, new)
        delete(old, recursive=True)


def delete(spot: Spot, *, recursive: bool) -> None:
    if spot.is_root:
        raise Forbidden("The working directory itself cannot be deleted.")
    check_whole(spot.path)
    if not stat.S_ISDIR(spot.existing().st_mode):
        os.unlink(spot.name, dir_fd=spot.folder)
    elif recursive:
        shutil.rmtree(spot.name, dir_fd=spot.folder)
    else:
        os.rmdir(spot.name, dir_fd=spot.folder)


@contextmanager
def _beside(spot: Spot) -> Iterator[Spot]:
    """A free name next to `spot` to build in; what is still there at the end is thrown away."""
    fresh = Spot(spot.folder, temporary_name(), spot.path, None)
    try:
        yield fresh
    finally:
        with suppress(FileNotFoundError):  # it found its place
            _discard(fresh)


def _discard(spot: Spot) -> None:
    status = os.stat(spot.name, dir_fd=spot.folder, follow_symlinks=False)
    delete(spot._replace(status=status), recursive=True)


def _swap(fresh: Spot, new: Spot) -> None:
    """Puts the folder `fresh` in the place of `new`: the old one steps aside first and is deleted last."""
    with _beside(new) as aside:
        with suppress(FileNotFoundError):  # nothing to replace
            os.rename(new.name, aside.name, src_dir_fd=new.folder, dst_dir_fd=new.folder)
        try:
            os.rename(fresh.name, new.name, src_dir_fd=fresh.folder, dst_dir_fd=new.folder)
        except OSError:
            with suppress(FileNotFoundError):
                os.rename(aside.name, new.name, src_dir_fd=new.folder, dst_dir_fd=new.folder)
            raise


class _Copy:
    """One copy, counting what it makes."""

    def __init__(self) -> None:
        self.entries = 0
        self.bytes = 0
        self.depth = 0

    def folder(self, old: Spot, new: Spot) -> None:
        self.count(old, 0)
        source = open_at(old, os.O_RDONLY | os.O_DIRECTORY)
        self.depth += 1
        try:
            os.mkdir(new.name, dir_fd=new.folder)
            target = os.open(new.name, STEP, dir_fd=new.folder)
            try:
                self.inside(source, old.path, target, new.path)
                os.chmod(new.name, stat.S_IMODE(os.fstat(source).st_mode), dir_fd=new.folder)
            finally:
                os.close(target)
        finally:
            self.depth -= 1
            os.close(source)

    def inside(self, source: int, old_path: Path, target: int, new_path: Path) -> None:
        with os.scandir(source) as found:
            items = [(item.name, item.stat(follow_symlinks=False)) for item in found]
        for name, status in items:
            old = Spot(source, name, old_path / name, status)
            new = Spot(target, name, new_path / name, None)
            if stat.S_ISDIR(status.st_mode):
                self.folder(old, new)
            elif stat.S_ISLNK(status.st_mode):
                self.count(old, 0)
                os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
            elif stat.S_ISREG(status.st_mode):
                self.file(old, new)

    def file(self, old: Spot, new: Spot) -> None:
        with os.fdopen(open_at(old), "rb") as source:
            status = os.fstat(source.fileno())
            self.count(old, status.st_size)

            def fill(target: BinaryIO) -> None:
                shutil.copyfileobj(source, target, 1024 * 1024)

            # Not synced one by one: the source is still there, and thousands of syncs take minutes.
            place_with(new, fill, status, durable=False)

    def count(self, spot: Spot, size: int) -> None:
        self.entries += 1
        self.bytes += size
        if self.entries > COPY_MAX or self.bytes > COPY_BYTES_MAX or self.depth > DEPTH_MAX:
            raise TooLarge(
                f"Stopped at {str(spot.path)!r}: a copy has at most {COPY_MAX} entries, {COPY_BYTES_MAX} bytes "
                f"and {DEPTH_MAX} levels."
            )
