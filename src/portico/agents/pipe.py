"""Reads the output of an agent's process: in the event loop, and in a thread while the loop is blocked.

Copilot cancels its turn when some megabytes of its updates are not read. The event loop reads in time, unless a plugin
or a busy machine blocks it for seconds. Then a thread moves the output to memory, and the loop processes it later.
"""

import array
import asyncio
import fcntl
import os
import termios
import threading
import time
from typing import IO
from weakref import WeakSet

PIPE_BYTES = 1024 * 1024
"""Size of the pipe that the agent writes to: the maximum for an ordinary user, some thousand updates."""
_SMALL_BYTES = 64 * 1024
"""Size of a pipe on systems that do not report it."""
CHUNK_BYTES = 256 * 1024
LATE_SECONDS = 0.5
"""A loop that has not read for this time is blocked: it reads every 20 ms during a flood."""
SPARE_BYTES = 64 * 1024 * 1024
"""Output of one process that the thread keeps: two of the longest lines. After that the process waits."""
_WATCH_SECONDS = 0.25
_QUIET_SECONDS = 5.0
"""Without output for this time, the thread sleeps until there is some."""


class PipeReader(asyncio.ReadTransport):
    """Feeds a StreamReader from a pipe. Closes its own copy of the descriptor exactly once."""

    def __init__(self, pipe: IO[bytes], reader: asyncio.StreamReader) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._fd = os.dup(pipe.fileno())
        pipe.close()
        os.set_blocking(self._fd, False)
        self._reader = reader
        self._half = capacity(self._fd) // 2
        self._lock = threading.Lock()
        """Held while the pipe is read: its pieces stay in order."""
        self._spare: list[bytes] = []
        self._spare_bytes = 0
        self.read_at = time.monotonic()
        self._closed = self._paused = False
        reader.set_transport(self)
        self._loop.add_reader(self._fd, self._ready)
        _RELIEF.watch(self)

    def _ready(self) -> None:
        with self._lock:
            if self._closed:
                return
            spare, self._spare, self._spare_bytes = self._spare, [], 0
            data = _read(self._fd)
            self.read_at = time.monotonic()
        for each in spare:
            self._reader.feed_data(each)
        if data:
            self._reader.feed_data(data)
        elif data is not None:
            self._loop.remove_reader(self._fd)
            self._reader.feed_eof()
        _RELIEF.wake()

    def relieve(self, now: float) -> None:
        """Called in the thread: read if the loop does not, and the pipe is half full."""
        with self._lock:
            if self._closed or now - self.read_at < LATE_SECONDS or waiting(self._fd) < self._half:
                return
            while self._spare_bytes < SPARE_BYTES and (data := _read(self._fd)):
                self._spare.append(data)
                self._spare_bytes += len(data)
        self._loop.call_soon_threadsafe(self._ready)

    # -- the interface of a transport ----------------------------------------------------------------------------

    def is_closing(self) -> bool:
        return self._closed

    def is_reading(self) -> bool:
        return not (self._paused or self._closed)

    def pause_reading(self) -> None:
        if self.is_reading():
            self._paused = True
            self._loop.remove_reader(self._fd)

    def resume_reading(self) -> None:
        if self._paused and not self._closed:
            self._paused = False
            self._loop.add_reader(self._fd, self._ready)

    def close(self) -> None:
        if self._closed:
            return
        self._loop.remove_reader(self._fd)
        with self._lock:
            self._closed = True
            os.close(self._fd)
        self._reader.feed_eof()


def capacity(fd: int) -> int:
    size = getattr(fcntl, "F_GETPIPE_SZ", None)  # Linux
    return fcntl.fcntl(fd, size) if size is not None else _SMALL_BYTES


def waiting(fd: int) -> int:
    """Return the number of bytes in the pipe."""
    found = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, found)
    return found[0]


def _read(fd: int) -> bytes | None:
    """None: there is nothing now. Empty: the process has closed its output."""
    try:
        return os.read(fd, CHUNK_BYTES)
    except BlockingIOError:
        return None
    except OSError:  # the other end is gone
        return b""


class Relief:
    """One thread for all pipes of this process. It sleeps while no agent prints anything."""

    def __init__(self) -> None:
        self._pipes: WeakSet[PipeReader] = WeakSet()
        self._awake = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, pipe: PipeReader) -> None:
        self._pipes.add(pipe)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="agent pipes", daemon=True)
            self._thread.start()

    def wake(self) -> None:
        if not self._awake.is_set():
            self._awake.set()

    def _run(self) -> None:
        while True:
            self._awake.wait()
            time.sleep(_WATCH_SECONDS)
            now = time.monotonic()
            pipes = [pipe for pipe in list(self._pipes) if not pipe.is_closing()]
            for pipe in pipes:
                self._relieve(pipe, now)
            if all(now - pipe.read_at > _QUIET_SECONDS for pipe in pipes):
                self._awake.clear()

    def _relieve(self, pipe: PipeReader, now: float) -> None:
        try:
            pipe.relieve(now)
        except RuntimeError:  # its loop is closed: there is no reader any more
            self._pipes.discard(pipe)


_RELIEF = Relief()
