"""What turns changed, for every agent: by real git, with nothing of the user's touched and no turn held up."""

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from portico import limits
from portico.features.changes import captures
from portico.features.changes.captures import OwnChanges
from portico.features.changes.component import FolderChanges, captures_of
from portico.kernel.errors import NotFound
from portico.kernel.events import Message
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import CHANGES, ChangeList
from portico.kernel.turn import Turn
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent
from portico.workspace.git import git, in_work_tree
from portico.workspace.process import environment, run
from tests.features import feature
from tests.free import FREE
from tests.host.plays import hang


@pytest.fixture
async def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    await git(folder, "init", "-q", "-b", "main")
    (folder / "old.txt").write_text("a line that is long enough to be recognised\n" * 5)
    await git(folder, "add", "-A")
    await git(folder, "-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-q", "--no-gpg-sign", "-m", "first")
    return folder


@pytest.fixture(autouse=True)
def regex_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not decide what these tests see."""
    monkeypatch.setattr(limits, "CAPTURE_SECONDS", 60)
    monkeypatch.setattr(limits, "CAPTURE_END_SECONDS", 60)


async def shell(message: Message, turn: Turn) -> None:
    """The message is a shell line that nobody is asked about."""
    call = turn.tool("shell", "{}")
    await turn.settled()
    await run(message.text, policy=FREE, cwd=Path(turn.session.state.cwd), env=environment())
    await call.end()


async def said(session: Session, text: str, turn: str | None = None) -> str:
    ident = await session.send(Message(text), by="ada", turn=turn)
    await session.wait(ident)
    return ident


def told(found: ChangeList) -> list[tuple[str, str, int, int]]:
    return [(each.status, each.path, each.added, each.removed) for each in found.files]


async def refs(folder: Path) -> list[str]:
    return (await git(folder, "for-each-ref", "--format=%(refname)", "refs/portico")).split()


async def test_turns_and_the_whole_session(open_host: HostOpener, project: Path) -> None:
    host = await open_host(PlayAgent(shell))
    session = await host.start(by="ada", cwd=str(project))
    (project / "staged.txt").write_text("staged\n")
    await git(project, "add", "staged.txt")
    staged = await git(project, "diff", "--cached")
    first = await said(session, "echo 1 > one.txt; printf 'a\\0b' > data.bin")
    (project / "mine.txt").write_text("a person wrote this between two turns\n")
    second = await said(session, "mv old.txt new.txt; echo 2 >> one.txt")
    assert told(await session.changes(first)) == [("added", "data.bin", 0, 0), ("added", "one.txt", 1, 0)]
    renamed = await session.changes(second)
    assert told(renamed) == [("renamed", "new.txt", 0, 0), ("modified", "one.txt", 1, 0)]
    assert renamed.files[0].old_path == "old.txt"
    names = [each.path for each in (await session.changes()).files]
    assert names == ["data.bin", "mine.txt", "new.txt", "one.txt"]
    assert [each.binary for each in (await session.changes()).files] == [True, False, False, False]
    assert await git(project, "diff", "--cached") == staged
    assert "portico" not in await git(project, "log", "--all", "--oneline", "--decorate")


async def test_the_diff_of_a_file_and_of_all(open_host: HostOpener, project: Path) -> None:
    host = await open_host(PlayAgent(shell))
    session = await host.start(by="ada", cwd=str(project))
    turn = await said(session, "mv old.txt new.txt; echo end >> new.txt; echo 1 > one.txt")
    diff = await session.diff("new.txt", turn)
    assert ("rename from old.txt" in diff, "+end" in diff, "one.txt" in diff) == (True, True, False)
    assert "one.txt" in await session.diff(turn=turn)
    assert await session.diff() == await session.diff(turn=turn)
    for path in ("old.txt", "../old.txt", "nothing", "-p", ""):
        with pytest.raises(NotFound, match="changed file"):
            await session.diff(path, turn)
    with pytest.raises(NotFound, match="turn"):
        await session.diff("new.txt", "t99")


async def test_a_diff_is_cut_at_its_limit(
    open_host: HostOpener, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = await open_host(PlayAgent(shell))
    session = await host.start(by="ada", cwd=str(project))
    await said(session, "seq 1 1000 > new.txt")
    whole = await session.diff()
    monkeypatch.setattr(limits, "DIFF_BYTES", len(whole.encode()))
    assert await session.diff() == whole
    monkeypatch.setattr(limits, "DIFF_BYTES", len(whole.encode()) - 1)
    assert await session.diff() == whole.removesuffix("+1000\n") + f"[... cut after {len(whole) - 1} bytes ...]\n"


async def test_a_running_turn_shows_what_it_has_done_so_far(open_host: HostOpener, project: Path) -> None:
    wrote, go_on = asyncio.Event(), asyncio.Event()

    async def play(message: Message, turn: Turn) -> None:
        await shell(message, turn)
        wrote.set()
        await go_on.wait()

    host = await open_host(PlayAgent(play))
    session = await host.start(by="ada", cwd=str(project))
    turn = await session.send(Message("echo 1 > one.txt"), by="ada")
    await wrote.wait()
    assert told(await session.changes(turn)) == [("added", "one.txt", 1, 0)]
    assert told(await session.changes()) == [("added", "one.txt", 1, 0)]
    go_on.set()
    await session.wait(turn)


async def test_an_approved_call_waits_for_the_capture_too(open_host: HostOpener, project: Path) -> None:
    async def play(message: Message, turn: Turn) -> None:
        call = turn.tool("shell", "{}")
        assert (await call.approve("shell", command="make")).allowed
        (project / "new.txt").write_text("x\n")
        await call.end()

    host = await open_host(PlayAgent(play))
    session = await host.start(by="ada", cwd=str(project), config={"approvals": "allow"})
    assert told(await session.changes(await said(session, "go"))) == [("added", "new.txt", 1, 0)]


async def test_words_do_not_wait_for_a_capture(open_host: HostOpener, project: Path) -> None:
    async with occupied(await open_host(PlayAgent(hang))) as host:
        session = await host.start(by="ada", cwd=str(project))
        turn = await session.send(Message("go"), by="ada")
        await session.wait_until(lambda state: bool(state.turns[0].parts))
        await session.cancel(by="ada", turn=turn)
    assert (await session.changes(turn)).files == []


async def test_a_capture_that_takes_too_long_is_given_up(
    open_host: HostOpener, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CAPTURE_SECONDS", 0.01)
    async with occupied(await open_host(PlayAgent(shell))) as host:
        session = await host.start(by="ada", cwd=str(project))
        monkeypatch.setattr(limits, "CAPTURE_END_SECONDS", 0.01)
        turn = await said(session, "echo 1 > one.txt")
    assert (project / "one.txt").exists()
    found = await session.changes(turn)
    assert (found.git, found.files) == (True, [])
    assert found.note == "The beginning of this turn was not captured."
    with pytest.raises(NotFound, match="not captured"):
        await session.diff("one.txt", turn)


@asynccontextmanager
async def occupied(host: Host) -> AsyncIterator[Host]:
    """A host that has no room for captures."""
    for _ in range(limits.CAPTURES):
        await feature(host, FolderChanges).slots.acquire()
    yield host
    for _ in range(limits.CAPTURES):
        feature(host, FolderChanges).slots.release()


async def test_without_git_nothing_is_known_and_nothing_is_started(open_host: HostOpener, tmp_path: Path) -> None:
    assert not in_work_tree(tmp_path)
    host = await open_host(PlayAgent(shell))
    session = await host.start(by="ada", cwd=str(tmp_path))
    turn = await said(session, "echo 1 > one.txt")
    assert await session.changes(turn) == ChangeList(git=False)
    with pytest.raises(NotFound, match="git init"):
        await session.diff("one.txt")
    with pytest.raises(NotFound, match="turn"):
        await session.changes("t99")


async def test_it_can_be_turned_off(open_host: HostOpener, project: Path) -> None:
    host = await open_host(PlayAgent(shell))
    feature(host, FolderChanges).enabled = False
    session = await host.start(by="ada", cwd=str(project))
    turn = await said(session, "echo 1 > one.txt")
    assert (await session.changes(turn)).note == "The beginning of this turn was not captured."
    assert await refs(project) == []


async def test_a_broken_repository_breaks_no_turn(open_host: HostOpener, tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    host = await open_host(PlayAgent(shell))
    session = await host.start(by="ada", cwd=str(tmp_path))
    turn = await said(session, "echo 1 > one.txt")
    assert session.state.turns[0].outcome == "completed"
    assert await session.changes(turn) == ChangeList(git=False)


async def test_captures_go_with_their_session_and_no_other(open_host: HostOpener, project: Path) -> None:
    host = await open_host(PlayAgent(shell))
    one, other = [await host.start(by="ada", cwd=str(project)) for _ in range(2)]
    await said(one, "echo 1 > one.txt")
    turn = await said(other, "echo 2 > two.txt")
    assert len(await refs(project)) == 8
    await host.delete(one.id, by="ada")
    assert len(await refs(project)) == 4
    assert told(await other.changes(turn)) == [("added", "two.txt", 1, 0)]
    await host.delete(other.id, by="ada")
    assert await refs(project) == []


async def test_another_home_with_the_same_numbers_is_another_session(
    open_host: HostOpener, project: Path, tmp_path: Path
) -> None:
    """The ids begin at one in every home folder: an older session-1 of the same project must not lend its captures."""
    host = await open_host(PlayAgent(shell))
    await said(await host.start(by="ada", cwd=str(project)), "echo 1 > one.txt")
    await open_host.close()
    open_host.path = tmp_path / "other.db"
    host = await open_host(PlayAgent(shell))
    session = await host.start(by="ada", cwd=str(project))
    await said(session, "echo 2 > two.txt")
    assert told(await session.changes()) == [("added", "two.txt", 1, 0)]


async def test_after_a_restart_it_is_all_still_known(open_host: HostOpener, project: Path) -> None:
    host = await open_host(PlayAgent(shell))
    session = await host.start(by="ada", cwd=str(project))
    odd = "a client's own id: 日本 / ../x"
    await said(session, "echo 1 > one.txt", odd)
    host = await open_host(PlayAgent(shell))
    session = await host.get(session.id)
    assert told(await session.changes(odd)) == [("added", "one.txt", 1, 0)]
    await said(session, "echo 2 > two.txt")
    assert told(await session.changes()) == [("added", "one.txt", 1, 0), ("added", "two.txt", 1, 0)]


async def test_a_resumed_turn_began_when_it_first_began(open_host: HostOpener, project: Path) -> None:
    async def play(message: Message, turn: Turn) -> None:
        """Writes and fails; the second time it writes and is done."""
        first = not (project / "one.txt").exists()
        await shell(Message(f"echo x > {'one' if first else 'two'}.txt"), turn)
        if first:
            raise NotFound("good end", "of the first try")

    host = await open_host(PlayAgent(play))
    session = await host.start(by="ada", cwd=str(project))
    turn = await said(session, "go")
    assert session.state.turns[0].outcome == "failed"
    await session.resume(by="ada")
    await session.wait(turn)
    assert told(await session.changes(turn)) == [("added", "one.txt", 1, 0), ("added", "two.txt", 1, 0)]


async def test_lists_show_how_much_changed_whoever_looks(open_host: HostOpener, project: Path) -> None:
    host = await open_host(PlayAgent(shell))
    session = await host.start(by="ada", cwd=str(project))
    await said(session, "echo one > new.txt; sed -i 1d old.txt")
    await session.wait_until(lambda state: CHANGES in state.client_data)
    counted = {"additions": 1, "deletions": 1, "files": 2}
    assert [each.changes for each in host.list()] == [counted]
    await said(session, "true")  # nothing new is no news
    host = await open_host(PlayAgent(shell))
    assert [each.changes for each in host.list()] == [counted]


# -- several sessions in one folder ------------------------------------------------------------------------------


async def test_what_another_session_changed_is_not_this_ones_own(open_host: HostOpener, project: Path) -> None:
    """Both saw the changes of both, and nothing said whose they were."""
    host = await open_host(PlayAgent(shell))
    one = await host.start(by="ada", cwd=str(project))
    await said(one, "echo 1 > mine.txt; mv old.txt renamed.txt")
    assert (await captures_of(one).own()) == OwnChanges()  # nobody else was there
    other = await host.start(by="ben", cwd=str(project))
    await said(other, "echo 2 > theirs.txt; echo 2 >> renamed.txt")
    await said(one, "echo 3 > again.txt")
    assert {each.path for each in (await one.changes(None)).files} == {
        "mine.txt",
        "renamed.txt",
        "theirs.txt",
        "again.txt",
    }
    assert await captures_of(one).own() == OwnChanges(True, ["again.txt", "mine.txt", "old.txt", "renamed.txt"])
    assert await captures_of(other).own() == OwnChanges(True, ["renamed.txt", "theirs.txt"])


async def test_a_running_turn_counts_as_far_as_it_got(open_host: HostOpener, project: Path) -> None:
    written, on = asyncio.Event(), asyncio.Event()

    async def play(message: Message, turn: Turn) -> None:
        await shell(message, turn)
        written.set()
        await on.wait()

    host = await open_host(PlayAgent(play))
    one, other = [await host.start(by="ada", cwd=str(project)) for _ in range(2)]
    on.set()
    await said(other, "echo 1 > theirs.txt")
    on.clear()
    written.clear()
    turn = await one.send(Message("echo 2 > mine.txt"), by="ada")
    await written.wait()
    assert await captures_of(one).own() == OwnChanges(True, ["mine.txt"])
    on.set()
    await one.wait(turn)


@pytest.mark.parametrize(
    ("folder", "speaks", "shared"),
    [
        (".", True, True),
        ("sub", True, True),  # inside of it
        ("..", True, True),  # around it
        ("../project-2", True, False),
        (".", False, False),  # it has done nothing there
    ],
)
async def test_who_works_in_the_folder_as_well(
    open_host: HostOpener, project: Path, folder: str, speaks: bool, shared: bool
) -> None:
    place = (project / folder).resolve()
    place.mkdir(exist_ok=True)
    host = await open_host(PlayAgent(shell))
    one, other = await host.start(by="ada", cwd=str(project)), await host.start(by="ada", cwd=str(place))
    await said(one, "echo 1 > mine.txt")
    if speaks:
        await said(other, "true")
    assert (await captures_of(one).own()).shared is shared


async def test_who_had_left_before_it_began_does_not_share(open_host: HostOpener, project: Path) -> None:
    clock = FakeClock()
    host = await open_host(PlayAgent(shell), clock=clock)
    await said(await host.start(by="ada", cwd=str(project)), "echo 1 > theirs.txt")
    clock.advance(60)
    one = await host.start(by="ada", cwd=str(project))
    await said(one, "echo 2 > mine.txt")
    assert await captures_of(one).own() == OwnChanges()


async def test_of_too_many_turns_nobody_knows(
    open_host: HostOpener, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(captures, "OWN_TURNS", 1)
    host = await open_host(PlayAgent(shell))
    one, other = [await host.start(by="ada", cwd=str(project)) for _ in range(2)]
    await said(other, "true")
    await said(one, "echo 1 > a")
    assert (await captures_of(one).own()).files == ["a"]
    await said(one, "echo 1 > b")
    assert await captures_of(one).own() == OwnChanges(True)


@pytest.fixture
def git_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The verbs of all git processes since the last call: a program called git before the real one on the PATH."""
    real, log, folder = shutil.which("git"), tmp_path / "calls", tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\necho "$*" >> "{log}"\nexec {real} "$@"\n')
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def taken() -> list[str]:
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        skipped = re.compile(r"(--no-pager|--literal-pathspecs|-c \S+) ")
        return [re.sub(skipped, "", line).split()[0] for line in lines]

    return taken


