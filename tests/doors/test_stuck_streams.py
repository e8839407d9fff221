"""Clients that never read: what a host keeps for each of them is small, and events are kept once for all."""

import gc
import socket
import tracemalloc
from pathlib import Path

from portico.kernel.log.feed import Follower
from tests.doors.standing import Standing, standing

STREAMS = 40
MESSAGES = 30
CHARS = 60_000
KEPT = 30 * 1024
"""For one stream, without the memory of uvloop and of the kernel. A copy of one message is twice that."""


def _connect(here: Standing, session: str) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.connect(("127.0.0.1", here.server.port))
    path = f"/v1/sessions/{session}/events"
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{here.server.port}\r\nAccept: text/event-stream\r\n"
    made.sendall(f"{head}Authorization: Bearer {here.home.token()}\r\n\r\n".encode())
    return made


def _followers() -> list[Follower]:
    return [each for each in gc.get_objects() if isinstance(each, Follower)]


async def _grown(here: Standing, streams: int) -> int:
    """The memory that streams and the messages of a new session take."""
    session = (await here.http.post("/v1/sessions", json={"agent": "scripted"})).json()["id"]
    gc.collect()
    known, before = len(_followers()), tracemalloc.get_traced_memory()[0]
    clients = [_connect(here, session) for _ in range(streams)]
    while len(_followers()) < known + streams:
        await here.http.get("/v1")
    found = await here.server.host.get(session)
    for _ in range(MESSAGES):
        sent = await here.http.post(f"/v1/sessions/{session}/messages", json={"text": f"[[say:{'x' * CHARS}]]"})
        await found.wait(sent.json()["turn"])
    for _ in range(10):  # what can be sent is sent
        await here.http.get("/v1")
    stuck = [each for each in _followers() if each.waiting]
    assert len(stuck) >= streams, "they do not read"
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    for client in clients:
        client.close()
    return grown


async def test_events_are_kept_once_for_all_streams_that_never_read(tmp_path: Path) -> None:
    async with standing(tmp_path, agents=("scripted",)) as here:
        await _grown(here, 1)
        tracemalloc.start()
        try:
            alone = await _grown(here, 1)
            many = await _grown(here, 1 + STREAMS)
        finally:
            tracemalloc.stop()
    assert (many - alone) / STREAMS < KEPT
