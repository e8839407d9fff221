"""The lifecycle of an agent's process: started on demand, watched, restarted after a crash, ended as a process group.

The caller provides a `connect` function. Its result is shared by all conversations until the process exits. The exit is
detected immediately (no request waits for an answer that cannot arrive) and reported with the last lines of stderr.
A process that is idle for long is ended if its conversations can be resumed: some hold 200 MB. Shutdown order: the
connection is closed first, then the process and all its children are ended.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import secrets
import subprocess
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from portico.agents.pipe import PIPE_BYTES, PipeReader
from portico.agents.pool import Pool, Tell
from portico.agents.process_registry import ProcessRegistry
from portico.kernel.errors import AgentDied, AgentUnavailable
from portico.sandbox.policy import Confinement
from portico.tasks import end_tasks
from portico.workspace import adoption
from portico.workspace.child import MARK, Child, Outlet, UnownedPipe, command_environment
from portico.workspace.escapes import plain

LINE_BYTES = 32 * 1024 * 1024
"""One line of an agent's output: a whole file in base64 fits. A longer line means that the agent is broken."""
START_SECONDS = 60.0
"""From the start to the first answer. Some agents unpack themselves at the first start."""
SLOW_SECONDS = 5.0
"""After this time the turn reports that the agent is still starting: most start within two seconds."""
IDLE_SECONDS = 1800.0
"""Time without a turn: long enough for a person to think, short enough for a laptop."""
_LOOKS = 4
"""How often the idle time is checked during that period."""
LAST_WORDS = 4 * 1024
"""Bytes of stderr that are kept to explain an exit."""
GOODBYE_SECONDS = 1.0
"""Timeout for closing the connection. The process is ended afterwards in any case."""
KEPT_SECONDS = 5.0
"""From the opening of a conversation to its turn. The turn follows immediately; this leaves time on a busy machine."""
_POLL_SECONDS = 0.05
"""Interval at which a process in use is checked before it is stopped."""
DRAIN_SECONDS = 0.2
"""Timeout for the rest of stderr after an exit; it is available immediately."""

