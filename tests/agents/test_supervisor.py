"""Deaths at every step, disobedience, and what a killed host leaves behind."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from portico.agents.process_registry import ProcessRegistry
from portico.agents.supervisor import agent_environment
from portico.features.folders.commands import AddFolder
from portico.kernel import limits
from portico.kernel.events import Message
from portico.kernel.session import Session
from portico.kernel.state import TurnState
from portico.testing.fixtures import HostOpener
from portico.workspace.child import started
from tests.agents.acp_agent import fake_agent, said, steps, waiting_approval
from tests.workspace.living import environ_of


async def turn_of(session: Session, prompt: str) -> TurnState:
    return await session.wait(await session.send(Message(prompt), by="test"))


@pytest.mark.parametrize("method", ["initialize", "session/new", "session/prompt"])
async def test_a_death_at_any_step_fails_the_turn_at_once(open_host: HostOpener, tmp_path: Path, method: str) -> None:
    host = await open_host(fake_agent(tmp_path, env={"FAKE_DIE": method}))
    session = await host.start(by="test", cwd=str(tmp_path))
    async with asyncio.timeout(30):
        turn = await turn_of(session, "hello")
    assert turn.error is not None
    assert turn.outcome == "failed"
    assert "exit code 3" in turn.error.message
    assert "I die now" in turn.error.message
    await host.close()
    assert list(ProcessRegistry(tmp_path).folder.glob("*")) == []


async def test_a_death_in_mid_turn_fails_it_and_the_next_turn_works(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host(fake_agent(tmp_path))
    session = await host.start(by="test", cwd=str(tmp_path))
    other = await host.start(by="test", cwd=str(tmp_path))
    assert (await turn_of(other, "hello")).outcome == "completed"
    turn = await turn_of(session, steps(["text", "so far"], ["die", 7]))
    assert turn.error is not None
    assert (turn.outcome, turn.error.code, said(turn)) == ("failed", "agent_died", "so far")
    assert (await turn_of(session, "hello")).outcome == "completed"
    assert (await turn_of(other, "again")).outcome == "completed"


async def test_a_death_ends_every_running_turn_of_the_process(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host(fake_agent(tmp_path))
    one = await host.start(by="test", cwd=str(tmp_path))
    pid = int(said(await turn_of(one, steps(["pid"]))))
    two = await host.start(by="test", cwd=str(tmp_path))
    turns = [await session.send(Message(steps(["text", "x"], ["hang"])), by="test") for session in (one, two)]
    for session in (one, two):
        await session.wait_until(lambda state: bool(state.active and state.active.parts))
    os.kill(pid, signal.SIGKILL)
    ended = [await session.wait(turn) for session, turn in zip((one, two), turns, strict=True)]
    assert [turn.error.code for turn in ended if turn.error] == ["agent_died", "agent_died"]
    assert "signal 9" in (ended[0].error.message if ended[0].error else "")


async def test_an_idle_death_costs_nothing(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host(fake_agent(tmp_path))
    session = await host.start(by="test", cwd=str(tmp_path))
    pid = int(said(await turn_of(session, steps(["pid"]))))
    os.kill(pid, signal.SIGKILL)
    await gone(pid)
    turn = await turn_of(session, "hello")
    assert (turn.outcome, said(turn)) == ("completed", "You said: hello")


async def test_a_closed_output_is_as_good_as_a_death(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host(fake_agent(tmp_path))
    session = await host.start(by="test", cwd=str(tmp_path))
    pid = int(said(await turn_of(session, steps(["pid"]))))
    turn = await turn_of(session, steps(["shut"]))
    assert turn.error is not None
    assert turn.error.code == "agent_died"
    assert (await turn_of(session, "hello")).outcome == "completed"
    await gone(pid)


async def test_who_ignores_a_cancel_is_replaced(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CANCEL_SECONDS", 0.1)
    host = await open_host(fake_agent(tmp_path, env={"FAKE_DEAF": "1"}))
    session = await host.start(by="test", cwd=str(tmp_path))
    pid = int(said(await turn_of(session, steps(["pid"]))))
    turn = await session.send(Message(steps(["text", "x"], ["hang"])), by="test")
    await session.wait_until(lambda state: bool(state.active and state.active.parts))
    await session.cancel(by="test")
    assert (await session.wait(turn)).outcome == "cancelled"
    await gone(pid)
    assert int(said(await turn_of(session, steps(["pid"])))) != pid


@pytest.mark.parametrize("end", ["turn", "kill", "close"])
async def test_a_replaced_process_ends_after_the_turns_of_other_sessions(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """The process of an agent that ignored a cancel was ended while a turn of another session ran in it."""
    monkeypatch.setattr(limits, "CANCEL_SECONDS", 0.1)
    host = await open_host(fake_agent(tmp_path, env={"FAKE_DEAF": "1"}))
    one, two = [await host.start(by="test", cwd=str(tmp_path)) for _ in range(2)]
    pid = int(said(await turn_of(one, steps(["pid"]))))
    waiting = await two.send(Message(steps(["pid"], ["permission", {}], ["text", " done"])), by="test")
    approval = await waiting_approval(two)
    turn = await one.send(Message(steps(["text", "x"], ["hang"])), by="test")
    await one.wait_until(lambda state: bool(state.active and state.active.parts))
    await one.cancel(by="test")
    assert (await one.wait(turn)).outcome == "cancelled"
    assert int(said(await turn_of(one, steps(["pid"])))) != pid
    assert started(pid) is not None
    if end == "turn":
        await two.approvals.answer(approval, by="test", allow=True)
        ended = await two.wait(waiting)
        assert (ended.outcome, said(ended)[: len(str(pid))], said(ended)[-5:]) == ("completed", str(pid), " done")
    elif end == "kill":
        os.kill(pid, signal.SIGKILL)
        ended = await two.wait(waiting)
        assert ended.error is not None
        assert ended.error.code == "agent_died"
    else:
        await host.close()
        assert list(ProcessRegistry(tmp_path).folder.glob("*.json")) == []
    await gone(pid)


async def test_a_stop_waits_for_the_turns_of_a_replaced_process(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "CANCEL_SECONDS", 0.1)
    agent = fake_agent(tmp_path, env={"FAKE_DEAF": "1"})
    host = await open_host(agent)
    one, two = [await host.start(by="test", cwd=str(tmp_path)) for _ in range(2)]
    pid = int(said(await turn_of(one, steps(["pid"]))))
    waiting = await two.send(Message(steps(["permission", {}])), by="test")
    approval = await waiting_approval(two)
    turn = await one.send(Message(steps(["text", "x"], ["hang"])), by="test")
    await one.wait_until(lambda state: bool(state.active and state.active.parts))
    await one.cancel(by="test")
    await one.wait(turn)
    assert int(said(await turn_of(one, steps(["pid"])))) != pid
    supervisor = agent._shared
    assert not await supervisor.stop(0)
    assert started(pid) is not None
    await two.approvals.answer(approval, by="test", allow=True)
    await two.wait(waiting)
    assert await supervisor.stop(30)
    assert supervisor.pids == []
    assert started(pid) is None


async def test_with_a_process_per_session_a_death_ends_one_and_a_release_ends_its_own(
    open_host: HostOpener, tmp_path: Path
) -> None:
    host = await open_host(fake_agent(tmp_path, settings={"process_per_session": True}))
    one, two = [await host.start(by="test", cwd=str(tmp_path)) for _ in range(2)]
    pids = [int(said(await turn_of(session, steps(["pid"])))) for session in (one, two)]
    assert pids[0] != pids[1]
    assert len(list(ProcessRegistry(tmp_path).folder.glob("*.json"))) == 2
    turn = await turn_of(one, steps(["die"]))
    assert turn.error is not None
    assert turn.error.code == "agent_died"
    assert int(said(await turn_of(two, steps(["pid"])))) == pids[1]
    again = int(said(await turn_of(one, steps(["pid"]))))
    assert again != pids[0]
    await host.delete(two.id, by="test")
    await gone(pids[1])
    assert started(again) is not None
    await host.close()
    assert started(again) is None
    assert list(ProcessRegistry(tmp_path).folder.glob("*.json")) == []


async def test_a_process_of_one_s_own_rests_and_a_failed_start_leaves_nothing(
    open_host: HostOpener, tmp_path: Path
) -> None:
    table = {"process_per_session": True, "idle_timeout": 0.4}
    host = await open_host(fake_agent(tmp_path, settings=table))
    session = await host.start(by="test", cwd=str(tmp_path))
    pid = int(said(await turn_of(session, steps(["pid"]))))
    await gone(pid)
    assert int(said(await turn_of(session, steps(["pid"])))) != pid
    host = await open_host(fake_agent(tmp_path, settings=table, env={"FAKE_DIE": "session/new"}))
    turn = await turn_of(await host.start(by="test", cwd=str(tmp_path)), "hello")
    assert turn.outcome == "failed"
    assert list(ProcessRegistry(tmp_path).folder.glob("*.json")) == []


@pytest.mark.parametrize("late", ["", "1"])
async def test_a_conversation_goes_on_after_a_restart_of_the_host(
    open_host: HostOpener, tmp_path: Path, late: str
) -> None:
    """Gemini answers `session/load` first and tells its history afterwards: it was shown as part of the next answer."""
    host = await open_host(fake_agent(tmp_path))
    session = await host.start(by="test", cwd=str(tmp_path))
    await turn_of(session, "remember me")
    host = await open_host(fake_agent(tmp_path, env={"FAKE_LATE": late}))
    session = await host.get(session.id)
    turn = await turn_of(session, "hello")
    assert said(turn) == "You said: hello"  # and not what the agent replays of its history
    store = tmp_path / "store" / (session.state.vendor or "")
    assert store.read_text().split("\n")[1:3] == ["remember me", "hello"]


async def test_a_process_that_nobody_uses_rests_until_the_next_turn(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host(fake_agent(tmp_path, settings={"idle_timeout": 0.4}))
    session = await host.start(by="test", cwd=str(tmp_path))
    busy = await session.send(Message(steps(["pid"], ["sleep", 0.8])), by="test")
    pid, vendor = int(said(await session.wait(busy))), session.state.vendor  # it was silent for longer, but not idle
    await gone(pid)
    turn = await turn_of(session, steps(["pid"]))
    assert int(said(turn)) != pid
    assert (turn.outcome, said(turn, "notice"), session.state.vendor) == ("completed", "", vendor)


async def test_an_agent_that_forgot_while_it_rested_is_told_everything(open_host: HostOpener, tmp_path: Path) -> None:
    """Also the turns since the conversation was opened."""
    host = await open_host(fake_agent(tmp_path, settings={"idle_timeout": 0.4}))
    session = await host.start(by="test", cwd=str(tmp_path))
    await turn_of(session, "remember me")
    (entry,) = ProcessRegistry(tmp_path).folder.glob("*.json")
    await gone(json.loads(entry.read_bytes())["pid"])
    (tmp_path / "store" / (session.state.vendor or "")).unlink()
    turn = await turn_of(session, "hello")
    assert "User: remember me" in said(turn)
    assert "began a new conversation" in said(turn, "notice")


CAN_FORK = {"loadSession": True, "sessionCapabilities": {"fork": {}, "close": {}}}


async def test_a_fork_is_the_agent_s_own_where_it_can(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host(fake_agent(tmp_path, env={"FAKE_CAPS": json.dumps(CAN_FORK)}))
    session = await host.start(by="test", cwd=str(tmp_path))
    first = await turn_of(session, "remember me")
    await turn_of(session, "and this")
    fork = await host.fork(session.id, by="test")
    turn = await turn_of(fork, "hello")
    assert (said(turn), said(turn, "notice")) == ("You said: hello", "")
    assert fork.state.vendor != session.state.vendor
    kept = (tmp_path / "store" / (fork.state.vendor or "")).read_text().split("\n")
    assert [line for line in kept if line] == ["remember me", "and this", "hello"]
    # From an earlier point it has to be told: the agent copies only what there is now.
    turn = await turn_of(await host.fork(session.id, by="test", turn=first.id), "hello")
    assert "User: remember me" in said(turn)
    assert "and this" not in said(turn)


async def test_folders_are_passed_on_to_an_agent_that_takes_them(open_host: HostOpener, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    able = {"loadSession": True, "sessionCapabilities": {"additionalDirectories": {}}}
    host = await open_host(fake_agent(tmp_path, env={"FAKE_CAPS": json.dumps(able)}))
    session = await host.start(by="test", cwd=str(tmp_path))
    assert json.loads(said(await turn_of(session, steps(["folders"])))) == []
    await session.do(AddFolder(session=session.id, folder=str(tmp_path / "other")), "test")
    assert json.loads(said(await turn_of(session, steps(["folders"])))) == [str(tmp_path / "other")]


async def test_an_agent_that_forgot_is_told_what_was_said(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host(fake_agent(tmp_path, env={"FAKE_STORE": ""}))
    session = await host.start(by="test", cwd=str(tmp_path))
    await turn_of(session, "remember me")
    host = await open_host(fake_agent(tmp_path, env={"FAKE_STORE": ""}))
    session = await host.get(session.id)
    turn = await turn_of(session, "hello")
    assert "User: remember me\nYou: You said: remember me" in said(turn)
    assert "began a new conversation" in said(turn, "notice")


async def test_the_end_of_a_host_ends_the_agent_and_its_children(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host(fake_agent(tmp_path))
    session = await host.start(by="test", cwd=str(tmp_path))
    pid = int(said(await turn_of(session, steps(["pid"]))))
    child = int(said(await turn_of(session, steps(["child"]))))
    assert len(list(ProcessRegistry(tmp_path).folder.glob("*.json"))) == 1
    await host.close()
    assert (started(pid), started(child)) == (None, None)
    assert list(ProcessRegistry(tmp_path).folder.glob("*.json")) == []


async def test_an_agent_is_alone_in_its_session_and_group(open_host: HostOpener, tmp_path: Path) -> None:
    """So that Ctrl-C at the host does not reach it, and a signal to its group reaches nobody else."""
    host = await open_host(fake_agent(tmp_path))
    session = await host.start(by="test", cwd=str(tmp_path))
    pid = int(said(await turn_of(session, steps(["pid"]))))
    assert os.getsid(pid) == os.getpgid(pid) == pid


async def test_what_an_agent_started_ends_with_it_also_when_nobody_asked_it_anything(
    open_host: HostOpener, tmp_path: Path
) -> None:
    host = await open_host(fake_agent(tmp_path))
    session = await host.start(by="test", cwd=str(tmp_path))
    pid = int(said(await turn_of(session, steps(["pid"]))))
    child = int(said(await turn_of(session, steps(["child"]))))
    os.kill(pid, signal.SIGKILL)
    await gone(child)


KILLED = """
import asyncio, sys
from pathlib import Path
from portico.kernel.events import Message
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.server.compose import build_host
from tests.agents.acp_agent import fake_agent, said, steps, waiting_approval

