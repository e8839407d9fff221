"""What does a sandbox add to a command, and do fifty of them leave anything?"""

import asyncio
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.row import Row, ms, p50, verdict
from portico.features.sandboxes.running import PREFIX, RunningSandbox
from portico.sandbox.network import Destination, Network, Verdict
from portico.sandbox.policy import SYSTEM, Confinement, Limits, Policy, Unconfined
from portico.workspace.process import environment, run

COMMANDS, SANDBOXES = 50, 50
ADDED = 0.025
_MB = 1024 * 1024
IDLE_BYTES = 12 * _MB
_LIMITS = Limits(tmp=_MB, memory=1024 * _MB, processes=500)


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
    sandbox = await RunningSandbox.open(Network(), _Closed(), _LIMITS)
    policy = sandbox.applied(Policy("project", str(folder), str(folder / "home"), read=SYSTEM, limits=_LIMITS))
    inside: list[_Used] = []
    outside: list[_Used] = []
    try:
        for _ in range(COMMANDS):  # in alternation: the machine is busy to the same degree
            outside.append(await _used(folder, Unconfined("the baseline")))
            inside.append(await _used(folder, policy))
    finally:
        await sandbox.close()
    added = p50([each.wall for each in inside]) - p50([each.wall for each in outside])
    least = min(each.wall for each in inside) - min(each.wall for each in outside)
    cpu = p50([each.cpu for each in inside]) - p50([each.cpu for each in outside])
    # The target is about the time that a user waits. On a busy machine each of the four programs of a sandbox waits for
    # a processor as well: the least and the CPU time show this, they do not replace the target.
    bar = verdict(f"+{ADDED * 1000:g} ms", added <= ADDED)
    shown = f"+{ms(added)}, least +{ms(least)}, CPU +{ms(cpu)}, load {os.getloadavg()[0]:.0f}"
    with_it, without = (ms(p50([each.wall for each in many])) for many in (inside, outside))
    return Row("a command in a sandbox, p50", with_it, without, shown, bar)


class _Used(NamedTuple):
    wall: float
    cpu: float


async def _used(folder: Path, policy: Confinement) -> _Used:
    began, before = time.perf_counter(), _cpu()
    await run(["/bin/true"], policy=policy, cwd=folder, env=environment())
    return _Used(time.perf_counter() - began, _cpu() - before)


def _cpu() -> float:
    """Seconds of CPU that this process and its ended children have used."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


async def _many() -> Row:
    found = await asyncio.gather(*(RunningSandbox.open(Network(), _Closed(), _LIMITS) for _ in range(SANDBOXES)))
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
