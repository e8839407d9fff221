"""Looking at real processes: who is still there."""

import asyncio
import os
import time
from pathlib import Path


def _state(pid: int) -> str:
    """The kernel's letter for what it does; X: there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "X"


def alive(pid: int) -> bool:
    return _state(pid) not in "ZX"


def environ_of(pid: int) -> str:
    """The kernel shows none for the moment in which a program takes the place of the one that started it."""
    deadline = time.monotonic() + 30
    while not (found := Path(f"/proc/{pid}/environ").read_bytes()) and time.monotonic() < deadline:
        time.sleep(0.001)
    return found.decode("utf-8", "replace")


async def asleep(pid: int) -> None:
    """Until it waits for something: a shell that has written its prompt, for a key."""
    async with asyncio.timeout(30):
        while _state(pid) != "S":  # noqa: ASYNC110  (the kernel tells nobody)
            await asyncio.sleep(0.01)


async def gone(pid: int) -> None:
    async with asyncio.timeout(30):
        while alive(pid):  # noqa: ASYNC110  (the kernel tells only the parent)
            await asyncio.sleep(0.01)


async def pids_in(file: Path, count: int) -> list[int]:
    """The process ids that a test's script has written down, once there are `count` of them."""
    return [int(pid) for pid in await lines_in(file, count)]


async def lines_in(file: Path, count: int) -> list[str]:
    async with asyncio.timeout(30):
        # Another process writes the file, and tells nobody.
        while len(found := _words(file)) < count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found


def _words(file: Path) -> list[str]:
    return file.read_text().split() if file.exists() else []


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
