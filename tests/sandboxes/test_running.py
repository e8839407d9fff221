"""The life of a sandbox: shared by the commands of its session, and nothing is left when its session or host ends."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from portico.features.sandboxes.feature import confine
from portico.features.sandboxes.running import PREFIX, RunningSandbox, remove_left
from portico.kernel.session import Session
from portico.sandbox import cgroup
from portico.sandbox.launch import launch
from portico.sandbox.network import Destination, Network, Verdict
from portico.sandbox.policy import SYSTEM, Limits, Namespaces, Policy
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
    sandbox = await RunningSandbox.open(Network(), Closed(), Limits(tmp=1 << 20))
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
    sandbox = await RunningSandbox.open(Network(), Closed(), Limits(tmp=1 << 20))
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
    sandbox = await RunningSandbox.open(Network(), Closed(), limits)
    assert sandbox.namespaces is not None
    if limits.processes and os.getuid() == 0 and not sandbox.namespaces.groups:
        await sandbox.close()
        pytest.skip("the kernel limits the processes of root only with control groups, which are not available")
    try:
        policy = sandbox.applied(Policy("project", str(tmp_path), "/root", read=SYSTEM, limits=limits))
        done = await run(["/usr/bin/python3", "-c", line], policy=policy, cwd=tmp_path, env=environment())
    finally:
        await sandbox.close()
    assert words in done.output


async def test_the_limits_are_those_of_the_whole_sandbox(tmp_path: Path) -> None:
    """Ten processes of 30 MB each are within the limit of a process, and beyond that of the sandbox."""
    limits = Limits(memory=128 << 20, processes=64)
    sandbox = await RunningSandbox.open(Network(), Closed(), limits)
    assert sandbox.namespaces is not None
    if not sandbox.namespaces.groups:
        await sandbox.close()
        pytest.skip("control groups need root, and a file system for them that is writable")
    line = "x = bytearray(30 << 20); import time; time.sleep(1); print('alive')"
    try:
        policy = sandbox.applied(Policy("project", str(tmp_path), "/root", read=SYSTEM, limits=limits))
        command = ["/usr/bin/python3", "-c", line]
        many = (run(command, policy=policy, cwd=tmp_path, env=environment()) for _ in range(10))
        done = await asyncio.gather(*many)
        alone = await run(command, policy=policy, cwd=tmp_path, env=environment())
        # A process that its command has left behind ends with the sandbox.
        left = await run("sleep 54321 >/dev/null 2>&1 & echo $!", policy=policy, cwd=tmp_path, env=environment())
    finally:
        await sandbox.close()
    assert 0 < sum("alive" not in each.output for each in done) < 10
    assert alone.output.strip() == "alive"
    assert left.code == 0
    assert not [each for each in sandbox.namespaces.groups if Path(each).parent.exists()]


@pytest.mark.parametrize(
    ("limits", "version", "wanted"),
    [
        (Limits(), 1, {}),
        (Limits(), 2, {"": {}}),
        (Limits(memory=5), 1, {"memory": {"memory.limit_in_bytes": 5}}),
        (Limits(processes=7), 1, {"pids": {"pids.max": 7}}),
        (Limits(memory=5, processes=7), 2, {"": {"memory.max": 5, "memory.swap.max": 0, "pids.max": 7}}),
        (Limits(processes=7), 2, {"": {"pids.max": 7}}),
    ],
)
def test_the_files_of_control_groups(limits: Limits, version: int, wanted: dict[str, dict[str, int]]) -> None:
    assert cgroup.files(limits, version=version) == wanted


@pytest.mark.parametrize(
    ("limits", "options"),
    [
        (Limits(), []),
        (Limits(processes=7), ["--property", "TasksMax=7"]),
        (Limits(memory=5), ["--property", "MemoryMax=5", "--property", "MemorySwapMax=0"]),
    ],
)
def test_the_scope_of_an_ordinary_user(limits: Limits, options: list[str]) -> None:
    start = ["systemd-run", "--user", "--scope", "--quiet", "--collect"]
    assert cgroup.scope(limits) == ([*start, *options, "--"] if options else [])


@pytest.mark.parametrize("version", [1, 2])
def test_control_groups_that_cannot_be_created_are_left_out(tmp_path: Path, version: int) -> None:
    """As in a container, where the file system of control groups is read-only or has no controllers."""
    if version == 2:
        (tmp_path / "cgroup.controllers").write_text("cpu")
    assert cgroup.create("one", Limits(memory=5, processes=7), tmp_path) == ()
    assert cgroup.left("one", tmp_path) == []
    assert cgroup.entering(()) == []


def test_a_command_runs_in_a_scope_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "has_scopes", lambda: True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    joins = Namespaces("u", "n", "m", "/scratch")
    policy = Policy("project", str(tmp_path), "/root", limits=Limits(processes=7), joins=joins)
    with launch(["/bin/true"], policy, {}, str(tmp_path)) as found:
        assert found.command[: len(cgroup.scope(policy.limits))] == cgroup.scope(policy.limits)
        assert found.env["XDG_RUNTIME_DIR"] == "/run/user/1"
    inside = msgspec.structs.replace(policy, joins=Namespaces("u", "n", "m", "/scratch", ("/g/cgroup.procs",)))
    with launch(["/bin/true"], inside, {}, str(tmp_path)) as found:
        assert found.command[:4] == cgroup.entering(("/g/cgroup.procs",))


HOST = """
import asyncio, sys
from pathlib import Path
from portico.sandbox.network import Network
from portico.sandbox.policy import Limits, Policy
from portico.features.sandboxes.running import RunningSandbox
from portico.workspace.process import environment, run

async def main():
    here = Path(sys.argv[1])
    sandbox = await RunningSandbox.open(Network(), None, Limits(tmp=1 << 20))
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
    others = descendants(os.getpid())  # such as a server that all tests of this process share
    host = await open_host()
    session = await host.start(by="test", cwd=str(tmp_path), config={"sandbox": "project"})
    running = asyncio.create_task(output(session, "(setsid sleep 98764 &); echo $$ > pids; exec sleep 98764"))
    await pids_in(tmp_path / "pids", 1)
    outside = set(descendants(os.getpid())).difference(others)
    assert outside
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await host.close()
    for pid in outside:
        await gone(pid)
