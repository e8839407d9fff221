"""What do 2,000 clients cost that never read?

A turn says two megabytes while they are connected, and their end of the connection takes four kilobytes. Over
server-sent events, and as editors that have subscribed to the conversation.
"""

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from bench.flood import Flood
from bench.fresh_host import serve
from bench.row import Row, verdict
from portico.doors.ahp.wire import uri

QUESTION = "memory of 2,000 clients that never read"

CLIENTS = 2_000
RECEIVES = 4_096
SAID = (f"[[say:{'x' * 1000}]] [[deltas:2000]] [[stamp]]", f"[[say:{'x' * 500_000}]]")


def measure() -> list[Row]:
    return [_row("event streams", _stream), _row("editors", _editor)]


def _row(what: str, client: Callable[[int, str, str, int], object]) -> Row:
    with tempfile.TemporaryDirectory() as home:
        command = [*serve(home), "--agent", "scripted"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            port = int(process.stdout.readline().strip().removeprefix("READY:"))
            token = (Path(home) / "token").read_text().strip()
            grown = _grown(process.pid, port, token, client)
            process.terminate()
    return Row(f"{CLIENTS} {what} that never read", f"{grown / 1e6:.0f} MB", "-", "-", verdict("50 MB", grown <= 50e6))


def _grown(pid: int, port: int, token: str, client: Callable[[int, str, str, int], object]) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=120, trust_env=False) as http:
        session = http.post("/v1/sessions", json={"agent": "scripted"}).json()["id"]
        before = _resident(pid)
        clients = [client(port, token, session, number) for number in range(CLIENTS)]
        _say(http, session)
        time.sleep(3)  # until all of it was offered to everybody
        grown = _resident(pid) - before
        assert http.get("/v1").is_success
        del clients
    return grown


def _say(http: httpx.Client, session: str) -> None:
    path = f"/v1/sessions/{session}"
    for text in SAID:
        http.post(f"{path}/messages", json={"text": text})
    while len([turn for turn in http.get(path).json()["turns"] if turn.get("outcome")]) < len(SAID):
        time.sleep(0.05)


def _stream(port: int, token: str, session: str, number: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVES)
    made.connect(("127.0.0.1", port))
    head = f"GET /v1/sessions/{session}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
    made.sendall(f"{head}Accept: text/event-stream\r\n\r\n".encode())
    return made


def _editor(port: int, token: str, session: str, number: int) -> Flood:
    return Flood(f"ws://127.0.0.1:{port}/?tkn={token}", RECEIVES).hello(
        f"editor-{number}", uri.default_chat(f"scripted:/{session}")
    )


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
