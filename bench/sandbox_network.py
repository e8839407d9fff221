"""The network of a sandbox: deltas of a model through relay and listener, and the memory of both."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import uvloop

from bench.row import Row, p50, verdict
from portico.sandbox import relay
from portico.sandbox.egress import Egress
from portico.sandbox.network import Destination, Network, Verdict

DELTAS = 10_000
ROUNDS = 15
PORT = 3129
_MB = 1024 * 1024

_MODEL = """
import asyncio, json
FRAME = b'data: ' + json.dumps({"choices": [{"delta": {"content": "a word"}}]}).encode() + b"\\n\\n"
async def serve(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Type: text/event-stream\\r\\nConnection: close\\r\\n\\r\\n")
    for _ in range(%d):
        writer.write(FRAME)
        await asyncio.sleep(0)
    writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
import uvloop; uvloop.run(main())
"""
"""Every delta is one write, as models send them."""

_READER = """
import json, socket, sys, time
port, head = int(sys.argv[1]), sys.argv[2].encode()
started = time.perf_counter()
with socket.create_connection(("127.0.0.1", port)) as program:
    program.sendall(head)
    found, last = 0, b""
    while data := program.recv(65536):
        found += (last + data).count(b"data: ")  # a frame may be split between two reads
        last = data[-5:]
print(json.dumps([found, time.perf_counter() - started]))
"""


class _Open:
    """A gate that allows and counts nothing."""

    async def decide(self, target: Destination) -> Verdict:
        return Verdict(True)

    def opened(self, target: Destination, by: str) -> None: ...

    def moved(self, target: Destination, sent: int, received: int) -> None: ...

    def refused(self, target: Destination, by: str) -> None: ...


async def _here(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


def resident(pid: int) -> int:
    """Bytes of memory that only this process uses."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in rollup if line.startswith("Private_"))


def measure() -> list[Row]:
    model = subprocess.Popen([sys.executable, "-c", _MODEL % DELTAS], stdout=subprocess.PIPE, text=True)
    with tempfile.TemporaryDirectory() as folder, model:
        assert model.stdout is not None
        try:
            return uvloop.run(_rows(Path(folder), int(model.stdout.readline())))
        finally:
            model.kill()


async def _rows(folder: Path, model: int) -> list[Row]:
    before = resident(os.getpid())
    network = Network((f"model.test:{model}",), private=("model.test",))
    egress = Egress(folder / "egress.sock", network, _Open(), _here)
    await egress.start()
    listener = max(0, resident(os.getpid()) - before)
    command = [sys.executable, "-I", "-S", relay.__file__, str(folder / "egress.sock"), str(PORT)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    assert process.stdout is not None
    await process.stdout.readline()
    used = resident(process.pid) + listener
    request = f"http://model.test:{model}/v1/chat HTTP/1.1\r\n\r\n"
    direct, through = [], []
    for _ in range(ROUNDS):
        direct.append(await _read(model, "GET /v1/chat HTTP/1.1\r\n\r\n"))
        through.append(await _read(PORT, f"GET {request}"))
    process.kill()
    await process.wait()
    await egress.close()
    share = p50(direct) / p50(through)
    inside, outside = (f"{DELTAS / p50(each):,.0f}/s" for each in (through, direct))
    return [
        Row("deltas from a model into a sandbox", inside, outside, f"{share:.2f}x", verdict(">= 0.9x", share >= 0.9)),
        Row(
            "memory of an idle sandbox (relay and listener)",
            f"{used / _MB:.1f} MB",
            "0 MB",
            "",
            verdict("<= 12 MB", used <= 12 * _MB),
        ),
    ]


async def _read(port: int, head: str) -> float:
    reader = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", _READER, str(port), head), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await reader.communicate()
    found, seconds = json.loads(said)
    assert found == DELTAS, f"{found} of {DELTAS} deltas arrived"
    return float(seconds)
