"""Cancelling a turn ends every process that its running call started, whichever agent started it."""

import asyncio
from pathlib import Path

import pytest

from portico.kernel.events import Message
from portico.testing.model import ModelServer
from tests.agents.acp_agent import calls
from tests.live.host import agent_of, hosting, script
from tests.live.programs import LIVE, Live
from tests.live.test_acp import TITLES
from tests.workspace.living import alive, gone

pytestmark = pytest.mark.live
SECONDS = 90.0


def running(text: str) -> list[int]:
    """The processes with this text in their command line."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:  # it has just ended
            continue
        if text in words and alive(int(path.parent.name)):
            found.append(int(path.parent.name))
    return found


@pytest.mark.parametrize("live", LIVE, ids=lambda live: live.name)
async def test_cancel_ends_what_the_running_call_started(live: Live, tmp_path: Path) -> None:
    """Codex left it running: `tail -f` was alive 30 seconds later, in a call that was recorded as cancelled."""
    (work := tmp_path / "work").mkdir()
    (log := work / "log").touch()
    command = f"tail -f {log}"
    async with ModelServer(TITLES) as model, hosting(tmp_path, agent_of(tmp_path, live, model.url)) as host:
        session = await host.start(by="test", cwd=str(work), config={"approvals": "allow"})
        steps = script({"calls": [{"kind": "execute", "args": {"command": command}}]}, {"say": "Ran."})
        turn = await session.send(Message(steps), by="test")
        async with asyncio.timeout(SECONDS):
            await session.wait_until(lambda state: bool(calls(state.active)))
            while not (found := running(command)):  # noqa: ASYNC110 - the kernel reports it to no one
                await asyncio.sleep(0.05)
            await session.cancel(by="test")
            ended = await session.wait(turn)
            async with asyncio.timeout(5):
                for pid in found:
                    await gone(pid)
        assert running(command) == []
        assert (ended.outcome, {call.outcome for call in calls(ended)}) == ("cancelled", {"cancelled"})
