"""Tokens, the keys of cookies and hooks, and automations.toml are files of a home; here all hosts have the same ones,
within two seconds.

What changed in this home since the last look goes to the database; else what the database has comes here.
"""

import logging
from pathlib import Path

from portico.events import HOST
from portico.home import stamp, write_private
from portico.log.log import Log

logger = logging.getLogger("portico.cluster")

AUTOMATIONS = "automations.toml"
NAMES = ("token", "tokens.json", "cookie-key", "hooks.key", AUTOMATIONS)
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
            if known and name == AUTOMATIONS:
                self._keep_copy(known)
            self._pull(name, known) if known else self._push(name)
        await self._log.flush()

    def _keep_copy(self, known: bytes) -> None:
        """A person wrote it."""
        path = self._folder / AUTOMATIONS
        if path.exists() and path.read_bytes() not in (known, b""):
            write_private(path.with_name(f"{AUTOMATIONS}.replaced"), path.read_bytes())
            logger.warning("%s is the one of the other hosts now; what was here is in %s.replaced", path, path.name)

    async def look(self) -> None:
        for name in NAMES:
            if stamp(self._folder / name) != self._stamps[name]:
                self._push(name)
            else:
                self._pull(name, await self._log.get_kv(HOST, _PREFIX + name))

    def _push(self, name: str) -> None:
        path, before = self._folder / name, self._stamps[name]
        self._stamps[name] = stamp(path)
        if path.exists():
            self._log.put_kv(HOST, _PREFIX + name, path.read_bytes())
        elif name == AUTOMATIONS and before is not None:
            self._log.put_kv(HOST, _PREFIX + name, b"")  # removed here is removed everywhere

    def _pull(self, name: str, data: bytes | None) -> None:
        path = self._folder / name
        if data is not None and (path.read_bytes() if path.exists() else b"") != data:
            write_private(path, data)
            self._stamps[name] = stamp(path)
