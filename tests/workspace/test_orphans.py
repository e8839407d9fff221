"""What a killed host left running, and what is none of our business."""

import asyncio
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from portico.workspace.child import pid_namespace, started
from portico.workspace.orphans import end_orphans, orphans
from tests.workspace.living import gone, lines_in, pids_in

OWNER = """
import asyncio, sys
from pathlib import Path
from portico.sandbox.policy import Unconfined
from portico.workspace.process import environment, run
FREE = Unconfined("a test")
line = "(setsid sh -c 'echo $$ >> pids; exec sleep 1000' &) ; echo $$ >> pids; exec sleep 1000"
asyncio.run(run(line, policy=FREE, cwd=Path(sys.argv[1]), env=environment()))
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


UNSHARE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
HOST_IN_A_CONTAINER = """
import asyncio, os, sys
from pathlib import Path
from portico.sandbox.policy import Unconfined
from portico.workspace.process import environment, run
FREE = Unconfined("a test")
asyncio.run(run("echo $PORTICO_PROCESS > mark; exec sleep 1000", policy=FREE, cwd=Path(sys.argv[1]), env=environment()))
"""


def has_namespaces() -> bool:
    return shutil.which("unshare") is not None and subprocess.run([*UNSHARE, "true"], check=False).returncode == 0


@pytest.mark.skipif(not has_namespaces(), reason="no PID namespaces here")
async def test_a_live_host_in_another_pid_namespace_keeps_its_commands(tmp_path: Path) -> None:
    """Its number means nothing out here, so all that it ran counted as left by a dead host, and was killed."""
    container = await asyncio.create_subprocess_exec(*UNSHARE, sys.executable, "-c", HOST_IN_A_CONTAINER, str(tmp_path))
    try:
        [mark] = await lines_in(tmp_path / "mark", 1)
        inside = [pid for pid in marked(mark) if started(pid)]
        assert inside
        assert not set(inside) & set(orphans())
    finally:
        container.kill()
        await container.wait()


def marked(mark: str) -> list[int]:
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with suppress(OSError):
            found += [pid] if f"PORTICO_PROCESS={mark}".encode() in Path(f"/proc/{pid}/environ").read_bytes() else []
    return found


@pytest.mark.parametrize(
    ("mark", "expected"),
    [("{dead}.1.x.{here}", True), ("{dead}.1.x", True), ("{dead}.1.x.4026500000", False), ("{live}.x.{here}", False)],
    ids=["of a dead host", "of a dead host 0.1.0", "of another namespace", "of a live host"],
)
async def test_whose_mark_it_is(mark: str, expected: bool) -> None:
    live = f"{os.getpid()}.{started(os.getpid())}"
    said = mark.format(dead=2**22 + 1, here=pid_namespace(), live=live)
    child = await asyncio.create_subprocess_exec(
        "sleep", "1000", env={"PORTICO_PROCESS": said, "PATH": "/usr/bin:/bin"}
    )
    try:
        assert (child.pid in orphans()) is expected
    finally:
        child.kill()
        await child.wait()
