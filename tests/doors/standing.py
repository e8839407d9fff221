"""A whole host inside a test: the real server on a free port, and a client for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec

from portico.command_shapes import method_name
from portico.kernel.commands import COMMANDS
from portico.server.home import Home
from portico.server.serve_options import ServeOptions
from portico.server.server import Server

TOOLS = [*(method_name(kind) for kind in COMMANDS.values()), "answer", "all"]
"""What a token of a test that is about something else may use through MCP."""


class Standing:
    """A running server. `http` carries the owner's token, `stranger` nothing."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.home = server.home
        self.url = server.url
        self.http = self.client(server.home.token())
        self.stranger = self.client()

    def client(self, token: str | None = None, **headers: str) -> httpx.AsyncClient:
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        # httpx names itself after a browser's neighbour in no header, so a plain client counts as a program.
        return httpx.AsyncClient(base_url=self.url, headers=headers, timeout=30, trust_env=False)

    async def close(self) -> None:
        await self.http.aclose()
        await self.stranger.aclose()

    async def start(self, **body: Any) -> str:
        answer = await self.http.post("/v1/sessions", json={"agent": "scripted", **body})
        assert answer.status_code == 201, answer.text
        ident: str = answer.json()["id"]
        return ident

    async def say(self, session: str, text: str) -> dict[str, Any]:
        """Sends and waits for the end of the turn; the session's state then."""
        answer = await self.http.post(f"/v1/sessions/{session}/messages", json={"text": text})
        assert answer.status_code == 202, answer.text
        turn = answer.json()["turn"]
        found = await self.server.host.get(session)
        async with asyncio.timeout(30):
            await found.wait(turn)
        state: dict[str, Any] = (await self.http.get(f"/v1/sessions/{session}")).json()
        return state


def options(folder: Path, **given: Any) -> ServeOptions:
    flags = {"server.port": 0, "workspaces": [str(folder)], **given.pop("flags", {})}
    return ServeOptions(
        home=Home(folder / "home"), flags=flags, agents=given.pop("agents", ("scripted", "demo")), **given
    )


@asynccontextmanager
async def standing(folder: Path, **given: Any) -> AsyncIterator[Standing]:
    async with Server(options(folder, **given)) as server:
        here = Standing(server)
        try:
            yield here
        finally:
            await here.close()


def problem(answer: httpx.Response, status: int, code: str, field: str | None = None) -> str:
    """The error form of every door of ours: returns the message, after checking all the rest."""
    body = answer.json()
    assert (answer.status_code, body["code"], body.get("field")) == (status, code, field), answer.text
    assert "Traceback" not in answer.text
    message: str = body["error"]
    return message


async def read_events(answer: httpx.Response, count: int) -> list[tuple[int, dict[str, Any]]]:
    """The first so many (id, data) of an event stream."""
    found: list[tuple[int, dict[str, Any]]] = []
    rest = b""
    async with asyncio.timeout(30):
        async for data in answer.aiter_bytes():
            *frames, rest = (rest + data).split(b"\n\n")
            for frame in frames:
                fields = dict(line.split(b": ", 1) for line in frame.split(b"\n"))
                if b"id" in fields:
                    found.append((int(fields[b"id"].partition(b".")[0]), msgspec.json.decode(fields[b"data"])))
            if len(found) >= count:
                break
    return found