async def main():
    home = Path(sys.argv[1])
    host = await build_host(await SqliteLog.open(home / "log.db"), [fake_agent(home)])
    session = await host.start(by="test", cwd=str(home))
    for step in ("pid", "child"):
        print(said(await session.wait(await session.send(Message(steps([step])), by="test"))), flush=True)
    await session.send(Message(steps(["text", "x"], ["hang"])), by="test")
    await asyncio.sleep(1000)

asyncio.run(main())
"""


def test_a_killed_host_leaves_no_orphan_after_the_next_start(tmp_path: Path) -> None:
    """The agent ignores the end of its input here, as some do."""
    host = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert host.stdout is not None
    pids = [int(host.stdout.readline()) for _ in range(2)]
    assert ProcessRegistry(tmp_path).sweep() == []  # its host lives: `portico doctor` must not touch it
    os.kill(host.pid, signal.SIGKILL)
    host.wait()
    host.stdout.close()
    assert started(pids[1]) is not None
    fake_agent(tmp_path)
    assert [started(pid) for pid in pids] == [None, None]
    assert list(ProcessRegistry(tmp_path).folder.glob("*.json")) == []


def test_a_stranger_with_the_same_number_is_left_alone(tmp_path: Path) -> None:
    """The kernel reuses process numbers."""
    stranger = subprocess.Popen(["sleep", "100"])
    registry = ProcessRegistry(tmp_path)
    registry.register(stranger.pid, "0" * 32, "agent")
    path = next(registry.folder.glob("*.json"))
    text = path.read_text().replace(f'"started":"{started(stranger.pid)}"', '"started":"1"')
    path.write_text(text.replace(f'"host":{os.getpid()}', '"host":999999999'))
    try:
        assert registry.sweep() == []
        assert started(stranger.pid) is not None
    finally:
        stranger.kill()
        stranger.wait()


def test_an_agent_gets_no_secret_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTICO_TOKEN", "canary")
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "meant")
    env = agent_environment(["ANTHROPIC_API_KEY"], {"X": "y"})
    assert "canary" not in env.values()
    assert (env["ANTHROPIC_API_KEY"], env["X"]) == ("meant", "y")


LOGINS = ("GITHUB_TOKEN", "GH_TOKEN", "COPILOT_GITHUB_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "SSH_AUTH_SOCK")
KEYS = ("PORTICO_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")


async def test_an_agents_process_has_nobodys_login_and_no_key_of_another(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*LOGINS, *KEYS):
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("MY_KEY", "meant")
    host = await open_host(fake_agent(tmp_path, settings={"pass_env": ["MY_KEY"]}))
    session = await host.start(by="test", cwd=str(tmp_path))
    pid = int(said(await turn_of(session, steps(["pid"]))))
    environ = environ_of(pid)
    assert "MY_KEY=meant" in environ
    assert "canary" not in environ


async def gone(pid: int) -> None:
    """The kernel tells no event of a stranger's death."""
    async with asyncio.timeout(30):
        while started(pid) is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_flood_that_waits_in_the_pipe_arrives_whole_and_its_end_is_seen(
    open_host: HostOpener, tmp_path: Path
) -> None:
    """In a flood nobody reads for a moment: what was said before a death in that moment counts."""
    host = await open_host(fake_agent(tmp_path))
    session = await host.start(by="test", cwd=str(tmp_path))
    expected = "".join(f"{number} " for number in range(20_000))
    assert said(await turn_of(session, steps(["flood", 20_000]))) == expected
    turn = await turn_of(session, steps(["flood", 20_000], ["die", 7]))
    assert (turn.outcome, said(turn)) == ("failed", expected)
