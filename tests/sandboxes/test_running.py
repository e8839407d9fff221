"""The life of a sandbox: shared by the commands of its session, and nothing is left when its session or host ends."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from portico.host.session import Session
from portico.sandbox.network import Destination, Network, Verdict
from portico.sandbox.policy import SYSTEM, Limits, Policy
from portico.sandboxes.feature import confine
from portico.sandboxes.running import PREFIX, RunningSandbox, remove_left
from portico.testing.fixtures import HostOpener
from portico.workspace.process import environment, run
from tests.workspace.living import gone, pids_in


class Closed:
    async def decide(self, target: Destination) -> Verdict:
        return Verdict(False, "policy", "no")

    def opened(self, target: Destination, by: str) -> None: ...

    def moved(self, target: Destination, sent: int, received: int) -> None: ...

    def refused(self, target: Destination, by: str) -> None: ...


async def output(session: Session, line: str) -> str:
    done = await run(line, policy=await confine(session), cwd=Path(session.state.cwd), env=environment())
    return done.output.strip()


async def test_commands_of_one_session_share_files_and_loopback(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    session = await host.start(by="test", cwd=str(tmp_path), config={"sandbox": "project"})
    other = await host.start(by="test", cwd=str(tmp_path), config={"sandbox": "project"})
    await output(session, "echo kept > /tmp/note; echo kept > ~/note")
    assert await output(session, "cat /tmp/note ~/note") == "kept\nkept"
    assert "No such file" in await output(other, "cat /tmp/note")
    spaces = [await output(each, "readlink /proc/self/ns/net") for each in (session, session, other)]
    assert spaces[0] == spaces[1] != spaces[2]
    assert os.readlink("/proc/self/ns/net") not in spaces


async def test_the_end_of_a_session_ends_its_sandbox(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    session = await host.start(by="test", cwd=str(tmp_path), config={"sandbox": "project"})
    policy = await confine(session)
    assert isinstance(policy, Policy)
    assert policy.joins is not None
    folder = Path(policy.joins.scratch).parent
    assert folder.is_dir()
    await session.close(by="test")
    async with asyncio.timeout(10):
        while folder.exists():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_a_forwarded_port_can_be_added(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    sandbox = await RunningSandbox.open(Network(), Closed(), 1 << 20)
    try:
        policy = sandbox.applied(Policy("project", str(tmp_path), "/root", read=SYSTEM))
        line = f"import socket; print(socket.create_connection(('127.0.0.1', {port}), 5).recv(9).decode())"
        command = ["/usr/bin/python3", "-c", line]
        before = await run(command, policy=policy, cwd=tmp_path, env=environment())
        await sandbox.allow(Network(ports=(port,)))
        after = await run(command, policy=policy, cwd=tmp_path, env=environment())
    finally:
        await sandbox.close()
        server.close()
    assert "refused" in before.output
    assert after.output.strip() == "hello"


async def test_the_disk_of_a_sandbox_is_limited(tmp_path: Path) -> None:
    sandbox = await RunningSandbox.open(Network(), Closed(), 1 << 20)
    try:
        policy = sandbox.applied(Policy("project", str(tmp_path), "/root", read=SYSTEM))
        line = "dd if=/dev/zero of=/tmp/x bs=64k count=100; dd if=/dev/zero of=/x bs=64k count=1"
        done = await run(line, policy=policy, cwd=tmp_path, env=environment())
    finally:
        await sandbox.close()
    assert "No space left" in done.output
    assert "Read-only file system" in done.output


FORKS = "import os, time\nfor _ in range(60):\n    os.fork() or time.sleep(2)"


@pytest.mark.parametrize(
    ("limits", "line", "words"),
    [
        (Limits(memory=64 << 20), "x = bytearray(200 << 20)", "MemoryError"),
        (Limits(files=64), "f = [open('/dev/null') for _ in range(200)]", "Too many open files"),
        (
            Limits(processes=20),
            "import os\nfor _ in range(60):\n    os.fork() or __import__('time').sleep(2)",
            "unavailable",
        ),
    ],
    ids=["memory", "descriptors", "processes"],
)
async def test_limits(tmp_path: Path, limits: Limits, line: str, words: str) -> None:
    if limits.processes and os.getuid() == 0:
        pytest.skip("the kernel does not limit the processes of root")
    sandbox = await RunningSandbox.open(Network(), Closed(), 1 << 20)
    try:
        policy = sandbox.applied(Policy("project", str(tmp_path), "/root", read=SYSTEM, limits=limits))
        done = await run(["/usr/bin/python3", "-c", line], policy=policy, cwd=tmp_path, env=environment())
    finally:
        await sandbox.close()
    assert words in done.output


HOST = """
import asyncio, sys
from pathlib import Path
from portico.sandbox.network import Network
from portico.sandbox.policy import Policy
from portico.sandboxes.running import RunningSandbox
from portico.workspace.process import environment, run

async def main():
    here = Path(sys.argv[1])
    sandbox = await RunningSandbox.open(Network(), None, 1 << 20)
    policy = sandbox.applied(Policy("project", str(here), "/root", read=("/usr", "/bin", "/lib", "/lib64")))
    line = "setsid sh -c 'exec sleep 98765' & echo started > mark; exec sleep 98765"
    await run(line, policy=policy, cwd=here, env=environment())

asyncio.run(main())
"""


async def test_nothing_is_left_after_the_host_was_killed(tmp_path: Path) -> None:
    host = await asyncio.create_subprocess_exec(sys.executable, "-c", HOST, str(tmp_path))
    async with asyncio.timeout(20):
        while not (tmp_path / "mark").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    below = descendants(host.pid)
    assert len(below) >= 5  # the holder and its relay, bubblewrap twice, two commands
    host.send_signal(signal.SIGKILL)
    await host.wait()
    for pid in below:
        await gone(pid)
    remove_left()
    assert not [name for name in os.listdir("/tmp") if name.startswith(f"{PREFIX}{host.pid}-")]


def descendants(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
    return [each for child in map(int, found) for each in (child, *descendants(child))]


async def test_a_cancelled_command_leaves_nothing(open_host: HostOpener, tmp_path: Path) -> None:
    host = await open_host()
    session = await host.start(by="test", cwd=str(tmp_path), config={"sandbox": "project"})
    running = asyncio.create_task(output(session, "(setsid sleep 98764 &); echo $$ > pids; exec sleep 98764"))
    await pids_in(tmp_path / "pids", 1)
    outside = descendants(os.getpid())
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await host.close()
    for pid in outside:
        await gone(pid)
