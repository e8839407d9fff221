"""Watches of the folders that clients look at, so that `_meta.git` and changesets stay current when a person, an editor
or another program changes a file.

A folder is watched while a client is subscribed to a session or to uncommitted changes there. The end of a turn
refreshes them in any case, also where a folder is too large to be watched.
"""

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from portico import limits
from portico.kernel.errors import PorticoError
from portico.workspace.changes import Changes
from portico.workspace.jail import Jail
from portico.workspace.watch import watch

if TYPE_CHECKING:
    from portico.doors.ahp.connection.broker import Broker

logger = logging.getLogger("portico.ahp")

_VIEWS = ("/uncommitted", "/branch")
_EXCLUDED = (
    *(f".git/{name}" for name in ("objects", "logs", "lfs", "modules", "refs/portico", "**/*.lock")),
    *(f"**/{name}" for name in ("node_modules", ".venv", "venv", "__pycache__", ".tox", ".mypy_cache", "target")),
)
"""Folders with many files that git ignores or that carry no news, and the files that our own captures write."""


class FolderWatches:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._running: dict[str, asyncio.Task[None]] = {}
        self._seen: dict[str, tuple[str, str]] = {}
        """By folder: the commit and the tree of the last refresh."""
        self._refreshing: dict[str, asyncio.Lock] = {}

    def check(self) -> None:
        """Start and stop watches after a subscription was added or removed."""
        wanted = self._wanted()
        for folder in [each for each in self._running if each not in wanted]:
            self._running.pop(folder).cancel()
            self._seen.pop(folder, None)
            self._refreshing.pop(folder, None)
        for folder in wanted:
            if folder not in self._running and len(self._running) < limits.WATCHED_FOLDERS:
                self._running[folder] = self._broker.host.own(self._follow(folder), f"ahp watch {folder}")

    def _wanted(self) -> set[str]:
        """Git folders with subscribers."""
        broker = self._broker
        views = [each.ident.partition("/")[0] for each in broker.heard("changeset") if each.ident.endswith(_VIEWS)]
        seen = [broker.host.find(ident) for ident in (*views, *(each.ident for each in broker.heard("session")))]
        folders = {session.summary.cwd for session in seen if session is not None}
        return {folder for folder in folders if broker.git_folders.get(folder)}

    async def _follow(self, folder: str) -> None:
        ready = asyncio.Event()
        try:
            async with self._refreshing.setdefault(folder, asyncio.Lock()):
                await self._is_new(folder)  # as the client sees it
            first = self._broker.host.own(self._check_again(folder, ready), f"ahp watch {folder} start")
            try:
                async for _ in watch(Jail([folder]), excludes=_EXCLUDED, ready=ready):
                    await self.refresh(folder)
                    await asyncio.sleep(limits.FOLDER_REFRESH_SECONDS)
            finally:
                first.cancel()
        except (PorticoError, OSError) as error:  # too large, or gone: turns refresh it as before
            logger.info("%s is not watched: %s", folder, error)

    async def _check_again(self, folder: str, ready: asyncio.Event) -> None:
        """Detect changes between the client's first snapshot and the start of the watch."""
        await ready.wait()
        await self.refresh(folder)

    async def refresh(self, folder: str) -> bool:
        """Show clients the folder as it is, if that is new. False: it is not watched."""
        if folder not in self._running:
            return False
        async with self._refreshing.setdefault(folder, asyncio.Lock()):
            await self._broker.folder_changed(folder, files=await self._is_new(folder))
        return True

    async def _is_new(self, folder: str) -> bool:
        """Whether the commit or the files differ from the last refresh. Ignored files do not count."""
        try:
            changes = await Changes.open(Path(folder))
            now = await changes.base(), (await changes.capture()).tree
        except (PorticoError, OSError):
            return False
        before, self._seen[folder] = self._seen.get(folder), now
        return before != now
