"""What a killed host left running, and what is none of our business."""

import asyncio
import sys
from pathlib import Path

from portico.workspace.child import started
from portico.workspace.orphans import end_orphans
from tests.workspace.living import gone, pids_in

OWNER = """
import asyncio, sys
from pathlib import Path
from portico.workspace.process import environment, run
line = "(setsid sh -c 'echo $$ >> pids; exec sleep 1000' &) ; echo $$ >> pids; exec sleep 1000"
asyncio.run(run(line, cwd=Path(sys.argv[1]), env=environment()))
"""


async def test_only_what_a_dead_host_has_left_is_ended(tmp_path: Path) -> None:
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", OWNER, str(tmp_path))
    pids = await pids_in(tmp_path / "pids", 2)
    assert not set(pids) & set(end_orphans())
    assert all(started(pid) for pid in pids)
    owner.kill()
    await owner.wait()
    assert set(pids) <= set(end_orphans())
    for pid in pids:
        await gone(pid)
