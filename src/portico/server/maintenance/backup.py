"""One file with everything that a host cannot recreate: a consistent copy of the log, settings and tokens.

The host may run: SQLite copies the log in one read transaction, so no event is truncated and the writer does not wait.
The written file is read again and compared before it counts as a backup.
"""

import contextlib
import hashlib
import io
import os
import sqlite3
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from portico import __version__
from portico.kernel.errors import BadRequest, LogDamaged
from portico.kernel.log.sqlite.error_text import ERRORS
from portico.kernel.log.sqlite.schema import VERSION

LOG = "log.db"
SECRETS = ("token", "tokens.json", "people.json", "cookie-key", "hooks.key", "secrets.json", "input-secrets.json")
PLAIN = ("settings.toml", "automations.toml")
MANIFEST = "manifest.json"
_CHUNK = 1024 * 1024


class Manifest(Struct):
    version: str
    schema: int
    time: int
    seq: int
    """The last event in it."""
    sums: dict[str, str]
    """SHA-256 of every file."""


def back_up(home: Path, target: Path, *, secrets: bool = True) -> Manifest:
    """Whole and verified, or not there at all."""
    log = home / LOG
    if not log.exists():
        raise BadRequest(f"There is no log in {str(home)!r}: nothing to back up.", field="home")
    if target.exists():
        raise BadRequest(f"{str(target)!r} is there already; choose another name.", field="file")
    names = [name for name in (*PLAIN, *(SECRETS if secrets else ())) if (home / name).exists()]
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".portico-backup-") as place:
            copy = Path(place) / LOG
            seq = _copy_log(log, copy)
            draft = Path(place) / "draft"
            manifest = _pack(draft, {LOG: copy, **{name: home / name for name in names}}, seq)
            verify(draft)
            os.replace(draft, target)
    except OSError as error:
        raise BadRequest(f"{str(target)!r} cannot be written: {error.strerror}.", field="file") from error
    return manifest


def _copy_log(log: Path, copy: Path) -> int:
    """In one transaction of a reader. Returns the last seq."""
    try:
        with contextlib.closing(sqlite3.connect(f"{log.as_uri()}?mode=ro", uri=True)) as db:
            db.execute("VACUUM INTO ?", (str(copy),))
    except ERRORS as error:
        raise LogDamaged(
            f"The log {str(log)!r} cannot be copied ({error}). Look at it with: portico log check"
        ) from error
    return _check_log(copy)


def _check_log(path: Path) -> int:
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            found: str = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
            seq: int = db.execute("SELECT pos FROM channels WHERE id = 0").fetchone()[0]
    except ERRORS as error:
        raise LogDamaged(f"The copy of the log is damaged: {error}.") from error
    if found != "ok":
        raise LogDamaged(f"The copy of the log is damaged: {found}.")
    return seq


def _pack(draft: Path, files: dict[str, Path], seq: int) -> Manifest:
    sums = {name: _sum(path.open("rb")) for name, path in files.items()}
    manifest = Manifest(__version__, VERSION, int(time.time() * 1000), seq, sums)
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz", compresslevel=3) as archive:
        data = msgspec.json.encode(manifest)
        archive.addfile(_member(MANIFEST, len(data)), io.BytesIO(data))
        for name, path in files.items():
            with path.open("rb") as source:
                archive.addfile(_member(name, path.stat().st_size), source)
        archive.close()
        file.flush()
        os.fsync(file.fileno())
    return manifest


def _member(name: str, size: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, 0o600, int(time.time())
    return info


def _sum(file: "IO[bytes]") -> str:
    digest = hashlib.sha256()
    with file:
        while data := file.read(_CHUNK):
            digest.update(data)
    return digest.hexdigest()


def verify(file: Path) -> Manifest:
    """Reads all of it and compares. BadRequest when it is no backup, or a damaged one."""
    with _opened(file) as archive:
        manifest = _manifest(archive, file)
        for name, expected in manifest.sums.items():
            member = _extract(archive, name, file)
            if _sum(member) != expected:
                raise BadRequest(f"{str(file)!r} is damaged: {name!r} is not what was written.", field="file")
    return manifest


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(file, "r:gz") as archive:
            yield archive
    except FileNotFoundError:
        raise BadRequest(f"There is no file {str(file)!r}.", field="file") from None
    except (OSError, tarfile.TarError, EOFError) as error:
        raise BadRequest(f"{str(file)!r} is no whole backup: {error}.", field="file") from error


def _manifest(archive: tarfile.TarFile, file: Path) -> Manifest:
    try:
        manifest = msgspec.json.decode(_extract(archive, MANIFEST, file).read(), type=Manifest)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"{str(file)!r} is no backup of Portico: {error}.", field="file") from error
    if manifest.schema > VERSION:
        raise BadRequest(
            f"{str(file)!r} was made by Portico {manifest.version}, which is newer than this one.", field="file"
        )
    unknown = manifest.sums.keys() - {LOG, *PLAIN, *SECRETS}
    if unknown or LOG not in manifest.sums:
        raise BadRequest(f"{str(file)!r} is no backup of Portico.", field="file")
    return manifest


def _extract(archive: tarfile.TarFile, name: str, file: Path) -> "IO[bytes]":
    """Open a file of the archive: only known names, and only regular files. Other entries are ignored."""
    try:
        found = archive.extractfile(name)
    except KeyError:
        found = None
    if found is None:
        raise BadRequest(f"{str(file)!r} is no backup of Portico: it has no {name!r}.", field="file")
    return found


def restore(file: Path, home: Path, *, replace: bool = False) -> Manifest:
    """Restore into a home that no host uses. Existing files are kept under another name. The log gets a new epoch at
    the next start: cursors of clients that have seen more than the backup contains must not be valid in it."""
    manifest = verify(file)
    if (home / LOG).exists() and not replace:
        raise BadRequest(f"{str(home)!r} has a log already; --force puts it aside.", field="home")
    aside = f".before-restore-{int(time.time())}"
    for name in (LOG, f"{LOG}-wal", f"{LOG}-shm", f"{LOG}-mark", *manifest.sums):
        path = home / name
        if path.exists():
            path.rename(path.with_name(path.name + aside))
    for name in ("search.db", "search.db-wal", "search.db-shm"):
        (home / name).unlink(missing_ok=True)  # recreated from the log
    with _opened(file) as archive:
        for name in manifest.sums:
            descriptor = os.open(home / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(descriptor, "wb") as target, _extract(archive, name, file) as source:
                while data := source.read(_CHUNK):
                    target.write(data)
                target.flush()
                os.fsync(target.fileno())
    _check_log(home / LOG)
    return manifest
