"""A running sandbox: the process that holds its network and temporary files, and the listener for its connections.

Processes inside die with the host and are ended by their owners. A holder that dies takes the network with it, never
the confinement.
"""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from portico.kernel.errors import SandboxUnavailable
from portico.sandbox import cgroup, egress, relay
from portico.sandbox.available import check, check_image, program
from portico.sandbox.bubblewrap import BWRAP, holder
from portico.sandbox.container import removal
from portico.sandbox.network import PROXY_PORT, EgressGate, Network
from portico.sandbox.policy import Limits, Namespaces, Policy, Unconfined
from portico.workspace import adoption
from portico.workspace.child import environment

START_SECONDS = 30.0
"""It takes 50 ms; a busy machine needs longer."""
PREFIX = "portico-sandbox-"
_HOLDER = Unconfined("the holder of a sandbox: bubblewrap with a relay, which confines itself")
_WATCHDOG = Unconfined("removes the containers of a sandbox; fixed arguments")
_KINDS = ("user", "net", "mnt")


class RunningSandbox:
    """Created with `open`; always `close` it."""

    def __init__(self, network: Network, gate: EgressGate, limits: Limits) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        self._limits = limits
        self._egress = egress.Egress(self._folder / "egress.sock", network, gate)
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._files: list[int] = []
        self._ports: set[int] = set(network.ports)
        self._adding = asyncio.Lock()
        self.namespaces: Namespaces | None = None

    @classmethod
    async def open(cls, network: Network, gate: EgressGate, limits: Limits) -> "RunningSandbox":
        check()
        made = cls(network, gate, limits)
        try:
            await made._start()
        except BaseException:  # also a cancel: no process is left behind
            await made.close()
            raise
        return made

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def usable(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def egress(self) -> egress.Egress:
        return self._egress

    @property
    def network(self) -> Network:
        return self._egress.network

    def applied(self, policy: Policy) -> Policy:
        """The policy for a process that joins this sandbox."""
        assert self.namespaces is not None  # `open` has started it
        if policy.image and self._watchdog is None:
            self._watchdog = self._watch_containers(check_image(policy.image))
        return msgspec.structs.replace(policy, joins=self.namespaces)

    def _watch_containers(self, engine: str) -> "subprocess.Popen[bytes]":
        """Start the process that removes the containers of this sandbox when it is closed, or when the host has ended:
        containers do not end with the program that has started them."""
        line = f"cat; {removal(engine, str(self._folder / 'scratch'))}"
        return adoption.spawn(
            ["/bin/sh", "-c", line],
            policy=_WATCHDOG,
            cwd=Path("/"),
            env=environment(),
            reaper=False,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    async def allow(self, network: Network) -> None:
        """Use another policy for new connections, and forward its ports."""
        self._egress.network = network
        async with self._adding:
            for port in sorted(set(network.ports) - self._ports):
                await self._forward(port)

    async def _start(self) -> None:
        await self._egress.start()
        scratch = self._folder / "scratch"
        scratch.mkdir()
        info, theirs = os.pipe()
        network = self._egress.network
        try:
            self._process = adoption.spawn(
                [
                    *(program(BWRAP), *holder(str(scratch), str(self._folder), self._limits.tmp)),
                    *("--info-fd", str(theirs), "--"),
                    *(sys.executable, "-I", "-S", relay.__file__, "egress.sock", str(PROXY_PORT)),
                    *map(str, network.ports),
                ],
                policy=_HOLDER,
                cwd=self._folder,
                env=environment(),
                reaper=False,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=(theirs,),
                start_new_session=True,
            )
        finally:
            os.close(theirs)
        try:
            async with asyncio.timeout(START_SECONDS):
                answer = await self._answer()
        except TimeoutError:
            answer = b"it did not start in time"
        with os.fdopen(info, "rb") as found:
            child = found.read() if answer == b"ready" else b""
        if not child:
            raise SandboxUnavailable(f"The sandbox does not start: {await self._words(answer)}.")
        self._join(msgspec.json.decode(child)["child-pid"], str(scratch))

    def _join(self, child: int, scratch: str) -> None:
        """Open the namespaces. The files keep them, so that no other process can take the place of this pid."""
        opened = [os.open(f"/proc/{child}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in _KINDS]
        self._files = opened
        own = {os.stat(f"/proc/self/ns/{kind}").st_ino for kind in _KINDS}
        if any(os.fstat(each).st_ino in own for each in opened):
            raise SandboxUnavailable("The sandbox does not start: it has the namespaces of the host.")
        user, net, mount = (f"/proc/{os.getpid()}/fd/{each}" for each in opened)
        groups = cgroup.create(self._folder.name, self._limits)
        self.namespaces = Namespaces(user=user, net=net, mount=mount, scratch=scratch, groups=groups)

    async def _forward(self, port: int) -> None:
        if self._process is None or self._process.stdin is None:
            return
        self._process.stdin.write(f"{port}\n".encode())
        async with asyncio.timeout(START_SECONDS):
            answer = await self._answer()
        if answer != b"ok":
            raise SandboxUnavailable(f"The port {port} cannot be forwarded: {answer.decode(errors='replace')}.")
        self._ports.add(port)

    async def _answer(self) -> bytes:
        """Return one line of the relay; empty when it has ended."""
        assert self._process is not None  # it was started, with pipes
        assert self._process.stdout is not None
        readable = asyncio.Event()
        output, loop, line = self._process.stdout.fileno(), asyncio.get_running_loop(), b""
        loop.add_reader(output, readable.set)
        try:
            while not line.endswith(b"\n"):
                await readable.wait()
                readable.clear()
                if not (data := os.read(output, 200)):
                    break
                line += data
        finally:
            loop.remove_reader(output)
        return line.strip()

    async def _words(self, answer: bytes) -> str:
        process = self._process
        assert process is not None  # as above
        assert process.stderr is not None
        process.kill()
        said = await asyncio.to_thread(process.stderr.read, 2000)
        return (said or answer).decode(errors="replace").strip() or "it ended without a message"

    async def close(self) -> None:
        self._end()
        await self._egress.close()
        watchdog, self._watchdog = self._watchdog, None
        if watchdog is not None:
            await asyncio.to_thread(watchdog.communicate)
            adoption.forget(watchdog.pid)

    def _end(self) -> None:
        """End the process and remove what it had; without an await, so that a cancel leaves nothing behind."""
        for each in self._files:
            os.close(each)
        self._files = []
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()  # some milliseconds
            adoption.forget(process.pid)
            for pipe in (process.stdin, process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        cgroup.remove(self._folder.name)


def remove_left(folders: Iterable[Path] | None = None) -> None:
    """Remove the folders of sandboxes whose host was killed. They have no files: those were in memory."""
    for folder in folders if folders is not None else Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        with contextlib.suppress(OSError):
            if owner.isdigit() and adoption.status(int(owner)) is None and folder.lstat().st_uid == os.getuid():
                shutil.rmtree(folder)
    for name in cgroup.left(PREFIX):  # also those whose last process ended after their sandbox
        owner = name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdigit() and adoption.status(int(owner)) is None:
            cgroup.remove(name)
