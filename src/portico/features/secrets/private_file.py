"""A JSON file of the home folder that only its user can read, with one edit at a time."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

from portico.kernel.errors import BadRequest
from portico.server.home import Home, stamp, write_private

Content = TypeVar("Content")


class PrivateFile(Generic[Content]):
    def __init__(self, home: Home, name: str, kind: type[Content]) -> None:
        self._home = home
        self._path = home.path / name
        self._kind = kind

    def read(self) -> Content:
        """The content; without a file, that of an empty one."""
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=self._kind)
        except FileNotFoundError:
            return msgspec.json.decode(b"{}", type=self._kind)
        except (OSError, UnicodeDecodeError, msgspec.DecodeError):  # without its text: that may quote a value
            raise BadRequest(f"{str(self._path)!r} cannot be read. Repair or remove it.") from None

    @contextlib.contextmanager
    def editing(self) -> Iterator[Content]:
        """One edit at a time, also of several processes: else the later would drop what the earlier has added."""
        self._home.make()
        with open(self._home.path / "secrets.lock", "a", encoding="utf-8") as lock:
            os.chmod(lock.name, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            content = self.read()
            yield content
            write_private(self._path, msgspec.json.encode(content))

    def stamp(self) -> object:
        """A value that changes with the file."""
        return stamp(self._path)
