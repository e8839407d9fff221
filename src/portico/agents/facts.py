"""What was learned about an agent when it last ran: it can be described without starting it."""

import logging
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from portico.home import write_private

F = TypeVar("F", bound=Struct)
logger = logging.getLogger("portico.agents")


class FactsFile(Generic[F]):
    """`facts.json` in an agent's folder. One that cannot be read counts as none."""

    def __init__(self, folder: Path, kind: type[F]) -> None:
        self._path = folder / "facts.json"
        self._kind = kind

    def read(self) -> F:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=self._kind)
        except FileNotFoundError:
            return self._kind()
        except (OSError, msgspec.DecodeError) as error:
            logger.warning("what was known about %s is not readable: %s", self._path.parent.name, error)
            return self._kind()

    def write(self, facts: F) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self._path, msgspec.json.encode(facts))
