"""A worktree for one session: made with it, removed with it, and no work is ever lost."""

import shutil
from pathlib import Path

import pytest

from portico.kernel.commands import Isolation
from portico.kernel.errors import AlreadyExists, BadRequest, NotFound
from portico.kernel.events import Message
from portico.kernel.session import Session
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from portico.workspace.git import git
from tests.host.plays import idle

IDENTITY = ("-c", "user.name=A", "-c", "user.email=a@b.c")


@pytest.fixture
async def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    await git(folder, "init", "-q", "-b", "main")
    (folder / "src/a.txt").write_text("a\n")
    await commit(folder)
    return folder


async def commit(folder: Path) -> None:
    await git(folder, "add", "-A")
    await git(folder, *IDENTITY, "commit", "-q", "--no-gpg-sign", "-m", "work")


def place(session: Session) -> Path:
    return Path(session.state.cwd)


def write(session: Session, text: str) -> None:
    (place(session) / "new.txt").write_text(text)


async def branches(folder: Path) -> list[str]:
    return (await git(folder, "branch", "--list", "--format=%(refname:short)", "portico/*")).split()


async def test_it_comes_and_goes_with_the_session(open_host: HostOpener, project: Path) -> None:
    host = await open_host(PlayAgent(idle))
    session = await host.start(by="ada", cwd=str(project / "src"), worktree=Isolation())
    made = project.parent / "project.worktrees/session-1"
    assert session.state.cwd == str(made / "src")
    assert (session.state.worktree["path"], session.state.worktree["branch"]) == (str(made), "portico/session-1")
    await session.wait(await session.send(Message("hi"), by="ada"))
    host = await open_host(PlayAgent(idle))  # a restart knows it, too
    assert await host.delete(session.id, by="ada") == ""
    assert not made.exists()
    assert await branches(project) == []
    assert await git(project, "for-each-ref", "refs/portico") == ""


async def test_uncommitted_work_stays_and_is_told(open_host: HostOpener, project: Path) -> None:
    host = await open_host(PlayAgent(idle))
    session = await host.start(by="ada", cwd=str(project), worktree=Isolation("fix"))
    write(session, "not committed\n")
    said = await host.delete(session.id, by="ada")
    assert ("uncommitted work" in said, session.state.cwd in said) == (True, True)
    assert (place(session) / "new.txt").exists()
    assert not host.has(session.id)


async def test_commits_stay_on_their_branch(open_host: HostOpener, project: Path) -> None:
    host = await open_host(PlayAgent(idle))
    session = await host.start(by="ada", cwd=str(project), worktree=Isolation("fix"))
    write(session, "committed\n")
    await commit(place(session))
    assert await host.delete(session.id, by="ada") == "The branch 'portico/fix' has commits and stays."
    assert not place(session).exists()
    assert await branches(project) == ["portico/fix"]


async def test_forks_share_it_and_the_last_one_takes_it_along(open_host: HostOpener, project: Path) -> None:
    host = await open_host(PlayAgent(idle))
    session = await host.start(by="ada", cwd=str(project), worktree=Isolation())
    other = await host.start(by="ada", cwd=session.state.cwd, worktree=session.state.worktree)
    child = await host.fork(session.id, by="ada")
    assert child.state.cwd == session.state.cwd
    await host.delete(session.id, by="ada")
    assert place(other).is_dir()
    await host.delete(other.id, by="ada")
    assert not place(other).exists()


async def test_a_taken_number_gets_another_name_and_a_chosen_name_is_refused(
    open_host: HostOpener, project: Path
) -> None:
    await git(project, "branch", "portico/session-1")
    host = await open_host(PlayAgent(idle))
    session = await host.start(by="ada", cwd=str(project), worktree=Isolation())
    assert session.state.worktree["branch"].startswith("portico/session-1-")
    with pytest.raises(AlreadyExists):
        await host.start(by="ada", cwd=str(project), worktree=Isolation("session-1"))


async def test_what_cannot_be_made_leaves_nothing_behind(open_host: HostOpener, project: Path, tmp_path: Path) -> None:
    host = await open_host(PlayAgent(idle))
    with pytest.raises(NotFound, match="git init"):
        await host.start(by="ada", cwd=str(tmp_path), worktree=Isolation())
    with pytest.raises(BadRequest, match="no branch or commit"):
        await host.start(by="ada", cwd=str(project), worktree=Isolation(base="nowhere"))
    await host.start(by="ada", cwd=str(project), uri="a:/1")
    with pytest.raises(AlreadyExists):
        await host.start(by="ada", cwd=str(project), uri="a:/1", worktree=Isolation("twice"))
    assert await branches(project) == []
    assert not (tmp_path / "project.worktrees/twice").exists()
    assert len(host.list()) == 1


async def test_a_repository_that_is_gone_keeps_nobody_from_deleting(open_host: HostOpener, project: Path) -> None:
    host = await open_host(PlayAgent(idle))
    session = await host.start(by="ada", cwd=str(project), worktree=Isolation())
    shutil.move(project, project.parent / "elsewhere")
    assert "stays" in await host.delete(session.id, by="ada")
    assert not host.has(session.id)
