"""The private folder of a host: who runs on it, where it listens, and its secrets.

The attack: another user of this machine, or another host, reads or replaces what lies here. So the folder is 0700,
every file 0600, files are replaced atomically, one host at a time holds the lock, and what another process wrote here
is treated as untrusted input.
"""

import contextlib
import errno
import fcntl
import logging
import os
import secrets
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from portico.kernel.errors import BadRequest, HomeInUse

logger = logging.getLogger("portico.home")


class HostEndpoint(Struct, omit_defaults=True):
    """What a local client needs to find a running host."""

    url: str
    pid: int
    token_path: str | None
    version: str
    socket: str | None = None
    """The Unix socket, where it listens there and on no address."""
    certificate: str | None = None
    """The certificate of a host that serves TLS itself: its clients on this machine trust only this one."""
    host: str = ""
    """Its name among several on one log."""
    place: str = ""


class Home:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[str] | None = None

    @classmethod
    def default(cls, given: Path | None = None) -> "Home":
        """`--home`, else PORTICO_HOME, else the user's data folder."""
        try:
            found = cls(Path(given or os.environ.get("PORTICO_HOME") or _usual()).expanduser().absolute())
        except RuntimeError as error:  # a container's user that the system does not know
            words = "This user has no home folder. Set HOME or PORTICO_HOME, or choose a folder with --home."
            raise BadRequest(words, field="home") from error
        if found.path.is_file():
            raise found._unusable("it is a file")
        return found

    def _unusable(self, why: str | None) -> BadRequest:
        words = f"The home folder {str(self.path)!r} cannot be used: {why}. Choose another with --home."
        return BadRequest(words, field="home")

    def make(self) -> None:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.chmod(0o700)
        except OSError as error:
            raise self._unusable("it is a file" if isinstance(error, FileExistsError) else error.strerror) from error
        ignore = self.path / ".gitignore"
        if not ignore.exists():  # inside a repository: exclude it from captures, searches and commits
            with contextlib.suppress(OSError):  # a full disk: required writes report it
                write_private(ignore, b"*\n")

    @property
    def log_path(self) -> Path:
        return self.path / "log.db"

    @property
    def search_path(self) -> Path:
        return self.path / "search.db"

    @property
    def token_path(self) -> Path:
        return self.path / "token"

    @property
    def logouts_path(self) -> Path:
        return self.path / "logouts.json"

    @property
    def tokens_path(self) -> Path:
        return self.path / "tokens.json"

    @property
    def settings_path(self) -> Path:
        return self.path / "settings.toml"

    def misnamed_settings(self) -> str:
        """Report files that look like the settings and are not read. Empty: there are none."""
        names = (
            f"{name}.{kind}" for name in ("config", "portico", "settings") for kind in ("toml", "json", "yaml", "yml")
        )
        found = [name for name in names if name != self.settings_path.name and (self.path / name).is_file()]
        if not found:
            return ""
        verb = "is" if len(found) == 1 else "are"
        return f"{' and '.join(found)} in {self.path} {verb} not read: put the settings into {self.settings_path.name}."

    @property
    def automations_path(self) -> Path:
        return self.path / "automations.toml"

    @property
    def endpoint_path(self) -> Path:
        return self.path / "endpoint.json"

    # -- one host at a time ------------------------------------------------------------------------------------

    def lock(self) -> None:
        """Take the lock. The kernel releases it when the process ends, also after `kill -9`."""
        file = open(self.path / "lock", "a+", encoding="utf-8")  # noqa: SIM115 - held for the host's life
        os.chmod(file.name, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            raise HomeInUse(self._occupied()) from error
        self._lock = file

    def _occupied(self) -> str:
        endpoint = self.endpoint()
        who = f" (process {endpoint.pid}, {endpoint.url})" if endpoint else ""
        return f"Another host runs on the home folder {str(self.path)!r}{who}. Stop it, or choose another with --home."

    def unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    # -- where it listens --------------------------------------------------------------------------------------

    def announce(self, endpoint: HostEndpoint) -> None:
        write_private(self.endpoint_path, msgspec.json.encode(endpoint))

    def retract(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.endpoint_path.unlink()

    def endpoint(self) -> HostEndpoint | None:
        """Return the running host, or None. A file of a dead process is removed; an invalid one is ignored."""
        try:
            endpoint = msgspec.json.decode(self.endpoint_path.read_bytes(), type=HostEndpoint)
        except (OSError, UnicodeDecodeError, msgspec.DecodeError):
            return None
        if endpoint.pid <= 0 or not endpoint.url.startswith(("http://", "https://")):
            return None
        if not alive(endpoint.pid):
            self.retract()
            return None
        return endpoint

    # -- secrets -----------------------------------------------------------------------------------------------

    def token(self) -> str:
        """The owner's token: made at the first start, 256 bits."""
        try:
            token = self.token_path.read_bytes().decode("ascii", "replace").strip()
        except FileNotFoundError:
            token = ""
        if not _is_random(token.encode()) or not token.isascii() or not token.isprintable():
            token = secrets.token_urlsafe(32)
            write_private(self.token_path, token.encode())
        self.token_path.chmod(0o600)
        return token


def _usual() -> str:
    import platformdirs  # late: services and containers name their folder

    return platformdirs.user_data_dir("portico", appauthor=False)


def secret_key(path: Path) -> bytes:
    """Return the 256-bit key in this file; create a new one if there is none, or if the disk has lost it."""
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = b""
    else:
        if not _is_random(key):
            logger.error("%r was damaged and is made anew: what was signed with it counts no more.", str(path))
    if not _is_random(key):
        key = secrets.token_bytes(32)
        write_private(path, key)
    return key


def _is_random(secret: bytes) -> bool:
    """Long enough, and not the zeros (or the few bytes) that a lost write leaves: those can be guessed."""
    return len(secret) >= 32 and len(set(secret)) > 8


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def stamp(path: Path | str) -> tuple[int, int] | None:
    """Return a value that changes with the file, also if it is replaced within one clock tick; None: no file."""
    try:
        stat = os.stat(path)
    except FileNotFoundError:
        return None
    return stat.st_mtime_ns, stat.st_ino


def write_private(path: Path, data: bytes) -> None:
    """Write a file atomically; no other user can read it at any time."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)  # there only if something went wrong
