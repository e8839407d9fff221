"""Refs of captures, read and written as git stores them: one file each, and a list of packed ones.

A process for every ref would cost more than the capture itself. Writes use git's own protocol (a lock file that is
renamed), so git and other programs see either the old or the new value. A repository with another storage (reftable)
is left to git.
"""

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from portico.kernel.errors import Conflict

_OBJECT = re.compile(r"[0-9a-f]{40,64}")
_LOCK_SECONDS = 1.0
"""How long another program may hold a ref: git itself waits 0.1 s, and holds one for microseconds."""


def are_files(common: Path) -> bool:
    """Whether this repository stores its refs as files."""
    return not (common / "reftable").exists()


def read(common: Path, ref: str) -> str | None:
    """The object that a ref names."""
    try:
        found = (common / ref).read_text("ascii").strip()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return _packed(common, ref)
    except (OSError, UnicodeError):
        return None
    return found if _OBJECT.fullmatch(found) else None


def write(common: Path, refs: Mapping[str, str]) -> None:
    """Set each ref to its object, atomically and durably: an empty ref file would be an error in every git command."""
    for ref, target in refs.items():
        path = common / ref
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_name(path.name + ".lock")
        descriptor = _locked(lock)
        try:
            os.write(descriptor, f"{target}\n".encode())
            os.fsync(descriptor)
        except OSError:
            lock.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        os.rename(lock, path)


def _locked(lock: Path) -> int:
    end = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileNotFoundError:  # git removes folders that it empties
            lock.parent.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            if time.monotonic() > end:
                raise Conflict(f"{str(lock)!r} exists: another git command is running, or was killed.") from None
            time.sleep(0.005)


def _packed(common: Path, ref: str) -> str | None:
    try:
        listed = (common / "packed-refs").read_bytes()
    except OSError:
        return None
    end = listed.find(b" " + ref.encode() + b"\n")
    found = listed[listed.rfind(b"\n", 0, end) + 1 : end].decode("ascii", "replace") if end >= 0 else ""
    return found if _OBJECT.fullmatch(found) else None
