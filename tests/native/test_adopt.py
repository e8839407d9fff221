"""Sessions of an agent's own program: listed, adopted with their history, continued on both sides."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import pytest

from portico.agents.acp import agent as acp_agent
from portico.agents.acp.agent import AcpAgent
from portico.features.client_servers.commands import ClientServer, SetServers
from portico.features.native.commands import AdoptSession, ContinueInTerminal, FindSessions
from portico.features.native.feature import UNCHECKED, UNKNOWN
from portico.kernel import commands as c
from portico.kernel.commands import Caller
from portico.kernel.errors import Conflict, Forbidden, NotFound
from portico.kernel.events import HistoryCopied, Message, SessionStarted, SessionVendor
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import Summary
from portico.testing.clock import FakeClock
from tests.agents.acp_agent import FAKE, said, steps
from tests.native.programs import AGENT, native_host, write

OWNER = Caller("owner", "owner", frozenset({"read", "drive", "approve", "admin"}))


async def adopt(host: Host, native: str, *, confirm: bool = False) -> Session:
    summary: Summary = await host.do(AdoptSession(agent=AGENT, native=native, confirm=confirm), OWNER)
    return await host.get(summary.id)


async def found(host: Host, **query: object) -> list[str]:
    pages = (await host.do(FindSessions(**query), OWNER)).agents  # type: ignore[arg-type]
    return [each.id for page in pages for each in page.sessions]


def messages(session: Session) -> list[str]:
    return [turn.message.text for turn in session.state.turns]


async def test_a_session_is_adopted_with_its_history(tmp_path: Path) -> None:
    write(tmp_path, "n1", "fix the bug", "and the test")
    async with native_host(tmp_path) as host:
        assert await found(host) == ["n1"]
        session = await adopt(host, "n1")
        state = session.state
        assert (state.vendor, state.title, state.cwd) == ("n1", "fix the bug", str(tmp_path / "work"))
        assert messages(session) == ["fix the bug", "and the test"]
        assert [said(turn) for turn in state.turns] == ["replayed", "replayed"]
        mark = {"imported": {"agent": AGENT, "session": "n1"}}
        assert [(turn.by, turn.outcome, turn.message.meta) for turn in state.turns] == 2 * [
            ("imported", "completed", mark)
        ]
        assert await found(host) == []
        records = await host.log.read(session.channel, 0)
        assert [type(each.event) for each in records] == [SessionStarted, HistoryCopied, SessionVendor]


async def test_the_next_message_continues_the_same_native_session(tmp_path: Path) -> None:
    write(tmp_path, "n1", "fix the bug")
    async with native_host(tmp_path) as host:
        session = await adopt(host, "n1")
        turn = await session.wait(await session.send(Message("go on"), by="test"))
        assert (turn.outcome, said(turn), session.state.vendor) == ("completed", "You said: go on", "n1")
    assert (tmp_path / "store" / "n1").read_text() == "fix the bug\ngo on\n"


async def test_adopting_again_returns_the_same_session(tmp_path: Path) -> None:
    write(tmp_path, "n1", "fix the bug")
    async with native_host(tmp_path) as host:
        first, second = await asyncio.gather(adopt(host, "n1"), adopt(host, "n1"))
        assert first is second
    async with native_host(tmp_path) as host:  # also after a restart
        assert (await adopt(host, "n1")).id == first.id
        assert len(host.list()) == 1


async def test_messages_of_the_program_are_imported_before_the_next_turn(tmp_path: Path) -> None:
    write(tmp_path, "n1", "one")
    async with native_host(tmp_path) as host:
        session = await adopt(host, "n1")
        await session.wait(await session.send(Message("two"), by="test"))
        write(tmp_path, "n1", "one", "two", "three in the terminal", ago=30)
        await session.wait(await session.send(Message("four"), by="test"))
        assert messages(session) == ["one", "two", "three in the terminal", "four"]
        assert len({part.id for turn in session.state.turns for part in turn.parts}) == 4
        write(tmp_path, "n1", "one", "two", "three in the terminal", "four", "five", ago=20)
        await adopt(host, "n1")  # adopting again imports as well
        assert messages(session)[-1] == "five"


async def test_messages_that_cannot_be_identified_are_reported_once(tmp_path: Path) -> None:
    write(tmp_path, "n1", "one", "two")
    async with native_host(tmp_path) as host:
        session = await adopt(host, "n1")
        write(tmp_path, "n1", "a summary of what was said", "three", ago=30)
        notices = []
        for text in ("four", "five"):
            turn = await session.wait(await session.send(Message(text), by="test"))
            await session.wait_until(lambda state: state.active is None)
            notices.append(said(session.state.turns[-1], "notice"))
            assert turn.outcome == "completed"
        assert notices == [UNKNOWN, ""]
        assert messages(session) == ["one", "two", "four", "five"]


async def test_a_session_that_was_started_here_is_not_found(tmp_path: Path) -> None:
    async with native_host(tmp_path) as host:
        session = await host.start(by="test", agent=AGENT, cwd=str(tmp_path / "work"))
        await session.wait(await session.send(Message("hello"), by="test"))
        assert await found(host) == []
        assert (await adopt(host, str(session.state.vendor), confirm=True)).id == session.id


async def test_an_open_session_needs_a_confirmation(tmp_path: Path) -> None:
    write(tmp_path, "n1", "fix the bug", ago=0)
    async with native_host(tmp_path) as host:
        (page,) = (await host.do(FindSessions(), OWNER)).agents
        assert [each.open for each in page.sessions] == [True]
        with pytest.raises(Conflict, match="open elsewhere"):
            await adopt(host, "n1")
        assert host.list() == []
        assert messages(await adopt(host, "n1", confirm=True)) == ["fix the bug"]


async def test_what_cannot_be_adopted(tmp_path: Path) -> None:
    write(tmp_path, "n1", "fix the bug")
    async with native_host(tmp_path) as host:
        with pytest.raises(NotFound, match="sessions found"):
            await adopt(host, "n2")
        with pytest.raises(NotFound, match="agent"):
            await host.do(AdoptSession(agent="acp:none", native="n1"), OWNER)
        colleague = Caller("ben", "ben", frozenset({"read", "drive", "approve"}), person="ben")
        for command in (FindSessions(), AdoptSession(agent=AGENT, native="n1")):
            with pytest.raises(Forbidden, match="owner"):
                await host.do(command, colleague)
        assert host.list() == []


async def test_lists_are_pages_and_are_cached_for_a_minute(tmp_path: Path) -> None:
    clock = FakeClock()
    write(tmp_path, "n1", "one")
    write(tmp_path, "n2", "two")
    write(tmp_path, "n3", "three")
    async with native_host(tmp_path, clock, FAKE_PAGE="2") as host:
        (page,) = (await host.do(FindSessions(), OWNER)).agents
        assert ([each.id for each in page.sessions], page.next) == (["n1", "n2"], "2")
        assert await found(host, agent=AGENT, cursor="2") == ["n3"]
        (tmp_path / "store" / "n1").unlink()
        assert await found(host) == ["n1", "n2"]
        clock.advance(61)
        assert await found(host) == ["n2", "n3"]
        assert await found(host, start=False) == ["n2", "n3"]
        clock.advance(61)
        assert await found(host, start=False) == []  # nothing is asked


async def test_an_agent_that_is_not_installed_is_not_started(tmp_path: Path) -> None:
    async with native_host(tmp_path) as host:
        host.agents[AGENT].program.command = [str(tmp_path / "missing")]  # type: ignore[attr-defined]
        (page,) = (await host.do(FindSessions(), OWNER)).agents
        assert (page.sessions, "is not on the PATH" in page.problem) == ([], True)


async def test_the_way_back_to_the_program(tmp_path: Path) -> None:
    write(tmp_path, "n1", "one")
    async with native_host(tmp_path) as host:
        session = await adopt(host, "n1")
        with pytest.raises(Conflict, match="no program"):
            await host.do(ContinueInTerminal(session=session.id), OWNER)
        host.agents[AGENT].program.command = ["claude-agent-acp"]  # type: ignore[attr-defined]
        line = await host.do(ContinueInTerminal(session=session.id), OWNER)
        assert line.command == f"cd {tmp_path / 'work'} && claude --resume n1"


async def test_imported_turns_cost_nothing_and_fork_as_others_do(tmp_path: Path) -> None:
    write(tmp_path, "n1", "one", "two")
    async with native_host(tmp_path) as host:
        session = await adopt(host, "n1")
        assert session.state.usage.cost == 0
        fork: Summary = await host.do(c.ForkSession(session=session.id), OWNER)
        assert fork.turns == 2


async def test_a_change_that_the_program_dates_like_the_last_turn_is_imported(tmp_path: Path) -> None:
    """The time and the number of messages were those of the last turn, so the message of the terminal was skipped."""
    write(tmp_path, "n1", "one")
    async with native_host(tmp_path, FAKE_COUNT="7") as host:
        as_codex(host, tmp_path)
        session = await adopt(host, "n1")
        await session.wait(await session.send(Message("two"), by="test"))
        await host.do(ContinueInTerminal(session=session.id), OWNER)
        changed = (tmp_path / "store" / "n1").stat().st_mtime
        write(tmp_path, "n1", "one", "two", "three in the terminal", ago=0)
        os.utime(tmp_path / "store" / "n1", (changed, changed))
        await session.wait(await session.send(Message("four"), by="test"))
        assert messages(session) == ["one", "two", "three in the terminal", "four"]


async def test_a_list_that_is_not_available_is_reported_in_the_turn(tmp_path: Path) -> None:
    write(tmp_path, "n1", "one")
    async with native_host(tmp_path) as host:
        session = await adopt(host, "n1")
        (tmp_path / "store" / "n1").rename(tmp_path / "n1")
        turn = await session.wait(await session.send(Message("two"), by="test"))
        assert UNCHECKED in said(session.state.turns[-1], "notice")
        assert turn.outcome == "completed"


def as_codex(host: Host, folder: Path) -> AcpAgent:
    """The fake agent as the program that locks the sessions that its process has loaded."""
    script = folder / "codex-acp"
    shutil.copy(FAKE, script)
    script.write_text(f"#!{sys.executable} -SE\n{script.read_text()}")
    script.chmod(0o755)
    agent = host.agents[AGENT]
    assert isinstance(agent, AcpAgent)
    agent.program.command = [str(script)]
    agent._shared = agent.supervise()
    return agent


async def test_codex_gets_changed_servers_in_a_new_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process keeps the servers with which it has loaded a session: calls of changed ones were unsupported."""
    monkeypatch.setattr(acp_agent, "_RELEASE_SECONDS", 0.2)
    async with native_host(tmp_path) as host:
        shared = as_codex(host, tmp_path)._shared
        session, other = [await host.start(by="test", agent=AGENT, cwd=str(tmp_path / "work")) for _ in range(2)]

        async def after(*servers: ClientServer) -> int:
            await host.do(SetServers(session=session.id, servers=list(servers)), Caller.inside("editor"))
            await session.wait(await session.send(Message("hi"), by="test"))
            return shared.starts

        one, two = (ClientServer(name="near", command=[sys.executable], env={"KEY": key}) for key in "ab")
        assert [await after(), await after(one), await after(one), await after(two), await after()] == [1, 2, 2, 3, 4]
        turn = await other.send(Message(steps(["text", "busy"], ["sleep", 60])), by="test")
        await other.wait_until(lambda state: bool(state.active and state.active.parts))
        assert await after(one) == 4
        ended = session.state.turns[-1]
        assert (ended.outcome, "changed MCP servers" in str(ended.error)) == ("failed", True)
        assert other.state.active is not None, "the other turn was not interrupted"
        await host.do(c.CancelTurn(session=other.id), OWNER)
        await other.wait(turn)
        await session.wait(await session.send(Message("again"), by="test"))
        assert (session.state.turns[-1].outcome, shared.starts) == ("completed", 5)


async def test_codex_has_no_process_with_the_session_after_the_way_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`codex resume` was refused: the shared process kept the lock, although the conversation was closed."""
    monkeypatch.setattr(acp_agent, "_RELEASE_SECONDS", 0.2)
    write(tmp_path, "n1", "one")
    async with native_host(tmp_path) as host:
        shared = as_codex(host, tmp_path)._shared
        session = await adopt(host, "n1")
        assert shared.starts == 1, "only the list: the history was read by a process that has ended"
        await session.wait(await session.send(Message("two"), by="test"))
        other = await host.start(by="test", agent=AGENT, cwd=str(tmp_path / "work"))
        turn = await other.send(Message(steps(["text", "busy"], ["sleep", 60])), by="test")
        await other.wait_until(lambda state: bool(state.active and state.active.parts))
        (pid,) = shared.pids
        with pytest.raises(Conflict, match="working in another session"):
            await host.do(ContinueInTerminal(session=session.id), OWNER)
        assert shared.pids == [pid], "the other turn was not interrupted"
        await host.do(c.CancelTurn(session=other.id), OWNER)
        await other.wait(turn)
        line = await host.do(ContinueInTerminal(session=session.id), OWNER)
        assert line.command.endswith("codex resume n1")
        assert shared.pids == []
