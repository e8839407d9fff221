"""What does a sandbox add to a command, and do fifty of them leave anything?"""

import asyncio
import os
import tempfile
import time
from pathlib import Path

from bench.row import Row, ms, p50, verdict
from portico.sandbox.network import Destination, Network, Verdict
from portico.sandbox.policy import SYSTEM, Confinement, Policy, Unconfined
from portico.sandboxes.running import PREFIX, RunningSandbox
from portico.workspace.process import environment, run

COMMANDS, SANDBOXES = 50, 50
ADDED = 0.025
_MB = 1024 * 1024
IDLE_BYTES = 12 * _MB


class _Closed:
    async def decide(self, target: Destination) -> Verdict:
        return Verdict(False)

    def opened(self, target: Destination, by: str) -> None: ...

    def moved(self, target: Destination, sent: int, received: int) -> None: ...

    def refused(self, target: Destination, by: str) -> None: ...


def measure() -> list[Row]:
    return asyncio.run(_measure())


async def _measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        return [await _command(Path(name)), await _many()]


async def _command(folder: Path) -> Row:
    sandbox = await RunningSandbox.open(Network(), _Closed(), _MB)
    policy = sandbox.applied(Policy("project", str(folder), str(folder / "home"), read=SYSTEM))
    inside: list[float] = []
    outside: list[float] = []
    try:
        for _ in range(COMMANDS):  # in alternation: the machine is busy to the same degree
            outside.append(await _seconds(folder, Unconfined("the baseline")))
            inside.append(await _seconds(folder, policy))
    finally:
        await sandbox.close()
    added = p50(inside) - p50(outside)
    bar = verdict(f"+{ADDED * 1000:g} ms", added <= ADDED)
    return Row("a command in a sandbox, p50", ms(p50(inside)), ms(p50(outside)), f"+{ms(added)}", bar)


async def _seconds(folder: Path, policy: Confinement) -> float:
    began = time.perf_counter()
    await run(["/bin/true"], policy=policy, cwd=folder, env=environment())
    return time.perf_counter() - began


async def _many() -> Row:
    found = await asyncio.gather(*(RunningSandbox.open(Network(), _Closed(), _MB) for _ in range(SANDBOXES)))
    each = sum(_private(pid) for sandbox in found for pid in _tree(sandbox.pid)) / SANDBOXES
    await asyncio.gather(*(sandbox.close() for sandbox in found))
    left = [name for name in os.listdir(tempfile.gettempdir()) if name.startswith(f"{PREFIX}{os.getpid()}-")]
    held = each <= IDLE_BYTES and not left
    bar = verdict(f"{IDLE_BYTES // _MB} MB, nothing left", held)
    return Row(f"{SANDBOXES} idle sandboxes, each", f"{each / _MB:.1f} MB", "0 MB", f"{len(left)} left", bar)


def _tree(pid: int | None) -> list[int]:
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [*([pid] if pid else []), *(found for each in below for found in _tree(int(each)))]


def _private(pid: int) -> int:
    """Memory that the process does not share with others."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))
