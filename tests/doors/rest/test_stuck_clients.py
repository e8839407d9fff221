"""Clients that never read cost little, and keep nobody waiting."""

import socket
import time
from pathlib import Path

import httpx

from tests.process import HostProcess

CLIENTS = 400


def resident(host: HostProcess) -> float:
    """Megabytes."""
    return int(Path(f"/proc/{host.process.pid}/statm").read_text().split()[1]) * 4096 / 1e6


def test_clients_that_never_read_cost_little(tmp_path: Path) -> None:
    """1,000 of them, behind by 2 MB each, cost 910 MB: every one held what it had missed."""
    home = tmp_path / "home"
    with HostProcess(home) as host:
        headers = {"Authorization": f"Bearer {(home / 'token').read_text().strip()}"}
        with httpx.Client(base_url=host.url, headers=headers, timeout=30, trust_env=False) as http:
            session = http.post("/v1/sessions", json={"agent": "scripted"}).json()["id"]
            path = f"/v1/sessions/{session}"
            http.post(f"{path}/messages", json={"text": f"[[say:{'x' * 1000}]] [[deltas:2000]] [[stamp]]"})
            http.post(f"{path}/messages", json={"text": f"[[say:{'x' * 500_000}]]"})
            while len([turn for turn in http.get(path).json()["turns"] if turn.get("outcome")]) < 2:
                time.sleep(0.02)
            before = resident(host)
            readers = [_stuck(host.port, path, headers["Authorization"]) for _ in range(CLIENTS)]
            slowest = 0.0
            end = time.monotonic() + 3
            while time.monotonic() < end:
                asked = time.monotonic()
                http.get("/v1")
                slowest = max(slowest, time.monotonic() - asked)
                time.sleep(0.02)
            grown = resident(host) - before
            for reader in readers:
                reader.close()
    assert grown < 20, f"{grown:.0f} MB for {CLIENTS} clients"
    assert slowest < 5, "it is 20 ms on a quiet machine; this is one that is busy"


def _stuck(port: int, path: str, authorization: str) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.connect(("127.0.0.1", port))
    head = f"GET {path}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: {authorization}\r\n"
    made.sendall(f"{head}Accept: text/event-stream\r\n\r\n".encode())
    return made
