"""A bug while a board or a terminal is sent or read is logged, and the client gets a close frame with 1011."""

import logging
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from portico.doors.rest import attachment, board
from portico.kernel.errors import LogUnavailable, TooSlow
from tests.doors import sharing
from tests.doors.standing import Standing

anyio_backend, shared = sharing.anyio_backend, sharing.shared

ENDS: dict[str, tuple[Exception | None, int, bool]] = {
    "a bug": (ValueError("a bug"), 1011, True),
    "the log is away": (LogUnavailable("gone"), 1011, False),
    "the reader is too slow": (TooSlow("slow"), 1013, False),
}
"""What ends the task, the code that the client gets, and whether the log has it."""


async def closed(here: Standing, path: str, *frames: str) -> int | None:
    address = here.url.replace("http", "ws", 1) + path
    headers = {"Authorization": f"Bearer {here.home.token()}"}
    async with connect(address, additional_headers=headers, proxy=None) as socket:
        try:
            for frame in frames:
                await socket.send(frame)
            while True:
                await socket.recv()
        except ConnectionClosed as error:
            return error.rcvd.code if error.rcvd is not None else None


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("task", ["send the board", "read the board", "send a terminal", "read a terminal"])
async def test_the_end_of_a_task(
    shared: Standing,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    task: str,
    end: str,
) -> None:
    error, code, logged = ENDS[end]

    async def fail(*args: Any) -> None:
        assert error is not None
        raise error

    opened = await shared.http.post("/v1/terminals", json={})
    terminal = opened.json()["id"]
    path = "/v1/board/socket" if "board" in task else f"/v1/terminals/{terminal}/socket"
    patched: dict[str, tuple[Any, str]] = {
        "send the board": (board, "_send_board"),
        "read the board": (board, "_until_gone"),
        "send a terminal": (attachment.Attachment, "_show"),
        "read a terminal": (attachment.Attachment, "_take"),
    }
    monkeypatch.setattr(*patched[task], fail)
    with caplog.at_level(logging.ERROR, "portico.tasks"):
        assert await closed(shared, path) == code
    await shared.http.delete(f"/v1/terminals/{terminal}")
    assert bool([record for record in caplog.records if record.name == "portico.tasks"]) is logged
