"""The worktrees of a running workflow: one for the run, and one for each lane of an `each` or `parallel` with
`folder: worktree`. They are found by their place in the tree, so a restart continues in the same ones."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from portico.features.jobs import events as je
from portico.features.jobs.entry import Branches, Over, leaves_of
from portico.features.jobs.folders import (
    close_commit,
    close_folder,
    close_folders,
    commit_folder,
    folder_key,
    open_commit,
    open_folder,
)
from portico.features.jobs.state import BRANCH, JobState, up_from
from portico.features.jobs.step import FlowStep
from portico.features.jobs.work import ROOT, work_at
from portico.kernel.errors import PorticoError
from portico.workspace.worktree import Worktree

_NAME_CHARS = 60


class FlowFolders:
    def __init__(self, state: JobState, put: Callable[..., Awaitable[None]], branch: Callable[[], str]) -> None:
        self._state = state
        self._put = put
        self._branch = branch
        self._open: dict[str, Worktree] = {}
        self._commits: dict[str, Worktree] = {}
        """Folders of steps that work at a commit, by path."""
        self._lock = asyncio.Lock()

    @property
    def isolated(self) -> bool:
        flow = self._state.job.flow
        return flow is not None and flow.folder == "worktree"

    @property
    def is_open(self) -> bool:
        """Whether the run has a worktree."""
        return self.isolated and (ROOT in self._open or BRANCH in self._state.values.get(ROOT, {}))

    def place(self, path: str) -> str:
        """The place in the tree whose worktree a step works in: the nearest lane with one, or the run."""
        return next((each for each in up_from(path) if each == ROOT or self._has_own(each)), ROOT)

    def _has_own(self, path: str) -> bool:
        around, mark, _ = _split(path)
        if mark not in ("*", "."):
            return False
        work = work_at(self._state.job.work, around)
        return isinstance(work, Over | Branches) and work.folder == "worktree"

    async def tree(self, path: str) -> Worktree | None:
        """The worktree of a step, which is made if it does not exist; None: the user's folder."""
        if not self.isolated:
            return None
        async with self._lock:
            return await self._opened(self.place(path))

    async def _opened(self, place: str) -> Worktree:
        if (known := self._open.get(place)) is not None:
            return known
        summary = self._state.summary
        key = folder_key(summary.id, summary.started, *([] if place == ROOT else [place]))
        if place == ROOT:
            base = self._state.values.get(ROOT, {}).get(BRANCH, "HEAD")  # of the job that this one repeats
            tree = await _based(Path(summary.cwd), key, self._branch(), base)
            if base != tree.branch:
                await self._put(je.JobValue(path=ROOT, name=BRANCH, value=tree.branch))
        else:
            around = await self._opened(self.place(_split(place)[0]))
            base = await commit_folder(around, f"{summary.name}: before the lanes of {_split(place)[0]}")
            tree = await open_folder(Path(summary.cwd), key, f"{around.branch}-{key[-_NAME_CHARS:]}", base=base)
        self._open[place] = tree
        return tree

    async def folder(self, path: str) -> str:
        tree = await self.tree(path)
        return self._state.summary.cwd if tree is None else tree.folder

    async def commit(self, path: str, message: str) -> str:
        """Commit the changes of a step; empty in the user's folder."""
        tree = await self.tree(path)
        return "" if tree is None else await commit_folder(tree, message)

    async def at(self, path: str, commit: str, fresh: bool) -> Worktree:
        """The folder of a step that works at a commit. Other steps do not see it."""
        summary = self._state.summary
        key = folder_key(summary.id, summary.started, path, "at")
        tree = await open_commit(Path(summary.cwd), key, commit, within=await self.folder(path), fresh=fresh)
        self._commits[path] = tree
        return tree

    async def leave(self, path: str) -> None:
        """Remove the folder of a step that worked at a commit."""
        if (tree := self._commits.pop(path, None)) is not None:
            await close_commit(tree)

    async def close(self) -> None:
        """Commit what the run has left and remove its folder. The branch stays if it has commits."""
        summary = self._state.summary
        message = f"{summary.name}: changes at the end of {summary.id}"
        commits = any(isinstance(leaf, FlowStep) and leaf.at for leaf in leaves_of(self._state.job.work))
        if self.is_open or commits:
            await close_folders(Path(summary.cwd), folder_key(summary.id, summary.started), message)
        if not self.is_open:
            return
        tree = await self.tree(ROOT)
        assert tree is not None
        await commit_folder(tree, message)
        await close_folder(tree)

    def forget(self, place: str) -> None:
        """Called when the worktree of a lane was removed."""
        self._open.pop(place, None)


async def _based(checkout: Path, key: str, branch: str, base: str) -> Worktree:
    """Open a worktree at `base`, or at the checkout's commit if the repository no longer has it."""
    try:
        return await open_folder(checkout, key, branch, base=base)
    except PorticoError:
        if base == "HEAD":
            raise
        return await open_folder(checkout, key, branch)


def _split(path: str) -> tuple[str, str, str]:
    """The path around a lane, its mark and its number."""
    index = max(path.rfind(mark) for mark in ".*|#+")
    return (path[:index], path[index], path[index + 1 :]) if index > 0 else (path, "", "")