async def counted(host: Host) -> None:
    while running := host.tasks("capture "):
        await asyncio.wait(running)


async def test_a_turn_starts_few_processes_of_git(
    open_host: HostOpener, project: Path, git_calls: Callable[[], list[str]]
) -> None:
    """One turn that wrote one file started 21 processes."""
    host = await open_host(PlayAgent(shell))
    session = await host.start(by="ada", cwd=str(project))
    seen = []
    for line in ("echo 1 > one.txt", "echo 2 > one.txt", "true"):
        await said(session, line)
        await counted(host)
        seen.append(git_calls())
    assert seen == [
        ["ls-files", "write-tree", "ls-files", "update-index", "write-tree", "diff-tree"],
        ["ls-files", "ls-files", "update-index", "write-tree", "diff-tree"],
        ["ls-files", "ls-files", "diff-tree"],
    ]


async def test_the_files_of_finished_turns_are_read_without_git(
    open_host: HostOpener, project: Path, git_calls: Callable[[], list[str]]
) -> None:
    """An editor asks for every old turn of a session that it opens: 30 turns were 121 processes, each time."""
    host = await open_host(PlayAgent(shell))
    session = await host.start(by="ada", cwd=str(project))
    turns = [await said(session, line) for line in ("echo 1 > one.txt", "true", "mv one.txt two.txt")]
    await counted(host)
    git_calls()
    found = [told(await session.changes(turn)) for turn in turns]
    listed = [await captures_of(session).differences(turn) for turn in turns]
    assert git_calls() == []
    assert found == [[("added", "one.txt", 1, 0)], [], [("renamed", "two.txt", 0, 0)]]
    assert [[each.path for each in of.files] for of in listed if of] == [["one.txt"], [], ["two.txt"]]


async def test_the_files_of_a_resumed_turn_are_those_of_its_last_end(open_host: HostOpener, project: Path) -> None:
    async def play(message: Message, turn: Turn) -> None:
        """Writes and fails; the second time it does nothing."""
        if not (project / "one.txt").exists():
            await shell(Message("echo x > one.txt"), turn)
            raise NotFound("good end", "of the first try")

    host = await open_host(PlayAgent(play))
    session = await host.start(by="ada", cwd=str(project))
    turn = await said(session, "go")
    await counted(host)
    assert told(await session.changes(turn)) == [("added", "one.txt", 1, 0)]
    (project / "two.txt").write_text("a person\n")
    await session.resume(by="ada")
    await session.wait(turn)
    await counted(host)
    assert told(await session.changes(turn)) == [("added", "one.txt", 1, 0), ("added", "two.txt", 1, 0)]
