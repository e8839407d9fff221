"""A program that forks twice and clears its environment lived on after its command. In processes of their own: the
tests' own process must adopt nobody."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from .living import gone, pids_in

LIVES = "echo $$ >> pids; trap '' HUP TERM; while :; do /bin/sleep 1; done"
DAEMON = f'(/usr/bin/env -i /usr/bin/setsid /bin/sh -c "{LIVES.replace("$", chr(92) + "$")}" &)'
SCRIPT = """
import asyncio, contextlib, sys
from pathlib import Path
from portico.workspace import adoption
from portico.sandbox.policy import Unconfined
from portico.workspace.process import environment, run
FREE = Unconfined("a test")

LINE, WAY = sys.argv[1:]
GOES_ON = "sleep 1000 & echo $! >> other; wait"

async def main():
    assert adoption.adopt()
    here = Path.cwd()
    other = asyncio.create_task(run(GOES_ON, policy=FREE, cwd=here, env=environment()))  # nobody's business but its own
    stranger = await asyncio.create_subprocess_exec("/bin/sleep", "1000")  # in our session, as a plugin has it
    ends = "while [ ! -s pids ]; do sleep 0.01; done"
    if WAY == "ends":
        await run(f"{LINE}; {ends}", policy=FREE, cwd=here, env=environment())
    elif WAY == "times out":
        await run(f"{LINE}; {ends}; exec sleep 1000", policy=FREE, cwd=here, env=environment(), timeout=2)
    else:
        task = asyncio.create_task(run(f"{LINE}; sleep 1000", policy=FREE, cwd=here, env=environment()))
        while not (here / "pids").exists() or not (here / "pids").read_text().strip():
            await asyncio.sleep(0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
    assert not other.done() and stranger.returncode is None
    print("others live", flush=True)
    stranger.kill()
    await stranger.wait()
    other.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await other

asyncio.run(main())
"""


CONCURRENT = """
import asyncio, sys
from pathlib import Path
from portico.workspace import adoption
from portico.sandbox.policy import Unconfined
from portico.workspace.process import environment, run

LINE = sys.argv[1]

async def command(line):
    return await run(line, policy=Unconfined("a test"), cwd=Path.cwd(), env=environment(), reaper=False)

async def main():
    assert adoption.adopt()
    waits = "while [ ! -s pids ]; do sleep 0.01; done; "
    first = asyncio.create_task(command(f"{LINE}; {waits} while [ ! -e end ]; do sleep 0.01; done"))
    await command(waits)  # begins before the orphan of the first one and ends after it
    pid = int(Path("pids").read_text().split()[0])
    print("lives" if adoption.status(pid) else "ended with another command", flush=True)
    Path("end").touch()
    assert (await first).code == 0

asyncio.run(main())
"""
MARKED = DAEMON.replace("/usr/bin/env -i ", "")


@pytest.mark.skipif(sys.platform != "linux", reason="subreapers are Linux's")
async def test_an_orphan_of_a_command_that_is_no_subreaper_ends_with_that_command_only(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CONCURRENT, MARKED]
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "lives\n"), done.stderr
    for pid in await pids_in(tmp_path / "pids", 1):
        await gone(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="subreapers are Linux's")
@pytest.mark.parametrize("way", ["ends", "times out", "is cancelled"])
async def test_what_forks_twice_and_clears_its_environment_ends_with_its_command(tmp_path: Path, way: str) -> None:
    command = [sys.executable, "-c", SCRIPT, DAEMON, way]
    done = await asyncio.to_thread(
        subprocess.run, command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "others live\n"), done.stderr
    for pid in await pids_in(tmp_path / "pids", 1):
        await gone(pid)
