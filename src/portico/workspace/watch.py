"""Watches a folder and reports changes below it. Only folders inside the jail are watched.

The attack: a link to `/` in a project. A recursive watcher follows it, watches the whole machine and reports changes.
So this module selects the watched folders itself, without following links, and adds new ones when they appear.
Excluded folders are not watched at all, which makes watching a large project cheap.
"""

import asyncio
import os
import stat
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from portico.kernel.errors import BadRequest, Conflict, NotFound, PorticoError, TooLarge
from portico.workspace.atomic_write import TEMPORARY
from portico.workspace.glob import Glob
from portico.workspace.jail import Jail

STEP_MS = 50  # changes within it are batched; a save often causes three
WAIT_MS = 400  # maximum delay for a continuous stream of changes
LOOK_MS = 500  # how often a watcher's thread checks whether it should stop
BATCH_MAX = 1000  # changes in one batch; the checkout of another branch has more, and they follow in further batches
FOLDERS_MAX = 20_000  # Linux allows a user about 65,000 watches for all programs together

Kind = Literal["added", "updated", "deleted"]
_KINDS: dict[int, Kind] = {1: "added", 2: "updated", 3: "deleted"}


class PathChange(Struct, frozen=True):
    path: str  # canonical
    kind: Kind


async def watch(
    jail: Jail,
    path: str = ".",
    *,
    recursive: bool = True,
    includes: Sequence[str] = (),
    excludes: Sequence[str] = (),
    ready: asyncio.Event | None = None,
) -> AsyncIterator[list[PathChange]]:
    """Yield batches of changes until the caller stops. Globs are relative to `path`; excludes take precedence.

    `ready` is set when all later changes are reported. A file is watched through its folder, so it may be replaced.
    """
    scope = await asyncio.to_thread(_Scope, jail, path, recursive, includes, excludes)
    watcher = await _Watcher.start(await asyncio.to_thread(scope.folders, scope.top))
    if ready:
        ready.set()
    try:
        while True:
            batch = await watcher.news()
            fresh = await asyncio.to_thread(scope.fresh, batch)
            if fresh:
                # Start the new watcher before the old one stops, so that no change is missed.
                old, watcher = watcher, await _Watcher.start(await asyncio.to_thread(scope.folders, scope.top))
                batch += await asyncio.to_thread(scope.inside, fresh) + old.end()
            changes = await asyncio.to_thread(scope.keep, batch)
            for start in range(0, len(changes), BATCH_MAX):
                yield changes[start : start + BATCH_MAX]
    finally:
        watcher.end()


class _Watcher:
    """A separate thread that waits for the kernel: the shared threads are few, and a watch runs for a long time."""

    def __init__(self, folders: list[str]) -> None:
        self.folders = folders
        self.loop = asyncio.get_running_loop()
        self.started: asyncio.Future[None] = self.loop.create_future()
        self.stop = threading.Event()
        self.arrived = asyncio.Event()
        self.batch: list[PathChange] = []

    @classmethod
    async def start(cls, folders: list[str]) -> "_Watcher":
        watcher = cls(folders)
        threading.Thread(target=watcher._run, name="portico-watch", daemon=True).start()
        try:
            await watcher.started
        except BaseException:  # also a cancel: otherwise the thread would never stop
            watcher.end()
            raise
        return watcher

    async def news(self) -> list[PathChange]:
        await self.arrived.wait()
        self.arrived.clear()
        batch, self.batch = self.batch, []
        return batch

    def end(self) -> list[PathChange]:
        """Stop the thread and return the unread changes."""
        self.stop.set()
        return self.batch

    def _run(self) -> None:
        try:
            # The package's `watch` does not report when it is ready, and `awatch` uses a thread of the web server.
            from watchfiles._rust_notify import RustNotify

            with RustNotify(self.folders, False, False, 0, False, True) as notify:
                self._tell(self._ready, None)
                while not self.stop.is_set():
                    heard = notify.watch(WAIT_MS, STEP_MS, LOOK_MS, self.stop)
                    if isinstance(heard, set):
                        self._tell(self._add, [PathChange(path, _KINDS[kind]) for kind, path in heard])
        except ImportError:
            self._tell(self._ready, Conflict("Watching files needs the package 'watchfiles': pip install watchfiles"))
        except (OSError, RuntimeError) as error:
            self._tell(self._ready, Conflict(f"The system cannot watch this folder: {error}."))

    def _tell(self, function: object, value: object) -> None:
        assert callable(function)
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(function, value)

    def _ready(self, error: PorticoError | None) -> None:
        if self.started.done():
            return
        if error is None:
            self.started.set_result(None)
        else:
            self.started.set_exception(error)

    def _add(self, changes: list[PathChange]) -> None:
        self.batch += changes
        self.arrived.set()


