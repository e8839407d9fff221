"""Worktrees by real git."""

import os
from pathlib import Path

import pytest

from portico.kernel.errors import AlreadyExists, BadRequest, Conflict, NotFound
from portico.workspace import worktree
from portico.workspace.changes import Changes
from portico.workspace.git import git

from .test_changes import commit


def read(folder: str, name: str) -> str:
    return Path(folder, name).read_text()


def write(folder: str, name: str, text: str) -> None:
    Path(folder, name).write_text(text)


@pytest.fixture
async def repository(tmp_path: Path) -> Path:
    root = tmp_path / "app"
    (root / "src").mkdir(parents=True)
    await git(root, "init", "-q", "-b", "main")
    (root / "src/a").write_text("a\n")
    await commit(root)
    return root


async def test_a_session_works_beside_the_users_files(repository: Path, tmp_path: Path) -> None:
    (repository / "src/a").write_text("not committed\n")
    made = await worktree.create(repository / "src", "s1")
    assert made.folder == str(tmp_path / "app.worktrees/s1/src")
    assert read(made.folder, "a") == "a\n"
    assert made.branch == "portico/s1"
    write(made.folder, "a", "by the agent\n")
    assert (repository / "src/a").read_text() == "not committed\n"
    changes = await Changes.open(Path(made.folder))
    taken = await changes.capture("s1/1")
    assert [file.path for file in (await changes.between(made.base, taken.tree)).files] == ["a"]
    assert (await git(repository, "status", "--porcelain")).strip() == "M src/a"


async def test_removing_keeps_work(repository: Path) -> None:
    made = await worktree.create(repository, "s1")
    write(made.folder, "new", "x")
    with pytest.raises(Conflict, match="uncommitted"):
        await worktree.remove(made)
    await commit(Path(made.folder))
    await worktree.remove(made)
    assert "s1" not in os.listdir(repository.parent / "app.worktrees")
    assert "portico/s1" in await git(repository, "branch", "--list", "portico/*")


async def test_removing_leaves_nothing_when_nothing_was_done(repository: Path) -> None:
    made = await worktree.create(repository, "s1")
    write(made.folder, "new", "x")
    await worktree.remove(made, force=True)
    assert await git(repository, "branch", "--list", "portico/*") == ""
    assert len((await git(repository, "worktree", "list")).splitlines()) == 1
    await worktree.remove(made)  # a second time is fine


async def test_where_and_from_what(repository: Path, tmp_path: Path) -> None:
    first = (await git(repository, "rev-parse", "HEAD")).strip()
    (repository / "src/a").write_text("second\n")
    await commit(repository)
    made = await worktree.create(repository, "s1", base=first, place=tmp_path / "elsewhere")
    assert made.path == str(tmp_path / "elsewhere/s1")
    assert read(made.folder, "src/a") == "a\n"


async def test_refusals(repository: Path, tmp_path: Path) -> None:
    await worktree.create(repository, "s1")
    with pytest.raises(AlreadyExists):
        await worktree.create(repository, "s1")
    for name in ("../s2", "-f", "a b", "a..b", ""):
        with pytest.raises(BadRequest):
            await worktree.create(repository, name)
    for base in ("--force", "no-such-branch"):
        with pytest.raises(BadRequest):
            await worktree.create(repository, "s2", base=base)
    with pytest.raises(NotFound):
        await worktree.create(tmp_path, "s3")
    (tmp_path / "empty").mkdir()
    await git(tmp_path / "empty", "init", "-q")
    with pytest.raises(BadRequest, match="commit"):
        await worktree.create(tmp_path / "empty", "s4")