# Agents access the network themselves, and keep their login where their vendor puts it.
PASSED = (
    *("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)

STARTS: Counter[str] = Counter()
"""Number of started processes by agent name, over all supervisors of this process."""

logger = logging.getLogger("portico.agents")
T = TypeVar("T")


def agent_environment(passed: Sequence[str] = (), extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of an agent's process: paths to its own files, network settings, variables that the
    settings pass on by name, and variables that they define. Never our token, never another agent's key."""
    own = {name: os.environ[name] for name in (*PASSED, *passed) if name in os.environ}
    return command_environment(NO_COLOR="1", TERM="dumb") | own | dict(extra or {})


class SlowStart(AgentUnavailable):
    """The program runs and has not answered yet: it may be unpacking itself."""


class Process:
    """One running program: `read` its output, write to its input, and wait for its exit with `gone`."""

    def __init__(self, name: str, child: Child) -> None:
        self.name = name
        self.child = child
        self.gone: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """The reason, once the process has ended."""
        self._stderr = bytearray()
        assert child.process.stderr is not None
        self._outlet = Outlet(os.dup(child.process.stderr.fileno()), self._hear)
        child.process.stderr.close()
        self.reader = asyncio.StreamReader(limit=LINE_BYTES)
        self._writer: asyncio.StreamWriter | None = None
        self._reading: PipeReader | None = None
        self._wide = _widen(child.process)
        self._taken = 0
        self._read_out = asyncio.Event()

    async def attach(self) -> None:
        """Connect the pipes to the event loop."""
        loop, process = asyncio.get_running_loop(), self.child.process
        assert process.stdout is not None
        assert process.stdin is not None
        self._reading = PipeReader(process.stdout, self.reader)
        transport, protocol = await loop.connect_write_pipe(
            asyncio.streams.FlowControlMixin, UnownedPipe(process.stdin)
        )
        self._writer = asyncio.StreamWriter(transport, protocol, None, loop)

    async def read(self, size: int) -> bytes:
        """Return the next bytes of its output; empty at EOF."""
        data = await self.reader.read(size)
        self._taken += len(data)
        if not data:
            self._read_out.set()
        return data

    async def let_wait(self, seconds: float) -> None:
        """Sleep without reading the output, if the pipe is large enough to buffer it. During a flood, waking a reader
        for each line costs the program as much as the line itself."""
        reading = self._reading
        if not self._wide or reading is None or reading.is_closing():
            await asyncio.sleep(seconds)
            return
        reading.pause_reading()
        try:
            await asyncio.sleep(seconds)
        finally:
            if not reading.is_closing():
                reading.resume_reading()

    async def write(self, data: bytes) -> None:
        """Write to stdin. Raises AgentDied when the process no longer reads it."""
        if self._writer is None or self.gone.done():
            raise AgentDied(self.reason)
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise AgentDied(f"{self.name} does not take input any more: {error.strerror}.") from error

    @property
    def reason(self) -> str:
        return self.gone.result() if self.gone.done() else f"{self.name} has ended."

    async def watch(self) -> None:
        """Wait for the exit of the process and set `gone`."""
        code = await self.child.wait()
        await self._outlet.drain(DRAIN_SECONDS)
        await self._take_rest()
        if not self.gone.done():
            self.gone.set_result(f"The process of {self.name} ended ({_code(code)}){self.last_words}")

    async def _take_rest(self) -> None:
        """Wait until the output from before the exit is read, as long as the reader makes progress."""
        before = 0
        while not self._read_out.is_set() and self._taken != before:
            before = self._taken
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._read_out.wait(), DRAIN_SECONDS)

    async def end(self) -> None:
        """End the process and all its children. Idempotent."""
        if not self.gone.done():
            self.gone.set_result(f"{self.name} was ended.")
        if self._writer is not None:
            self._writer.close()
        await self.child.end()
        self._outlet.close()
        if self._reading is not None:
            self._reading.close()

    @property
    def last_words(self) -> str:
        lines = [line for line in plain(self._stderr.decode("utf-8", "replace")).splitlines() if line.strip()]
        telling = [line.strip() for line in lines if "error" in line.lower()] or lines  # and not the stack below it
        return f": {' | '.join(telling[-3:])}" if lines else "."

    async def alive(self, work: Awaitable[T]) -> T:
        """Return the result of `work`, or raise AgentDied as soon as the process exits: no answer can arrive then."""
        doing = asyncio.ensure_future(work)
        try:
            waiting: set[asyncio.Future[Any]] = {doing, self.gone}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                return await doing
            raise AgentDied(self.reason)
        finally:
            doing.cancel()

    def _hear(self, data: bytes) -> None:
        self._stderr += data
        del self._stderr[:-LAST_WORDS]


class Connected:
    """What a `connect` function returns: the shared connection to one process."""

    running = 0
    """Number of running turns."""
    doomed = False
    """No new turn starts here; the process is ended after the last running turn."""

    def __init__(self, process: Process) -> None:
        self.process = process

    @property
    def resumes(self) -> bool:
        """Whether another process can resume its conversations."""
        return True

    @property
    def usable(self) -> bool:
        """False when the process must be replaced, even if it is still alive."""
        return not (self.doomed or self.process.gone.done())

    async def close(self) -> None:
        """Close the connection. The process is ended afterwards."""
        raise NotImplementedError


C = TypeVar("C", bound=Connected)


class Supervisor(Generic[C]):
    """Runs one program, with at most one current process."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        registry: ProcessRegistry,
        connect: Callable[[Process], Awaitable[C]],
        *,
        confine: Callable[[], Awaitable[Confinement]],
        start_seconds: float = START_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
        pool: Pool | None = None,
    ) -> None:
        """`confine`: returns how each process is started. `idle_seconds`: 0 to never end an idle process. `pool`:
        limits the processes, if given."""
        self._pool = pool
        self._confine = confine
        self.name = name
        self.command = list(command)
        self.env = dict(env)
        self.cwd = cwd
        self.starts = 0
        self._registry = registry
        self._connect = connect
        self._start_seconds = start_seconds
        self._idle_seconds = idle_seconds
        self.used_at = 0.0
        self._kept_until = 0.0
        """The process keeps its slot until then, for a turn that has not started yet."""
        self._current: C | None = None
        self._starting = asyncio.Lock()
        self._processes: set[Process] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._retired: list[C] = []
        """Connections that take no new turn and still have running ones."""
        self._leaving: list[C] = []
        self._closed = False

    @property
    def pids(self) -> list[int]:
        return [process.child.pid for process in self._processes]

    @property
    def is_idle(self) -> bool:
        current, kept = self._current, asyncio.get_running_loop().time() < self._kept_until
        return current is not None and not (current.running or kept) and current.usable

    @property
    def resumes(self) -> bool:
        return self._current is not None and self._current.resumes

    async def get(self, tell: Tell = lambda text: None) -> C:
        """Return the connection to the process, starting it if needed. `tell` is called with the reason for a wait."""
        async with self._starting:
            self.used_at = asyncio.get_running_loop().time()
            current = self._current
            if current is not None and current.usable:
                return current
            if current is not None:
                self.retire(current)
            if self._closed:
                raise AgentUnavailable(f"{self.name} has been closed.")
            if self._pool is not None:
                await self._pool.admit(self, tell)
            slow = f"{self.name} is still starting. The first start can take up to {self._start_seconds:g} seconds."
            timer = asyncio.get_running_loop().call_later(SLOW_SECONDS, tell, slow)
            try:
                self._current = await self._start()
            finally:
                timer.cancel()
            if self._idle_seconds and self._current.resumes:
                self._own(self._rest(self._current), f"rest {self.name}")
            return self._current

    @contextlib.contextmanager
    def busy(self, connection: C) -> Iterator[None]:
        """Mark the connection as in use, so that it is not ended as idle. Replace it if it dies or does not answer; if
        it is alive, after the last turn of all sessions that use it."""
        self._kept_until = 0.0
        connection.running += 1
        try:
            yield
        except AgentDied:
            self.dismiss(connection)
            raise
        except asyncio.CancelledError:
            # It ignored a cancel, or the caller no longer waits for it: do not use this process again.
            connection.doomed = True
            raise
        finally:
            connection.running -= 1
            if connection.doomed and not connection.running:
                self.dismiss(connection)
            if self._pool is not None:
                self._pool.changed()

    @contextlib.contextmanager
    def opening(self, connection: C) -> Iterator[None]:
        """`busy` while a conversation is opened. Its turn follows; the slot stays reserved until then."""
        with self.busy(connection):
            yield
            self._kept_until = asyncio.get_running_loop().time() + KEPT_SECONDS

    async def _rest(self, connection: C) -> None:
        """End a process that has been idle for long; the next turn starts a new one."""
        now = asyncio.get_running_loop().time
        self.used_at = now()
        while self._current is connection and connection.usable:
            if connection.running:
                self.used_at = now()
            elif now() - self.used_at >= self._idle_seconds:
                logger.info("%s rests: it was idle for %g seconds", self.name, self._idle_seconds)
                self.dismiss(connection)
                return
            await asyncio.sleep(self._idle_seconds / _LOOKS)

    async def _start(self) -> C:
        process = self._spawn(await self._confine())
        try:
            await process.attach()
            async with asyncio.timeout(self._start_seconds):
                return await process.alive(self._connect(process))
        except TimeoutError:
            words = process.last_words
            await self.end(process)
            raise SlowStart(
                f"{self.name} did not answer within {self._start_seconds:g} seconds of its start{words.rstrip('.')}. "
                "It is slow or does not speak its protocol. A first start can be slow: try again, or set a longer "
                "`start_timeout`."
            ) from None
        except AgentDied as error:
            await self.end(process)
            raise AgentUnavailable(f"{self.name} does not start. {error.message}") from error
        except BaseException:  # also a cancel: no process is left behind
            await self.end(process)
            raise

    def _spawn(self, policy: Confinement) -> Process:
        # In the event loop, not in a thread: a cancel in between would leave a process without an owner.
        mark = secrets.token_hex(16)
        try:
            self.cwd.mkdir(mode=0o700, parents=True, exist_ok=True)
            made = adoption.spawn(
                self.command,
                policy=policy,
                cwd=self.cwd,
                env={**self.env, MARK: mark},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except (ValueError, OSError) as error:
            raise AgentUnavailable(f"{self.name} cannot be started ({self.command[0]!r}): {error}.") from error
        self.starts += 1
        STARTS[self.name] += 1
        self._registry.register(made.pid, mark, self.name)
        process = Process(self.name, Child(made, mark))
        self._processes.add(process)
        self._own(self._watch(process), f"watch {self.name}")
        return process

    async def _watch(self, process: Process) -> None:
        await process.watch()
        await self.end(process)  # its children may still run

    def _own(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def rest(self) -> None:
        """End the process if it is unused."""
        if self._current is not None and not self._current.running:
            self.dismiss(self._current)

    async def stop(self, seconds: float = 0) -> bool:
        """End the process and wait for its exit. Returns False, and ends nothing, if a turn still uses it after
        `seconds`."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self._retired or (self._current is not None and self._current.running):
            if loop.time() >= until:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        self.rest()
        while self._leaving:
            await asyncio.wait(set(self._tasks), return_when=asyncio.FIRST_COMPLETED)
        return True

    def retire(self, connection: C) -> None:
        """End a process after its last running turn; new turns get another process."""
        if not connection.running or connection.process.gone.done():
            self.dismiss(connection)
            return
        connection.doomed = True
        if self._current is connection:
            self._current = None
        if connection not in self._retired and connection not in self._leaving:
            self._retired.append(connection)

    def dismiss(self, connection: C) -> None:
        """End a process that is no longer needed, with its running turns; returns immediately."""
        connection.doomed = True
        if self._current is connection:
            self._current = None
        if connection in self._retired:
            self._retired.remove(connection)
        if connection not in self._leaving:
            self._leaving.append(connection)
            self._own(self._dismiss(connection), f"end {self.name}")

    async def _dismiss(self, connection: C) -> None:
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                await connection.close()
        except (TimeoutError, AgentDied) as error:
            logger.debug("%s took no goodbye: %r", self.name, error)
        await self.end(connection.process)
        self._leaving.remove(connection)

    async def end(self, process: Process) -> None:
        await process.end()
        self._processes.discard(process)
        if self._pool is not None:
            self._pool.changed()
        self._registry.unregister(process.child.pid, process.child.mark)

    async def close(self) -> None:
        self._closed = True
        for connection in [*self._retired, *([self._current] if self._current is not None else [])]:
            self.dismiss(connection)
        await self.stop()
        await asyncio.gather(*(self.end(process) for process in list(self._processes)))
        await end_tasks(*self._tasks)
        if self._pool is not None:
            self._pool.forget(self)


def _widen(process: "subprocess.Popen[bytes]") -> bool:
    """Enlarge the pipe so that it buffers a flood of output: some agents give up when their output is not read."""
    size = getattr(fcntl, "F_SETPIPE_SZ", None)  # Linux
    if size is None or process.stdout is None:
        return False
    try:
        fcntl.fcntl(process.stdout.fileno(), size, PIPE_BYTES)
    except OSError:  # this user has reached the limit for large pipes
        return False
    return True


def _code(code: int) -> str:
    return f"signal {code - 128}" if code > 128 else f"exit code {code}"
