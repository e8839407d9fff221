"""A session's folders: which there are, who has them, and what follows for agents."""

from pathlib import Path

import pytest

from portico.agents.agent import Message
from portico.errors import Conflict
from portico.host.host import Host
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.host.plays import idle


def made(tmp_path: Path, *names: str) -> list[str]:
    for name in names:
        (tmp_path / name).mkdir()
    return [str(tmp_path / name) for name in names]


async def test_a_fork_has_the_same_folders_and_an_unrelated_child_its_own(host: Host, tmp_path: Path) -> None:
    a, b, c = made(tmp_path, "a", "b", "c")
    session = await host.start(by="test", cwd=a, folders=[b, a, b])
    assert session.folders.reach() == [a, b]
    fork = await host.fork(session.id, by="test")
    child = await host.start(by="test", cwd=c, parent=session.id)
    assert (fork.folders.reach(), child.folders.reach()) == ([a, b], [c])
    await session.folders.add(c, by="test")
    assert fork.folders.reach() == [a, b, c]


async def test_an_agent_that_works_in_one_folder_is_given_one(open_host: HostOpener, tmp_path: Path) -> None:
    a, b = made(tmp_path, "a", "b")
    agent = PlayAgent(idle)
    host = await open_host(agent)
    with pytest.raises(Conflict, match="one folder"):
        await host.start(by="test", cwd=a, folders=[b])
    session = await host.start(by="test", cwd=a)
    with pytest.raises(Conflict, match="one folder"):
        await session.folders.add(b, by="test")
    await session.wait(await session.send(Message("hi"), by="test"))
    assert agent.openings[0].folders == [a]


async def test_they_are_there_again_after_a_restart(open_host: HostOpener, tmp_path: Path) -> None:
    a, b, c = made(tmp_path, "a", "b", "c")
    host = await open_host()
    session = await host.start(by="test", cwd=a, folders=[b])
    await session.folders.remove(b, by="test", replacement=c)
    await session.folders.choose(c, by="test")
    host = await open_host()
    again = host.find(session.id)
    assert again is not None
    assert (again.summary.folders, again.summary.folder_subset) == ([c], [c])
    assert again.folders.reach() == [c]
