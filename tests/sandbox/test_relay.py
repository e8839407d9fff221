"""The relay as a process, with `python -I -S` as in a sandbox."""

import asyncio
import shutil
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from portico.sandbox import relay
from portico.sandbox.network import Network
from tests.sandbox.outside import Names, listener, site


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@asynccontextmanager
async def relaying(folder: Path, *ports: int) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """A relay and the port of its proxy."""
    proxy = free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", relay.__file__, str(folder / "e.sock"), str(proxy), *map(str, ports)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    try:
        yield process, proxy
    finally:
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), 10) == 0, "it ends with its input"


async def through(port: int, *pieces: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    try:
        writer.write_eof()
        return await asyncio.wait_for(reader.read(), 20)
    except OSError:  # a reset
        return b""
    finally:
        writer.close()


async def test_a_program_reaches_a_host_through_relay_and_listener(tmp_path: Path) -> None:
    async with site() as echo:
        network = Network((f"echo.test:{echo.port}",), private=("echo.test",))
        async with (
            listener(tmp_path, network, names=Names({"echo.test": [["127.0.0.1"]]})),
            relaying(tmp_path) as (_, proxy),
        ):
            large = bytes(range(256)) * 2_000
            said = await asyncio.gather(
                *(through(proxy, b"CONNECT echo.test:%d HTTP/1.1\r\n\r\n" % echo.port, large) for _ in range(5))
            )
            refused = await through(proxy, b"CONNECT other.test:443 HTTP/1.1\r\n\r\n")
    assert all(each == b"HTTP/1.1 200 Connection established\r\n\r\n" + large for each in said)
    assert refused.startswith(b"HTTP/1.1 403 ")


INSIDE = """
import socket, subprocess, sys
python, relay, listener, named, added, refused = sys.argv[1:]
process = subprocess.Popen([python, "-I", "-S", relay, listener, "3128", named, refused],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
print(process.stdout.readline().decode(), end="")
def ask(port):
    with socket.create_connection(("127.0.0.1", int(port))) as program:
        try:
            program.sendall(b"hello")
            program.shutdown(socket.SHUT_WR)
            return program.recv(100).decode()
        except OSError:
            return ""
print(ask(named), repr(ask(refused)))
process.stdin.write(f"{added}\\nnonsense\\n".encode())
process.stdin.flush()
print(process.stdout.readline().decode(), process.stdout.readline().decode()[:6], ask(added))
process.stdin.close()
print(process.wait())
"""


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
async def test_named_ports_are_forwarded_and_added_while_it_runs(tmp_path: Path) -> None:
    """In a network namespace of its own, as in a sandbox."""
    async with site() as model, site() as tools, listener(tmp_path, Network(ports=(model.port, tools.port))):
        process = await asyncio.create_subprocess_exec(
            *("bwrap", "--unshare-user-try", "--unshare-net", "--dev-bind", "/", "/", "--die-with-parent", "--"),
            *(sys.executable, "-c", INSIDE, sys.executable, relay.__file__, str(tmp_path / "e.sock")),
            *(str(model.port), str(tools.port), str(free_port())),
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await asyncio.wait_for(process.communicate(), 20)
    assert said.decode().split() == ["ready", "hello", "''", "ok", "error", "hello", "0"]


async def test_without_a_listener_connections_are_closed(tmp_path: Path) -> None:
    async with relaying(tmp_path) as (_, proxy):
        assert await through(proxy, b"CONNECT a.test:443 HTTP/1.1\r\n\r\n") == b""


async def test_more_connections_than_the_limit_wait(tmp_path: Path) -> None:
    async with site() as echo:
        network = Network((f"echo.test:{echo.port}",), private=("echo.test",))
        async with (
            listener(tmp_path, network, names=Names({"echo.test": [["127.0.0.1"]]})),
            relaying(tmp_path) as (_, proxy),
        ):
            held = [await asyncio.open_connection("127.0.0.1", proxy) for _ in range(relay.CONNECTIONS)]
            late = asyncio.create_task(through(proxy, b"CONNECT echo.test:%d HTTP/1.1\r\n\r\nlate" % echo.port))
            await asyncio.sleep(0)
            for _, writer in held:
                writer.close()
            assert (await late).endswith(b"late")
