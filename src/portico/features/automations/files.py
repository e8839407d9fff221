"""Automations with a file trigger: one watch for each, and a start after the folder has been quiet."""

import asyncio
import os
from typing import TYPE_CHECKING

from portico.features.automations import events as ae
from portico.features.automations import hook as hooks
from portico.features.automations.decide import Cause
from portico.features.automations.plan import folder_of
from portico.features.automations.state import AutomationState
from portico.features.automations.triggers import overlap_of, watches_of
from portico.kernel.errors import PorticoError
from portico.workspace.jail import Jail
from portico.workspace.watch import watch

if TYPE_CHECKING:
    from portico.features.automations.automations import Automations

_AGAIN_SECONDS = 10.0
"""Retry delay for a folder that cannot be watched."""
_ECHO_SECONDS = 2.0
"""Changes are reported up to a second after they were made."""
_NAMED = 100
"""Maximum number of changed files in a prompt."""


class FileWatch:
    def __init__(self, automations: "Automations") -> None:
        self._all = automations
        self._tasks: dict[str, tuple[list[ae.FilesTrigger], list[asyncio.Task[None]]]] = {}
        self._ready: dict[str, list[asyncio.Event]] = {}

    def look_at(self, automation: str, state: AutomationState | None) -> None:
        """Start, change or stop the watch of an automation."""
        wanted = watches_of(state.plan) if state is not None and state.enabled else []
        watched, tasks = self._tasks.get(automation, ([], []))
        if watched == wanted:
            return
        for task in tasks:
            task.cancel()
        self._tasks.pop(automation, None)
        self._ready.pop(automation, None)
        if wanted:
            self._ready[automation] = [asyncio.Event() for _ in wanted]
            started = zip(wanted, self._ready[automation], strict=True)
            own = self._all.host.own
            self._tasks[automation] = (
                wanted,
                [own(self._watch(automation, files, ready), f"watch {automation}") for files, ready in started],
            )

    def close(self) -> "list[asyncio.Task[None]]":
        return [task for _, tasks in self._tasks.values() for task in tasks]

    async def ready(self, name: str) -> None:
        """Wait until its watches are active."""
        for each in self._ready[self._all.store.get(name).id]:
            await each.wait()

    async def _watch(self, automation: str, files: ae.FilesTrigger, ready: asyncio.Event) -> None:
        while True:
            try:
                await self._follow(automation, files, ready)
            except (PorticoError, OSError) as error:
                self._all.host.logger.warning("%s cannot watch %r: %s", automation, files.folder, error)
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _follow(self, automation: str, files: ae.FilesTrigger, ready: asyncio.Event) -> None:
        jail = Jail([folder_of(files.folder)])
        changed: dict[str, None] = {}
        during: list[str] = []
        """For each batch of changes: the run that was active."""
        quiet: asyncio.TimerHandle | None = None
        loop = asyncio.get_running_loop()

        def start() -> None:
            top = os.path.realpath(folder_of(files.folder))
            paths = [os.path.relpath(path, top) for path in changed]
            changed.clear()
            run = during[0] if all(during) else ""
            during.clear()
            self._all.host.own(self._start(automation, sorted(paths), run), f"files of {automation}")

        try:
            async for changes in watch(jail, includes=files.globs, excludes=files.excludes, ready=ready):
                during.append(self._run_before(automation))
                changed |= dict.fromkeys(change.path for change in changes)
                if quiet is not None:
                    quiet.cancel()
                quiet = loop.call_later(files.quiet, start)
        finally:
            if quiet is not None:
                quiet.cancel()

    def _run_before(self, automation: str) -> str:
        """With `overlap = "skip"`: the active run. It may itself have made the changes; a run for them would trigger
        another one, in an endless loop."""
        state = self._all.store.automations.get(automation)
        if state is None or overlap_of(state.plan) != "skip":
            return ""
        since = self._all.host.now() - _ECHO_SECONDS * 1000
        runs = reversed(self._all.store.runs_of(automation))
        return next((run.id for run in runs if run.status != "skipped" and (run.open or (run.ended or 0) > since)), "")

    async def _start(self, automation: str, paths: list[str], run: str) -> None:
        state = self._all.store.automations.get(automation)
        if state is None or not state.enabled or not self._all.lease.held():
            return
        told, refused = hooks.filled(state, {"files": paths[:_NAMED]}, "the names of changed files")
        if run:
            refused = f"{run} was not over when they changed (overlap = 'skip')."
        cause = Cause("files", self._all.host.now(), f"automation:{automation}", told, refused=refused)
        await self._all.claim_surely(state, cause)
