"""The core alone is a host: sessions run, every call asks, and what a room would do is refused with a reason."""

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from portico.features.terminals.commands import OpenTerminal
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.errors import BadRequest, Conflict, NotFound
from portico.kernel.events import Message
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.testing.play import PlayAgent
from tests.host.plays import allowed
from tests.host.test_approval import ask, said

ADA = c.Caller.inside("ada")
LOADED = """
import sys, portico.kernel.host, portico.kernel.log.sqlite
print([name for name in sys.modules if name.startswith("portico.") and name.split(".")[1] in sys.argv[1:]])
"""
ROOMS = ("features", "server", "agents", "doors", "cluster", "cli")


@pytest.fixture
async def bare(tmp_path: Path) -> AsyncIterator[Host]:
    log = await SqliteLog.open(tmp_path / "log.db")
    host = await Host.open(log, [PlayAgent(allowed)])
    yield host
    await host.close()
    await log.close()


def test_the_core_loads_no_room() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED, *ROOMS], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


async def test_a_call_asks_and_an_answer_is_remembered_for_itself(bare: Host) -> None:
    session, approval = await ask(bare)
    await bare.do(c.AnswerApproval(approval=approval.id, option="allow-session"), ADA)
    assert await said(session) == "yes: ada"
    await session.wait(await session.send(Message("again"), by="ada"))
    asked = [each for each in await bare.log.read(session.channel) if isinstance(each.event, e.ApprovalAsked)]
    assert (await said(session), len(asked)) == ("yes: policy", 1)


async def test_what_a_room_would_do_is_refused(bare: Host, tmp_path: Path) -> None:
    with pytest.raises(Conflict, match=r"terminal\.open"):
        await bare.do(OpenTerminal(cwd=str(tmp_path)), ADA)
    with pytest.raises(BadRequest, match="worktrees"):
        await bare.do(c.StartSession(cwd=str(tmp_path), worktree=True), ADA)
    session = await bare.start(by="ada", cwd=str(tmp_path))
    assert not (await session.changes()).git
    with pytest.raises(NotFound, match="captures no folders"):
        await session.diff()
