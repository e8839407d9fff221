"""The last word to a client whose connection the gate ends: as its protocol wants it, and only if one is due."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message

from portico.server import stream_end
from portico.server.stream_end import POLICY_VIOLATION, SERVICE_RESTART, StreamEnd

START: Message = {"type": "http.response.start", "status": 200, "headers": []}
PIECE: Message = {"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True}
LAST: Message = {"type": "http.response.body", "body": b""}
ACCEPT: Message = {"type": "websocket.accept"}
CLOSE: Message = {"type": "websocket.close", "code": 1000}
EMPTY: Message = {"type": "http.response.body", "body": b"", "more_body": False}


async def ended(kind: str, said: list[Message], code: int) -> list[Message]:
    """What is sent behind what was said."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    end = StreamEnd({"type": kind, "path": "/v1/events", "method": "GET", "headers": []}, send)
    for message in said:
        await end.send(message)
    del sent[:]
    await end.say(code)
    return sent


@pytest.mark.parametrize(
    ("kind", "said", "code", "last"),
    [
        ("http", [START, PIECE], POLICY_VIOLATION, [EMPTY]),
        ("http", [START, PIECE], SERVICE_RESTART, [EMPTY]),
        ("http", [START], SERVICE_RESTART, [EMPTY]),
        ("http", [START, PIECE, LAST], SERVICE_RESTART, []),
        ("websocket", [ACCEPT, CLOSE], SERVICE_RESTART, []),
        (
            "websocket",
            [ACCEPT],
            SERVICE_RESTART,
            [{"type": "websocket.close", "code": 1012, "reason": "the host stops"}],
        ),
        (
            "websocket",
            [ACCEPT],
            POLICY_VIOLATION,
            [{"type": "websocket.close", "code": 1008, "reason": "the token was revoked"}],
        ),
    ],
    ids=["revoked", "stopping", "before any piece", "done already", "closed already", "socket stops", "socket revoked"],
)
async def test_what_a_connection_hears_last(kind: str, said: list[Message], code: int, last: list[Message]) -> None:
    assert await ended(kind, said, code) == last


@pytest.mark.parametrize(("code", "status"), [(SERVICE_RESTART, 503), (POLICY_VIOLATION, 401)])
async def test_who_has_heard_nothing_yet_gets_an_error(code: int, status: int) -> None:
    start, body = await ended("http", [], code)
    assert start["status"] == status
    assert b'"error"' in body["body"]


async def test_a_client_that_takes_nothing_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_end, "_LAST_WORD_SECONDS", 0.01)

    async def stuck(message: Any) -> None:
        await asyncio.Event().wait()

    await StreamEnd({"type": "websocket", "path": "/"}, stuck).say(SERVICE_RESTART)
