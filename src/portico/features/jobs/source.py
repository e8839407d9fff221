"""Where the entry comes from: a file that is read again when it changes, or the packaged demo."""

import logging
from pathlib import Path

from portico.features.jobs.demo import demo_entry
from portico.features.jobs.entry import Entry
from portico.features.jobs.legacy import Imported, import_file
from portico.kernel.errors import BadRequest

logger = logging.getLogger("portico.jobs")

NAMES = ("portico.entry.json", ".portico/entry.json")
_Stamp = tuple[int, int]


def find_entry(given: Path | None, cwd: Path) -> Path | None:
    """`--entry FILE`, else the project's own file; None means the demo."""
    if given is not None:
        return given.absolute()
    return next((cwd / name for name in NAMES if (cwd / name).is_file()), None)


class EntrySource:
    """The current entry of one file. A broken edit keeps the last good one and reports the error.

    `old`: the clients speak the API of 000, so the file is read as one of that time."""

    def __init__(self, path: Path | None, *, old: bool = False) -> None:
        self.path = path
        self._old = old
        self._stamp = self._look()
        self._last = self._read(path) if path is not None else None

    @property
    def _imported(self) -> Imported:
        if self._last is None:  # the demo: rarely used, and reading it delays the start
            self._last = Imported(demo_entry(), [])
        return self._last

    @property
    def name(self) -> str:
        return "the packaged demo entry" if self.path is None else str(self.path)

    @property
    def printed_names(self) -> dict[str, str]:
        return self._imported.printed_names

    def current(self, *, reload: bool) -> Entry:
        """With `reload` the file is read again if it changed; without, jobs are running on what was read last."""
        stamp = self._look() if reload else None
        if self.path is not None and stamp is not None and stamp != self._stamp:
            self._stamp = stamp
            try:
                self._last = self._read(self.path)
            except BadRequest as error:
                logger.warning("the entry stays as it was: %s", error.message)
        return self._imported.entry

    def _read(self, path: Path) -> Imported:
        imported = import_file(path, f"{path.name}:", old=self._old)
        for note in imported.notes:
            logger.warning("%s", note)
        return imported

    def _look(self) -> _Stamp | None:
        try:
            status = self.path.stat() if self.path is not None else None
        except OSError:
            return None
        return None if status is None else (status.st_mtime_ns, status.st_size)
