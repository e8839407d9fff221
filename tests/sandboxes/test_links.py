"""Links that a confined program creates in a git folder: they are gone after a kill of the host, and git of the host
writes through none of them while they exist."""

import asyncio
import sys
from pathlib import Path

import pytest

from portico.features.sandboxes import feature as sandboxes
from portico.features.sandboxes import links
from portico.features.sandboxes.feature import Sandboxes
from portico.features.sandboxes.links import GitLinks
from portico.features.sandboxes.running import RunningSandbox
from portico.kernel.errors import Conflict, SandboxUnavailable
from portico.testing.fixtures import HostOpener
from tests.features import feature
from tests.sandboxes.test_host_git import IN_WORKTREES, PLACES, attacked, ground
from tests.sandboxes.test_later import git

__all__ = ["ground"]

HOST = """
import asyncio, os, sys
from pathlib import Path
from portico.kernel.log.sqlite import SqliteLog
from portico.server.compose import build_host
from portico.testing.play import PlayAgent
from tests.sandboxes.test_connections import Shell
from tests.sandboxes.test_running import output

async def main():
    log = await SqliteLog.open(Path(sys.argv[1]) / "log.db")
    host = await build_host(log, [Shell()])
    session = await host.start(by="test", cwd=sys.argv[2], config={"sandbox": "project"})
    await output(session, sys.argv[3])
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""
LINK = "ln -sf {target} .git/logs/HEAD"


async def killed(folder: Path, line: str) -> None:
    """A host is killed after a confined command."""
    command = [sys.executable, "-c", HOST, str(folder), str(folder / "main"), line]
    process = await asyncio.create_subprocess_exec(*command)
    assert await asyncio.wait_for(process.wait(), 60) == -9


async def test_a_link_is_removed_after_a_kill(open_host: HostOpener, ground: Path) -> None:
    """The links from before were read again after a kill of the host, so that one from the killed turn stayed."""
    secret, shared = ground / "bashrc", ground / "shared"
    secret.write_text("old\n")
    shared.mkdir()
    (ground / "main/.git/shared").symlink_to(shared)
    await killed(ground, LINK.format(target=secret))
    assert (ground / "main/.git/logs/HEAD").is_symlink()
    host = await open_host()
    await host.log.flush()
    assert not (ground / "main/.git/logs/HEAD").is_symlink()
    assert (ground / "main/.git/shared").is_symlink(), "the one of the user"
    assert await host.log.list_kv(sandboxes.LINKS) == {}
    git(ground / "main", "commit", "-q", "--allow-empty", "-m", "evil")
    assert secret.read_text() == "old\n"


async def test_links_that_the_user_makes_later_stay(open_host: HostOpener, ground: Path) -> None:
    host = await open_host()
    await attacked(host, ground, "main", "true")
    await open_host.close()
    (ground / "main/.git/shared").symlink_to(ground)
    await open_host()
    assert (ground / "main/.git/shared").is_symlink()


async def test_nothing_is_stored_for_a_sandbox_that_does_not_start(
    open_host: HostOpener, ground: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*arguments: object) -> None:
        raise SandboxUnavailable("it does not start")

    monkeypatch.setattr(RunningSandbox, "open", fails)
    host = await open_host()
    with pytest.raises(SandboxUnavailable):
        await attacked(host, ground, "main", "true")
    await host.log.flush()
    assert await host.log.list_kv(sandboxes.LINKS) == {}


@pytest.mark.parametrize("place", ["commit", "discard"])
async def test_git_of_the_host_writes_through_no_link(open_host: HostOpener, ground: Path, place: str) -> None:
    """Until the turn ends, the link is there, and git follows it in a repository of the user."""
    host = await open_host()
    secret = ground / "bashrc"
    secret.write_text("old\n")
    await attacked(host, ground, "main", LINK.format(target=secret))
    session = await host.start(by="test", cwd=str(ground / "main"), config={"sandbox": "off"})
    with pytest.raises(Conflict, match=r"'.*/main/.git/logs/HEAD' leads out of the git folder"):
        await PLACES[place](session, ground / "main")
    await PLACES["captures"](session, ground / "main")
    assert secret.read_text() == "old\n"
    for each in list(feature(host, Sandboxes)._running):
        await feature(host, Sandboxes).end(each)
    await PLACES[place](session, ground / "main")
    assert (secret.read_text(), (ground / "main/.git/logs/HEAD").is_symlink()) == ("old\n", False)


def test_many_files_hide_no_link(ground: Path) -> None:
    """The search ended after 20,000 files, so that a program could create more of them and then a link."""
    folder = ground / "main/.git"
    before = GitLinks.of([str(ground / "main")])
    many = [folder / "logs/many", folder / "a"]
    for each in many:
        each.mkdir()
        for number in range(11_000):
            (each / str(number)).touch()
    (folder / "logs/HEAD").unlink()
    (folder / "logs/HEAD").symlink_to(ground)
    (folder / "objects").rename(folder / "real")
    (folder / "objects").symlink_to(ground)
    assert sorted(before.new()) == [str(folder / "logs/HEAD"), str(folder / "objects")]


def test_the_search_ends(ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "LINKS_MAX", 3)
    (ground / "main/.git/refs/link").symlink_to(ground)
    assert GitLinks.of([str(ground / "main")]).before == {}


async def test_a_worktree_is_made_while_a_link_exists(open_host: HostOpener, ground: Path) -> None:
    """It is made confined, so it does not follow the link, and an agent does not stop the jobs of others with one."""
    host = await open_host()
    secret = ground / "bashrc"
    secret.write_text("old\n")
    await attacked(host, ground, "main", LINK.format(target=secret))
    session = await host.start(by="test", cwd=str(ground / "main"), config={"sandbox": "off"})
    await IN_WORKTREES["worktree"](session, ground / "main")
    assert secret.read_text() == "old\n"