class _Scope:
    """Selects the folders to watch and the changes to report."""

    def __init__(
        self, jail: Jail, path: str, recursive: bool, includes: Sequence[str], excludes: Sequence[str]
    ) -> None:
        self.jail = jail
        with jail.spot(path) as spot:
            if spot.status is None:
                raise NotFound("path", path)
            self.file = None if stat.S_ISDIR(spot.status.st_mode) else spot.path
            self.top = spot.path.parent if self.file else spot.path
        self.recursive = recursive and self.file is None
        self.includes = [Glob(one) for one in _checked(includes)]
        # `node_modules/**` includes the folder: a folder whose whole content is excluded need not be watched.
        self.excludes = [Glob(one.removesuffix("/**")) for one in _checked(excludes)]

    def folders(self, top: Path) -> list[str]:
        found: list[str] = []
        for folder, _ in self._walk(top):
            found.append(str(folder))
            if len(found) > FOLDERS_MAX:
                raise TooLarge(
                    f"More than {FOLDERS_MAX} folders below {str(top)!r}. Exclude some, such as 'node_modules'."
                )
        return found

    def fresh(self, batch: list[PathChange]) -> list[Path]:
        """Return the folders that were created."""
        if not self.recursive:
            return []
        new = (Path(change.path) for change in batch if change.kind == "added")
        return [path for path in new if not path.is_symlink() and path.is_dir() and not self._excluded(path)]

    def inside(self, fresh: list[Path]) -> list[PathChange]:
        """Return the files added to new folders before they were watched."""
        return [
            PathChange(str(folder / name), "added")
            for top in fresh
            for folder, names in self._walk(top)
            for name in names
        ]

    def keep(self, batch: list[PathChange]) -> list[PathChange]:
        return sorted(
            {change for change in batch if self._wants(Path(change.path))}, key=lambda one: (one.path, one.kind)
        )

    def _walk(self, top: Path) -> Iterator[tuple[Path, list[str]]]:
        """Yield folders with the names in them; links to folders are treated as files."""
        for folder, folders, files in os.walk(top):
            here = Path(folder)
            yield here, [*files, *folders]
            folders[:] = [name for name in folders if not self._excluded(here / name)]
            if not self.recursive:
                return

    def _excluded(self, path: Path) -> bool:
        name = path.relative_to(self.top).as_posix()
        return any(glob.matches(name) for glob in self.excludes)

    def _wants(self, path: Path) -> bool:
        if self.file is not None:
            return path == self.file
        if path.name.startswith(TEMPORARY) or path == self.top or not path.is_relative_to(self.top):
            return False
        if self._excluded(path):
            return False
        name = path.relative_to(self.top).as_posix()
        return (not self.includes or any(glob.matches(name) for glob in self.includes)) and self._is_direct(path)

    def _is_direct(self, path: Path) -> bool:
        """Whether a path is still inside the jail: a watched folder may have been replaced by a link."""
        try:
            return self.jail.resolve(path, follow=False) == path
        except (PorticoError, OSError):
            return False


def _checked(globs: Sequence[str]) -> Sequence[str]:
    if any(glob.startswith("/") or ".." in glob.split("/") for glob in globs):
        raise BadRequest("Globs of a watch are relative to its folder.", field="includes")
    return globs
