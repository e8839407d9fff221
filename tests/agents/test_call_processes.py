"""Cancelling ends what the running call of an agent started, and nothing else of it."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from portico.agents.acp.call_processes import CallProcesses, runs
from portico.kernel.events import Message
from portico.testing.fixtures import HostOpener
from portico.workspace.adoption import status
from tests.agents.acp_agent import said, steps
from tests.agents.test_acp import start
from tests.workspace.living import alive, gone, pids_in


@pytest.mark.parametrize(
    ("argv", "command", "found"),
    [
        (["/bin/bash", "-lc", "tail -f log"], "tail -f log", True),
        (["tail", "-f", "log"], "tail -f log", True),
        (["/usr/bin/tail", "-f", "log"], "cd x && tail -f log", True),
        (["codex-linux-sandbox", "--policy", "x", "--", "bash", "-c", "tail -f log"], "tail -f log", True),
        (["tail", "-f", "my log"], 'tail -f "my log"', True),
        (["bash", "-c", "(\n  trap x EXIT\ntail -f log\n)\nexit"], "tail -f log", True),
        (["tail", "-f", "other"], "tail -f log", False),
        (["bash"], "bash build.sh && tail -f log", False),
        (["node", "server.js"], "tail -f log", False),
        (["sh"], "push", False),
        (["tail"], "", False),
        ([], "tail -f log", False),
    ],
)
def test_which_process_runs_a_command(argv: list[str], command: str, found: bool) -> None:
    assert runs(argv, command) is found


async def test_only_the_processes_of_the_call_end(tmp_path: Path) -> None:
    """An MCP server that was there, one that started in this turn, and another command stay; a daemon of the call that
    made a session of its own does not."""
    script = (
        "(exec sleep 1001) & echo $! > before; until [ -e go ]; do sleep 0.01; done\n"
        "bash -c 'setsid sleep 1002 & echo $! > daemon; sleep 1003 & wait' & echo $! > call\n"
        "sleep 1004 & echo $! > other; wait"
    )
    agent = await asyncio.create_subprocess_exec("bash", "-c", script, cwd=tmp_path, start_new_session=True)
    pids: dict[str, int] = {}
    try:
        (pids["before"],) = await pids_in(tmp_path / "before", 1)
        began = status(pids["before"])
        while began is not None and began.start >= CallProcesses(agent.pid)._since:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # the kernel counts in hundredths of a second
        processes = CallProcesses(agent.pid)
        (tmp_path / "go").touch()
        for name in ("daemon", "call", "other"):
            (pids[name],) = await pids_in(tmp_path / name, 1)
        await processes.end(["setsid sleep 1002 & echo $! > daemon; sleep 1003 & wait"])
        assert {name: alive(pid) for name, pid in pids.items()} == {
            "before": True,
            "daemon": False,
            "call": False,
            "other": True,
        }
        await CallProcesses(agent.pid).end(["sleep 1004"])
        assert alive(pids["other"]), "it started before the turn"
    finally:
        os.killpg(agent.pid, signal.SIGKILL)
        await agent.wait()


@pytest.mark.parametrize("done", [True, False], ids=["its call has ended", "its call runs"])
async def test_a_cancel_of_the_turn(open_host: HostOpener, tmp_path: Path, done: bool) -> None:
    """The agent leaves its command running when it is cancelled, as Codex did. What a call left behind that has ended
    (a development server) stays."""
    session = await start(open_host, tmp_path)
    call = {"toolCallId": "c", "title": "sleep", "kind": "execute", "rawInput": {"command": "sleep 1000"}}
    ended = [["update", "tool_call_update", {"toolCallId": "c", "status": "completed"}]] if done else []
    prompt = steps(["update", "tool_call", call], *ended, ["child"], ["sleep", 600])
    turn = await session.send(Message(prompt), by="test")
    async with asyncio.timeout(30):
        state = await session.wait_until(lambda state: state.active is not None and said(state.active) != "")
        assert state.active is not None
        pid = int(said(state.active))
        await session.cancel(by="test")
        assert (await session.wait(turn)).outcome == "cancelled"
        if done:
            assert alive(pid)
            os.kill(pid, signal.SIGKILL)
        await gone(pid)
