"""The folder of models: one GGUF file per name, `NAME.gguf`, and nothing that is not whole."""

import hashlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from portico.kernel.errors import AlreadyExists, BadRequest, NotFound
from portico.server.home import write_private

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_SUFFIX = ".gguf"
_CHOSEN = "chosen"
_PINS = "pins.json"
_MAGIC = b"GGUF"
CHUNK = 1024 * 1024

Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all (0 when unknown)."""


class ModelStore:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> list[str]:
        try:
            return sorted(path.stem for path in self.folder.glob(f"*{_SUFFIX}") if path.is_file())
        except OSError:
            return []

    def path(self, name: str) -> Path | None:
        """The file of a model, if it is here."""
        if not _NAME.fullmatch(name):
            return None
        path = self._file(name)
        return path if path.is_file() else None

    def chosen(self) -> str | None:
        """The model that `portico model use` named, while it is here."""
        try:
            name = (self.folder / _CHOSEN).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return None
        return name if self.path(name) is not None else None

    def choose(self, name: str) -> None:
        if self.path(name) is None:
            raise NotFound(
                "model", name, f"Here are: {', '.join(self.names()) or 'none'}. Get one: portico model get NAME"
            )
        write_private(self.folder / _CHOSEN, f"{name}\n".encode())

    def make(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def draft(self, name: str) -> Path:
        """Where a download grows; it gets its name when it is whole and checked."""
        return self.folder / f"{check_name(name)}.part"

    def finish(self, name: str) -> Path:
        """The draft is whole: it becomes the model."""
        check_gguf(self.draft(name))
        path = self._file(name)
        self.draft(name).chmod(0o600)
        os.replace(self.draft(name), path)
        return path

    def add(self, name: str, source: Path, progress: Progress) -> Path:
        """Takes a copy of a file that the user has."""
        if self.path(name) is not None:
            raise AlreadyExists(f"There is a model {name!r} already; remove it first.")
        check_gguf(source)
        self.make()
        size, done = source.stat().st_size, 0
        with source.open("rb") as reader, self.draft(name).open("wb") as writer:
            while chunk := reader.read(CHUNK):
                writer.write(chunk)
                done += len(chunk)
                progress(done, size)
        return self.finish(name)

    def remove(self, name: str) -> None:
        path = self.path(name)
        if path is None:
            raise NotFound("model", name, f"Here are: {', '.join(self.names()) or 'none'}.")
        path.unlink()
        self.draft(name).unlink(missing_ok=True)

    def pin(self, name: str) -> str:
        """The SHA-256 of the first download of that name; empty before it."""
        return self._pins().get(check_name(name), "")

    def keep_pin(self, name: str, digest: str) -> None:
        pins = {**self._pins(), check_name(name): digest}
        write_private(self.pins_path, msgspec.json.format(msgspec.json.encode(pins)) + b"\n")

    @property
    def pins_path(self) -> Path:
        return self.folder / _PINS

    def _pins(self) -> dict[str, str]:
        try:
            return msgspec.json.decode(self.pins_path.read_bytes(), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            raise BadRequest(f"{str(self.pins_path)!r} cannot be read: {error}. Mend or delete it.") from error

    def room(self) -> int:
        """Free bytes on the disk."""
        self.make()
        return shutil.disk_usage(self.folder).free

    def _file(self, name: str) -> Path:
        return self.folder / f"{check_name(name)}{_SUFFIX}"


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise BadRequest(f"{name!r} cannot name a model: small letters, digits, '.', '-' and '_'.", field="name")
    return name


def check_gguf(path: Path) -> None:
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise BadRequest(f"{str(path)!r} cannot be read: {error.strerror}.", field="file") from error
    if magic != _MAGIC:
        raise BadRequest(f"{str(path)!r} is not a GGUF file.", field="file")


def checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
