"""A session's folders: which there are, who has them, and what follows for agents."""

import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from portico.agents.agent import Message
from portico.features.folders.commands import AddFolder, ChooseFolder, RemoveFolder
from portico.kernel.agent import AgentInfo, Capabilities
from portico.kernel.errors import Conflict, TurnInProgress
from portico.kernel.events import Record
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from tests.host.plays import hang, idle


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
    await session.do(AddFolder(session=session.id, folder=c), "test")
    assert fork.folders.reach() == [a, b, c]


async def test_an_agent_that_works_in_one_folder_is_given_one(open_host: HostOpener, tmp_path: Path) -> None:
    a, b = made(tmp_path, "a", "b")
    agent = PlayAgent(idle)
    host = await open_host(agent)
    with pytest.raises(Conflict, match="one folder"):
        await host.start(by="test", cwd=a, folders=[b])
    session = await host.start(by="test", cwd=a)
    with pytest.raises(Conflict, match="one folder"):
        await session.do(AddFolder(session=session.id, folder=b), "test")
    await session.wait(await session.send(Message("hi"), by="test"))
    assert agent.openings[0].folders == [a]


async def test_they_are_there_again_after_a_restart(open_host: HostOpener, tmp_path: Path) -> None:
    a, b, c = made(tmp_path, "a", "b", "c")
    host = await open_host()
    session = await host.start(by="test", cwd=a, folders=[b])
    await session.do(RemoveFolder(session=session.id, folder=b, replacement=c), "test")
    await session.do(ChooseFolder(session=session.id, folder=c), "test")
    host = await open_host()
    again = host.find(session.id)
    assert again is not None
    assert (again.summary.folders, again.summary.folder_subset) == ([c], [c])
    assert again.folders.reach() == [c]


# -- removed, with the conversations below ---------------------------------------------------------------------


async def family(host: Host, a: str, b: str) -> tuple[Session, Session, Session]:
    """A session in `a` with the folder `b`; a conversation that runs in `b`, and one that has chosen it."""
    root = await host.start(by="test", cwd=a, folders=[b])
    inside = await host.start(by="test", cwd=b, parent=root.id)
    chosen = await host.start(by="test", cwd=a, parent=root.id)
    await chosen.do(ChooseFolder(session=chosen.id, folder=b), "test")
    return root, inside, chosen


def folders_of(host: Host, *sessions: Session) -> list[tuple[str, list[str], list[str] | None]]:
    found = [host.find(each.id) for each in sessions]
    return [(each.summary.cwd, each.summary.folders, each.summary.folder_subset) for each in found if each is not None]


async def test_a_removal_that_is_cut_off_leaves_no_half(open_host: HostOpener, tmp_path: Path) -> None:
    """A host that was killed between the event and what followed from it left the folder to the conversation below.
    Every copy of the log after a commit of the removal has the folder everywhere or nowhere."""
    a, b, c = made(tmp_path, "a", "b", "c")
    host = await open_host()
    root, inside, chosen = await family(host, a, b)
    before = folders_of(host, root, inside, chosen)
    copies: list[Path] = []
    source = sqlite3.connect(open_host.path)

    def copy(records: Sequence[Record]) -> None:
        copies.append(tmp_path / f"copy-{len(copies)}")
        copies[-1].mkdir()
        with contextlib.closing(sqlite3.connect(copies[-1] / "log.db")) as target:
            source.backup(target)

    host.log.on_commit(copy)
    await host.log.flush()
    await root.do(RemoveFolder(session=root.id, folder=b, replacement=c), "test")
    after = folders_of(host, root, inside, chosen)
    source.close()
    assert after == [(a, [c], None), (c, [], None), (a, [], [c])]
    assert copies
    for folder in copies:
        opener = HostOpener(folder)
        again = await opener()
        assert folders_of(again, root, inside, chosen) in (before, after)
        await opener.close()
    assert folders_of(await open_host(), root, inside, chosen) == after


class InFolders(PlayAgent):
    async def describe(self) -> AgentInfo:
        return AgentInfo(self.id, "Play", capabilities=Capabilities(folders=True))


async def test_a_conversation_that_is_busy_in_the_folder_keeps_all_as_they_are(
    open_host: HostOpener, tmp_path: Path
) -> None:
    """The folder was taken from the session, and then the conversation refused to leave it."""
    a, b, c = made(tmp_path, "a", "b", "c")
    host = await open_host(InFolders(hang))
    root, inside, chosen = await family(host, a, b)
    before = folders_of(host, root, inside, chosen)
    with pytest.raises(Conflict, match="one there must be"):
        await root.do(RemoveFolder(session=root.id, folder=b), "test")
    await inside.send(Message("go"), by="test")
    with pytest.raises(TurnInProgress):
        await root.do(RemoveFolder(session=root.id, folder=b, replacement=c), "test")
    assert folders_of(host, root, inside, chosen) == before
    await inside.cancel(by="test")
    await root.do(RemoveFolder(session=root.id, folder=b, replacement=c), "test")
    assert folders_of(host, root, inside, chosen) == [(a, [c], None), (c, [], None), (a, [], [c])]


async def test_without_a_replacement_it_is_chosen_no_more(open_host: HostOpener, tmp_path: Path) -> None:
    a, b = made(tmp_path, "a", "b")
    host = await open_host(InFolders(idle))
    root = await host.start(by="test", cwd=a, folders=[b])
    chat = await host.start(by="test", cwd=a, parent=root.id)
    for session in (root, chat):
        await session.do(ChooseFolder(session=session.id, folder=b), "test")
    await root.do(RemoveFolder(session=root.id, folder=b), "test")
    assert folders_of(host, root, chat) == [(a, [], []), (a, [], [])]
