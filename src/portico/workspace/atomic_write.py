"""Replaces a file atomically: writes a temporary file in the same folder, then renames it.

Used by writes and copies. The temporary name starts with `TEMPORARY`, so that watches and listings can omit it.
"""

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from portico.workspace.jail import Spot

TEMPORARY = ".portico-tmp-"


def temporary_name() -> str:
    return TEMPORARY + secrets.token_hex(8)


def place(spot: Spot, data: bytes, before: os.stat_result | None, *, exclusive: bool = False) -> None:
    """Makes `data` the content at `spot`, keeping mode and owner of the file it replaces."""

    def fill(file: BinaryIO) -> None:
        file.write(data)

    place_with(spot, fill, before, exclusive=exclusive)


def place_with(
    spot: Spot,
    fill: Callable[[BinaryIO], None],
    like: os.stat_result | None,
    *,
    exclusive: bool = False,
    durable: bool = True,
) -> None:
    name = temporary_name()
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=spot.folder)
    try:
        with os.fdopen(fd, "wb") as file:
            fill(file)
            file.flush()
            if like is not None:
                _dress(file.fileno(), like)
            if durable:
                # Without it, some file systems keep the new name and lose the bytes when the power fails.
                os.fsync(file.fileno())
        if exclusive:
            _claim(name, spot)
        else:
            os.rename(name, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
    finally:
        with suppress(FileNotFoundError):  # renamed, which is the good end
            os.unlink(name, dir_fd=spot.folder)


def _dress(fd: int, like: os.stat_result) -> None:
    own = os.fstat(fd)
    if (own.st_uid, own.st_gid) != (like.st_uid, like.st_gid):
        with suppress(PermissionError):  # only the superuser may give files away; then the writer owns it
            os.fchown(fd, like.st_uid, like.st_gid)
    os.fchmod(fd, stat.S_IMODE(like.st_mode))


def _claim(name: str, spot: Spot) -> None:
    """Gives the file its name only if the name is free; the kernel decides, not a check before."""
    try:
        os.link(name, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:
        # File systems without hard links: an empty file takes the name first, and is replaced.
        os.close(os.open(spot.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, dir_fd=spot.folder))
        os.rename(name, spot.name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)
