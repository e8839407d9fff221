"""What was learned about an agent when it last ran: it can be described without starting it."""

import logging
import time
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from portico import limits
from portico.server.home import stamp, write_private

F = TypeVar("F", bound=Struct)
logger = logging.getLogger("portico.agents")


class Problem(Struct):
    """Why an agent or an endpoint did not work, and when (seconds since the epoch). It expires: the reason is outside
    of the host, and nothing reports that it is gone."""

    text: str = ""
    at: float = 0.0

    @property
    def current(self) -> str:
        """Empty: there is none, or it is too old to decide anything. A clock that was set back makes it too old."""
        return self.text if 0 <= time.time() - self.at < limits.AGENT_FACT_SECONDS else ""

    @classmethod
    def now(cls, text: str) -> "Problem":
        return cls(text, time.time())


class FactsFile(Generic[F]):
    """`facts.json` in an agent's folder, or another name. One that cannot be read counts as none."""

    def __init__(self, folder: Path, kind: type[F], name: str = "facts.json") -> None:
        self._path = folder / name
        self._kind = kind
        self._latest: tuple[object, F] | None = None

    def latest(self) -> F:
        """Read again after another process has written it."""
        now = stamp(self._path)
        if self._latest is None or self._latest[0] != now:
            self._latest = now, self.read()
        return self._latest[1]

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
