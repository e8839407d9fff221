"""What does a request over HTTP cost, in CPU time of the host's own process?

Wall time says little on a busy machine, so what counts is the time that the process's threads were on a CPU. The
client keeps its connection and waits for each answer. Baseline: plain uvicorn with a bare ASGI application that
answers `api/test` with the same bytes. The bars are what the first portal (on Node) took on a quiet machine where this
baseline was 54 µs: 100, 90 and 118 µs; 130 for a stop and 1,200 for a turn, and a durable one may take half as much
again.
"""

import asyncio
import functools
import re
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
import uvloop

from bench.portal import running
from bench.row import Row, verdict

QUESTION = "CPU time of one request"

CALLS = 1_500
ROUNDS = 3
STOPS = 150
TURNS = 100
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)

_BARE = """
import asyncio, uvicorn
BODY = b'{"message":"Hello, world!"}'
HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(BODY))]
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": BODY})
async def main():
    config = uvicorn.Config(app, port=0, http="httptools", lifespan="off", log_config=None, access_log=False,
                            proxy_headers=False, server_header=False, timeout_keep_alive=60)
    server = uvicorn.Server(config)
    task = asyncio.ensure_future(server.serve())
    while not server.started: await asyncio.sleep(0.01)
    print(f"READY:{server.servers[0].sockets[0].getsockname()[1]}", flush=True)
    await task
import uvloop; uvloop.run(main())
"""


def cpu(process: "subprocess.Popen[str]") -> float:
    """Seconds, to the nanosecond: `/proc/PID/stat` counts in hundredths."""
    threads = Path(f"/proc/{process.pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in threads) / 1e9


class Connection:
    def __init__(self, port: int, token: str = "") -> None:
        self._port = port
        self._more = f"Authorization: Bearer {token}\r\n" if token else ""

    async def __call__(self, path: str, method: str = "GET", body: str = "", more: str = "") -> bytes:
        if not hasattr(self, "_reader"):
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 24)
        length = f"Content-Length: {len(body)}\r\n" if method == "POST" else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{length}{self._more}{more}\r\n"
        self._writer.write(head.encode() + body.encode())
        headers = await self._reader.readuntil(b"\r\n\r\n")
        found = _LENGTH.search(headers)
        return await self._reader.readexactly(int(found[1]) if found else 0)


async def cost(process: "subprocess.Popen[str]", call: Callable[[], Awaitable[object]], times: int) -> float:
    """Microseconds for one call."""
    began = cpu(process)
    for _ in range(times):
        await call()
    return (cpu(process) - began) / times * 1e6


def measure() -> list[Row]:
    return uvloop.run(_measure())


async def _measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name, "home")
        serve = ["-m", "portico", "serve", "--port", "0", "--print-ready", "--agent", "scripted", "--home", str(home)]
        async with running(["-c", _BARE]) as bare, running(serve) as host:
            plain, ours = Connection(bare.port), Connection(host.port, (home / "token").read_text().strip())
            etag = "If-None-Match: *\r\n"
            calls: dict[str, tuple[Callable[[], Awaitable[object]], float]] = {
                "api/test": (lambda: ours("/api/test"), 1.85),
                "api/token": (lambda: ours("/api/token"), 1.67),
                "index.html": (lambda: ours("/index.html"), 2.2),
                "index.html, unchanged": (lambda: ours("/index.html", more=etag), 2.2),
                "POST api/test": (lambda: ours("/api/test", "POST", "hello"), 1.85),
                "/v1": (lambda: ours("/v1"), 0),
            }
            best = dict.fromkeys(["bare", *calls], 1e9)
            for _ in range(ROUNDS):  # in alternation, and the least of each: other programs only add to it
                best["bare"] = min(best["bare"], await cost(bare.process, lambda: plain("/"), CALLS))
                for what, (call, _) in calls.items():
                    best[what] = min(best[what], await cost(host.process, call, CALLS))
            rows = [_row(what, best[what], best["bare"], original) for what, (_, original) in calls.items()]
            return [
                *rows,
                _row("session stop", await _stops(host.process, ours, name), best["bare"], 3.6),
                _row("a turn with one poll", await _turns(host.process, ours, name), best["bare"], 33.0),
            ]


async def _stops(process: "subprocess.Popen[str]", ours: Connection, folder: str) -> float:
    best = 1e9
    for _ in range(ROUNDS):
        found = [await ours("/api/copilot/session/start/gpt-5.2", "POST", folder) for _ in range(STOPS)]
        paths = iter([f"/api/copilot/session/{_ident(each)}/stop" for each in found])
        best = min(best, await cost(process, functools.partial(_next, ours, paths), STOPS))
    return best


async def _turns(process: "subprocess.Popen[str]", ours: Connection, folder: str) -> float:
    """The poll waits for the turn's end, and takes all of it."""
    path = f"/api/copilot/session/{_ident(await ours('/api/copilot/session/start/gpt-5.2', 'POST', folder))}"

    async def turn() -> None:
        await ours(f"{path}/query", "POST", "[[deltas:3]]")
        while b'"onIdle"' not in await ours(f"{path}/live/k"):
            pass

    await cost(process, turn, 10)
    return min([await cost(process, turn, TURNS) for _ in range(ROUNDS)])


async def _next(ours: Connection, paths: Iterator[str]) -> None:
    await ours(next(paths))


def _ident(answer: bytes) -> str:
    return str(msgspec.json.decode(answer)["sessionId"])


def _row(what: str, measured: float, bare: float, original: float) -> Row:
    bar = verdict(f"{original}x", measured / bare <= original) if original else ""
    return Row(what, f"{measured:.0f} µs", f"bare ASGI {bare:.0f} µs", f"{measured / bare:.1f}x", bar)
