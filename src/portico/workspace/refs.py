"""Refs of captures, read and written as git stores them: one file each, and a list of packed ones.

A process for every ref would cost more than the capture itself. Writes use git's own protocol (a lock file that is
renamed), so git and other programs see either the old or the new value. A repository with another storage (reftable)
is left to git.
"""

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from portico.kernel.errors import Conflict
from portico.workspace.git_files import read_file
from portico.workspace.jail import Jail, Spot

_OBJECT = re.compile(r"[0-9a-f]{40,64}")
_PACKED_BYTES = 256 * 1024 * 1024
"""Of the list of packed refs: two million refs."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOCK_SECONDS = 1.0
"""How long another program may hold a ref: git itself waits 0.1 s, and holds one for microseconds."""


def are_files(common: Path) -> bool:
    """Whether this repository stores its refs as files."""
    return not (common / "reftable").exists()


def read(common: Path, ref: str) -> str | None:
    """The object that a ref names."""
    try:
        found = read_file(common / ref).decode("ascii").strip()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return _packed(common, ref)
    except (OSError, UnicodeError):
        return None
    return found if _OBJECT.fullmatch(found) else None


def write(common: Path, refs: Mapping[str, str]) -> None:
    """Set each ref to its object, atomically and durably: an empty ref file would be an error in every git command.
    Raises Forbidden if a link leads out of the git folder: an agent may have created it."""
    jail = Jail([common])
    for ref, target in refs.items():
        with _locked(jail, f"{ref}.lock") as (spot, descriptor):
            try:
                os.write(descriptor, f"{target}\n".encode())
                os.fsync(descriptor)
            except OSError:
                os.unlink(spot.name, dir_fd=spot.folder)
                raise
            finally:
                os.close(descriptor)
            name = ref.rpartition("/")[2]
            os.rename(spot.name, name, src_dir_fd=spot.folder, dst_dir_fd=spot.folder)


@contextmanager
def _locked(jail: Jail, lock: str) -> Iterator[tuple[Spot, int]]:
    end = time.monotonic() + _LOCK_SECONDS
    while True:
        with jail.spot(lock, follow=False, make=True) as spot:
            try:
                descriptor = os.open(spot.name, _NEW, 0o666, dir_fd=spot.folder)
            except FileNotFoundError:  # git removes folders that it empties
                continue
            except FileExistsError:
                if time.monotonic() > end:
                    raise Conflict(
                        f"{str(spot.path)!r} exists: another git command is running, or was killed."
                    ) from None
                time.sleep(0.005)
                continue
            yield spot, descriptor
            return


def _packed(common: Path, ref: str) -> str | None:
    try:
        listed = read_file(common / "packed-refs", _PACKED_BYTES)
    except OSError:
        return None
    end = listed.find(b" " + ref.encode() + b"\n")
    found = listed[listed.rfind(b"\n", 0, end) + 1 : end].decode("ascii", "replace") if end >= 0 else ""
    return found if _OBJECT.fullmatch(found) else None
