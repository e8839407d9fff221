"""A host with one automation that is due at once, run as a process of its own and killed at a named point.

Arguments: a folder, and `prompt` or `job`. The clock stands still but for the step to the due time.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from portico.agents import script
from portico.agents.scripted import ScriptedAgent
from portico.kernel.log.sqlite import SqliteLog
from portico.server.compose import build_host
from portico.testing.clock import FakeClock
from tests.automation.playing import made, opened, pass_time, settle

START = 1_700_000_000.0
ACTIONS: dict[str, dict[str, Any]] = {
    "prompt": {"prompt": {"text": "[[say:done]]", "agent": "scripted"}},
    "job": {"job": {"job": "main"}},
}


def agent() -> ScriptedAgent:
    return ScriptedAgent(script.Provider("scripted", "Scripted"), [])


async def main(folder: Path, action: str) -> None:
    clock = FakeClock(START)
    log = await SqliteLog.open(folder / "log.db", clock=clock.time)
    host = await build_host(log, [agent()], clock)
    automations = await opened(host, folder, jobs=True)
    await made(automations, "once", schedule={"every": "1h"}, **ACTIONS[action])
    await pass_time(clock, 3600)
    await settle(automations, 1)
    await asyncio.gather(*automations.runs.tasks.values())
    await automations.close()
    await host.close()
    await log.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
