"""Tokens and the key of cookies are files of a home; here all hosts have the same ones, within two seconds.

What changed in this home since the last look goes to the database; else what the database has comes here.
"""

from pathlib import Path

from portico.events import HOST
from portico.home import stamp, write_private
from portico.log.log import Log

NAMES = ("token", "tokens.json", "cookie-key")
_PREFIX = "shared/"


class SharedFiles:
    def __init__(self, log: Log, folder: Path) -> None:
        self._log = log
        self._folder = folder
        self._stamps: dict[str, tuple[int, int] | None] = {}

    async def begin(self) -> None:
        """At the start: the database's, where it has them."""
        for name in NAMES:
            self._stamps[name] = stamp(self._folder / name)
            known = await self._log.get_kv(HOST, _PREFIX + name)
            self._pull(name, known) if known is not None else self._push(name)
        await self._log.flush()

    async def look(self) -> None:
        for name in NAMES:
            if stamp(self._folder / name) != self._stamps[name]:
                self._push(name)
            else:
                self._pull(name, await self._log.get_kv(HOST, _PREFIX + name))

    def _push(self, name: str) -> None:
        path = self._folder / name
        self._stamps[name] = stamp(path)
        if path.exists():
            self._log.put_kv(HOST, _PREFIX + name, path.read_bytes())

    def _pull(self, name: str, data: bytes | None) -> None:
        path = self._folder / name
        if data is not None and (not path.exists() or path.read_bytes() != data):
            write_private(path, data)
            self._stamps[name] = stamp(path)
