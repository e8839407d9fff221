"""The output of an agent's process is read in time, also while the event loop is blocked."""

import asyncio
import fcntl
import os
import subprocess
import sys
import time
from typing import IO

import pytest

from portico.agents import pipe
from portico.agents.pipe import PIPE_BYTES, PipeReader, waiting

LINES = 40_000
WRITER = f"""
import sys
for number in range({LINES}):
    sys.stdout.write(f"line {{number}} {{'x' * 90}}\\n")
sys.stdout.flush()
open(sys.argv[1], "w").close()
"""
"""4 MB: more than any pipe holds."""


def started(marker: str) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen([sys.executable, "-S", "-E", "-c", WRITER, marker], stdout=subprocess.PIPE)
    assert process.stdout is not None
    fcntl.fcntl(process.stdout.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return process


def output(process: "subprocess.Popen[bytes]") -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout


async def everything(reader: asyncio.StreamReader) -> list[bytes]:
    async with asyncio.timeout(60):
        return (await reader.read()).splitlines()


def block(until: str) -> bool:
    """Block the event loop until the program has written everything. Whether it has."""
    end = time.monotonic() + 30
    while not os.path.exists(until) and time.monotonic() < end:
        time.sleep(0.01)
    return os.path.exists(until)


@pytest.mark.skipif(sys.platform != "linux", reason="sets the size of a pipe")
async def test_a_program_does_not_wait_for_a_blocked_loop(tmp_path: object) -> None:
    """Copilot cancelled its turn: its output was not read while the loop was blocked."""
    marker = f"{tmp_path}/done"
    with started(marker) as process:
        reader = asyncio.StreamReader(limit=2**25)
        reading = PipeReader(output(process), reader)
        assert (await reader.readline()).startswith(b"line 0 ")
        assert block(marker), "the program could not write its output"
        lines = await everything(reader)
        assert [line.split()[1] for line in lines] == [str(number).encode() for number in range(1, LINES)]
        reading.close()


async def test_the_thread_reads_no_more_than_its_limit(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipe, "SPARE_BYTES", 100_000)
    monkeypatch.setattr(pipe, "LATE_SECONDS", 0.0)
    marker = f"{tmp_path}/done"
    with started(marker) as process:
        reader = asyncio.StreamReader(limit=2**25)
        reading = PipeReader(output(process), reader)
        while waiting(reading._fd) < PIPE_BYTES // 2:
            time.sleep(0.01)  # noqa: ASYNC251 - the loop is blocked on purpose
        reading.relieve(time.monotonic())
        assert 100_000 <= reading._spare_bytes <= 100_000 + pipe.CHUNK_BYTES
        assert len(await everything(reader)) == LINES
        reading.close()


async def test_a_pause_a_resume_and_two_closes() -> None:
    ours, theirs = os.pipe()
    reader = asyncio.StreamReader()
    reading = PipeReader(os.fdopen(ours, "rb", buffering=0), reader)
    reading.pause_reading()
    reading.pause_reading()
    os.write(theirs, b"one\n")
    await asyncio.sleep(0.02)
    assert not reading.is_reading()
    reading.resume_reading()
    assert await reader.readline() == b"one\n"
    os.close(theirs)
    assert await reader.read() == b""
    reading.close()
    reading.close()
    reading.relieve(time.monotonic() + 10)
    assert (reading.is_closing(), reading.is_reading()) == (True, False)


async def test_a_close_ends_a_waiting_reader() -> None:
    ours, theirs = os.pipe()
    reader = asyncio.StreamReader()
    reading = PipeReader(os.fdopen(ours, "rb", buffering=0), reader)
    waits = asyncio.ensure_future(reader.read(1))
    await asyncio.sleep(0)
    reading.close()
    assert await waits == b""
    os.close(theirs)
