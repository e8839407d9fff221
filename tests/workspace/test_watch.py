"""Watching real folders."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from portico.kernel.errors import BadRequest, Forbidden, NotFound, TooLarge
from portico.workspace import watch as module
from portico.workspace.files import Files
from portico.workspace.jail import Jail
from portico.workspace.watch import PathChange, watch


class Seen:
    def __init__(self) -> None:
        self.changes: list[PathChange] = []
        self.news = asyncio.Event()

    async def until(self, *wanted: PathChange) -> None:
        async with asyncio.timeout(30):
            while not set(wanted) <= set(self.changes):
                self.news.clear()
                await self.news.wait()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "app"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("a")
    return folder


@asynccontextmanager
async def watching(root: Path, path: str = ".", **options: object) -> AsyncIterator[Seen]:
    seen = Seen()
    ready = asyncio.Event()

    async def follow() -> None:
        async for batch in watch(Jail([root]), path, ready=ready, **options):  # type: ignore[arg-type]
            seen.changes += batch
            seen.news.set()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(follow())
        await asyncio.wait_for(ready.wait(), 60)
        yield seen
        task.cancel()


async def test_tells_what_is_added_updated_and_deleted(root: Path) -> None:
    async with watching(root) as seen:
        (root / "sub/new.txt").write_text("")
        await seen.until(PathChange(str(root / "sub/new.txt"), "added"))
        (root / "a.txt").write_text("changed")
        await seen.until(PathChange(str(root / "a.txt"), "updated"))
        (root / "a.txt").unlink()
        await seen.until(PathChange(str(root / "a.txt"), "deleted"))


async def test_our_own_writes_show_one_file(root: Path) -> None:
    async with watching(root) as seen:
        await Files(Jail([root])).write("new.txt", b"x")
        (root / "last").write_text("")
        await seen.until(PathChange(str(root / "last"), "added"))
        assert {change.path for change in seen.changes} == {str(root / "new.txt"), str(root / "last")}


async def test_globs_choose(root: Path) -> None:
    async with watching(root, includes=["*.py", "last"], excludes=["sub/**"]) as seen:
        for name in ("x.py", "x.js", "sub/y.py", "last"):
            (root / name).write_text("")
        await seen.until(PathChange(str(root / "last"), "added"), PathChange(str(root / "x.py"), "added"))
        assert {Path(change.path).name for change in seen.changes} == {"x.py", "last"}


async def test_only_the_folder_itself_when_asked(root: Path) -> None:
    async with watching(root, recursive=False) as seen:
        (root / "sub/deep").write_text("")
        (root / "last").write_text("")
        await seen.until(PathChange(str(root / "last"), "added"))
        assert str(root / "sub/deep") not in {change.path for change in seen.changes}


async def test_a_single_file_also_when_it_is_replaced(root: Path) -> None:
    async with watching(root, "a.txt") as seen:
        (root / "other").write_text("")
        await Files(Jail([root])).write("a.txt", b"replaced")
        async with asyncio.timeout(30):
            await seen.news.wait()
        assert {change.path for change in seen.changes} == {str(root / "a.txt")}


async def test_what_lies_behind_links_is_not_told(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "out").symlink_to(outside)
    (root / "in").symlink_to("sub")
    async with watching(root) as seen:
        (outside / "secret").write_text("")
        (root / "sub/file").write_text("")
        (root / "last").write_text("")
        await seen.until(PathChange(str(root / "last"), "added"), PathChange(str(root / "sub/file"), "added"))
        names = {str(Path(change.path).relative_to(root)) for change in seen.changes}
        assert names <= {"last", "sub/file", "sub"}


async def test_folders_that_appear_are_watched_with_what_is_in_them(root: Path) -> None:
    async with watching(root) as seen:
        (root / "new/deep").mkdir(parents=True)
        (root / "new/deep/first").write_text("")
        await seen.until(PathChange(str(root / "new"), "added"), PathChange(str(root / "new/deep/first"), "added"))
        (root / "new/deep/later").write_text("")
        await seen.until(PathChange(str(root / "new/deep/later"), "added"))


async def test_a_link_to_everything_is_no_work(root: Path) -> None:
    """A recursive watcher would follow it and watch the whole machine."""
    (root / "everything").symlink_to("/")
    async with asyncio.timeout(60), watching(root) as seen:
        (root / "last").write_text("")
        await seen.until(PathChange(str(root / "last"), "added"))


async def test_excluded_folders_are_not_even_watched(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(5):
        (root / f"node_modules/{number}").mkdir(parents=True)
    monkeypatch.setattr(module, "FOLDERS_MAX", 2)
    with pytest.raises(TooLarge):
        await anext(watch(Jail([root])))
    for exclude in ("node_modules", "**/node_modules/**"):
        async with watching(root, excludes=[exclude]) as seen:
            (root / "node_modules/1/x").write_text("")
            (root / exclude.strip("*/")).touch()
            (root / f"last-{len(exclude)}").write_text("")
            await seen.until(PathChange(str(root / f"last-{len(exclude)}"), "added"))
            assert not any("node_modules/" in change.path for change in seen.changes)


async def test_refusals(root: Path) -> None:
    for path, error in (("..", Forbidden), ("/etc", Forbidden), ("missing", NotFound)):
        with pytest.raises(error):
            await anext(watch(Jail([root]), path))
    with pytest.raises(BadRequest):
        await anext(watch(Jail([root]), includes=["../*"]))
