"""Supervise the child processes that run models: started on demand, restarted after a crash, ended as a process group,
and ended after an idle period, because a model holds gigabytes."""

import asyncio
import importlib.util
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from portico.kernel.errors import AgentUnavailable
from portico.models.catalogue import known
from portico.models.serve import KEY, READY
from portico.sandbox.policy import Unconfined
from portico.workspace.child import Child, Outlet, environment

OURS = Unconfined("the server of a local model: a program of ours with a model of the user")
START_SECONDS = 120.0
"""Loading a few gigabytes from a slow disk."""
CONTEXT = 8192
"""Tokens for a model that we do not know: what most small ones were trained with."""
OUTPUT_BYTES = 16 * 1024
"""Bytes of a child's output that are kept for the error message when it dies."""


@dataclass(frozen=True)
class ServerAddress:
    url: str
    key: str
    context: int


class LocalServers:
    """One child per model in use."""

    def __init__(self) -> None:
        self._servers: dict[Path, LocalServer] = {}

    def server(self, name: str, path: Path) -> "LocalServer":
        return self._servers.setdefault(path, LocalServer(name, path))

    async def close(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers.values()))
        self._servers.clear()


class LocalServer:
    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path
        found = known(name)
        self._context = found.context if found else CONTEXT
        self._child: Child | None = None
        self._outlet: Outlet | None = None
        self._keeper: int | None = None
        self._address: ServerAddress | None = None
        self._said = bytearray()
        self._spoke = asyncio.Event()
        self._lock = asyncio.Lock()
        self._users = 0
        self._idle = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._unloading: asyncio.Task[None] | None = None

    async def address(self, idle: float = 0.0) -> ServerAddress:
        """Return its address; starts it if it is not running. After `idle` seconds without a request it is unloaded;
        0 means never."""
        self._idle = idle
        async with self._lock:
            self._rest()
            if self._address is None or self._child is None or self._child.process.poll() is not None:
                await self._end()
                self._address = await self._start()
            return self._address

    @contextmanager
    def using(self) -> Iterator[None]:
        """Keep the model loaded while a request waits for its answer."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            self._rest()

    @property
    def running(self) -> bool:
        return self._child is not None

    def _rest(self) -> None:
        """Restart the idle timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._idle > 0:
            self._timer = asyncio.get_running_loop().call_later(self._idle, self._tire)

    def _tire(self) -> None:
        self._timer = None
        if self._users == 0:
            self._unloading = asyncio.get_running_loop().create_task(self._unload(), name=f"unload {self._name}")

    async def _unload(self) -> None:
        async with self._lock:
            if self._users == 0 and self._timer is None:  # else a request arrived while we waited for the lock
                await self._end()

    async def close(self) -> None:
        if self._unloading is not None:
            await asyncio.wait({self._unloading})
        async with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            await self._end()

    async def _start(self) -> ServerAddress:
        if importlib.util.find_spec("xllamacpp") is None:
            raise AgentUnavailable(f"To run {self._name!r} install the extra: pip install 'portico[local]'")
        key = secrets.token_urlsafe(32)
        threads = max(1, (os.cpu_count() or 2) - 1)  # one is left for the host: it measured faster, too
        command = [sys.executable, "-P", "-m", "portico.models.serve"]
        command += [str(self._path), self._name, str(self._context), str(threads)]
        path = os.pathsep.join(each for each in sys.path if each)
        self._spawn(command, environment(PYTHONPATH=path, **{KEY: key}))
        try:
            async with asyncio.timeout(START_SECONDS):
                url = await self._ready()
        except TimeoutError:
            await self._end()
            raise AgentUnavailable(f"The model {self._name!r} did not start in {START_SECONDS:g} seconds.") from None
        except BaseException:  # also a cancel: no process is left behind
            await self._end()
            raise
        return ServerAddress(f"{url}/v1", key, self._context)

    def _spawn(self, command: list[str], env: dict[str, str]) -> None:
        self._said.clear()
        self._spoke.clear()
        output, theirs = os.pipe()
        stdin, keeper = os.pipe()
        try:
            self._child = Child.start(command, policy=OURS, cwd=Path("/"), env=env, stdin=stdin, output=theirs)
        except BaseException:  # on any error: no other code closes these file descriptors
            os.close(output)
            os.close(keeper)
            raise
        finally:
            os.close(theirs)
            os.close(stdin)
        self._keeper = keeper
        self._outlet = Outlet(output, self._hear)

    def _hear(self, data: bytes) -> None:
        self._said += data
        del self._said[:-OUTPUT_BYTES]
        self._spoke.set()

    async def _ready(self) -> str:
        assert self._outlet is not None
        while True:
            for line in self._said.decode("utf-8", "replace").splitlines(keepends=True):
                if line.startswith(READY) and line.endswith("\n"):
                    return line.removeprefix(READY).strip()
            if self._outlet.closed.is_set():
                said = self._said.decode("utf-8", "replace").strip()[-300:]
                raise AgentUnavailable(f"The model {self._name!r} did not start: {said or 'it said nothing'}.")
            self._spoke.clear()
            speaking = asyncio.ensure_future(self._spoke.wait())
            closing = asyncio.ensure_future(self._outlet.closed.wait())
            try:
                await asyncio.wait({speaking, closing}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                speaking.cancel()
                closing.cancel()

    async def _end(self) -> None:
        child, outlet, keeper = self._child, self._outlet, self._keeper
        self._child = self._outlet = self._keeper = self._address = None
        if keeper is not None:
            os.close(keeper)
        if child is not None:
            await child.end()
        if outlet is not None:
            outlet.close()
