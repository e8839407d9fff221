"""Readers at the doors of a cluster: each goes on at another host with the cursor of the one before."""

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import Any

import httpx
import websockets

from portico.doors.ahp.wire import uri
from tests.doors.ahp.wire_client import Json, Refused, WireClient

HOP_SECONDS = 3.0
"""At most so long at one host; one that is paused says nothing."""
CUT = (httpx.HTTPError, OSError, TimeoutError, websockets.WebSocketException, Refused)
STREAM = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}


class Reader:
    name = ""

    def __init__(self, http: httpx.AsyncClient, session: str, host: Callable[[], str], chance: random.Random) -> None:
        self.http, self.session, self.host, self.random = http, session, host, chance
        self.hops = 0

    async def read(self, done: asyncio.Event) -> None:
        while not done.is_set():
            self.hops += 1
            with contextlib.suppress(*CUT):
                async with asyncio.timeout(self.random.uniform(0.2, HOP_SECONDS)):
                    await self.visit(self.host())
            await asyncio.sleep(0.05)

    async def visit(self, host: str) -> None:
        """Until it is cut off."""
        raise NotImplementedError

    async def check(self, positions: dict[int, int]) -> int:
        """What it has seen, against the session's positions by `seq`; how much that was."""
        raise NotImplementedError


class Stream(Reader):
    """Server-sent events with `Last-Event-ID`."""

    name = "stream"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.cursor = "0"
        self.seen: list[int] = []

    async def visit(self, host: str) -> None:
        headers = {**STREAM, "Last-Event-ID": self.cursor}
        async with self.http.stream("GET", f"{host}/v1/sessions/{self.session}/events", headers=headers) as answer:
            answer.raise_for_status()
            cursor = self.cursor
            async for line in answer.aiter_lines():
                if line.startswith("id: "):
                    cursor = line.removeprefix("id: ")
                elif not line and cursor != self.cursor:  # a frame that was cut in two was seen by nobody
                    self.cursor = cursor
                    self.seen.append(int(cursor.partition(".")[0]))

    async def check(self, positions: dict[int, int]) -> int:
        assert self.seen == [*positions.values()][: len(self.seen)], "a stream has seen a prefix"
        return len(self.seen)


class Page(Reader):
    """A page's long poll, whose cursor the hosts keep."""

    name = "page"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.seen: list[int] = []

    async def visit(self, host: str) -> None:
        while True:
            answer = await self.http.get(f"{host}/api/copilot/session/{self.session}/live/chaos?seq=1&prompts=1")
            answer.raise_for_status()
            self.seen += dict.fromkeys(each["seq"] for each in answer.json().get("responses", []))

    async def check(self, positions: dict[int, int]) -> int:
        assert self.seen == sorted(set(self.seen)), "a page has seen something twice or out of order"
        assert set(self.seen) <= positions.keys(), "a page has seen what is not there"
        return len(self.seen)


class Editor(Reader):
    """An editor that reconnects: what it knows is the fold of what it heard."""

    name = "editor"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.channel = uri.default_chat(f"scripted:/{self.session}")
        self.client = self._client("editor")

    def _client(self, name: str) -> WireClient:
        return WireClient("", f"{name}-{self.session}", "0.9.0")

    def _at(self, client: WireClient, host: str) -> WireClient:
        token = self.http.headers["authorization"].removeprefix("Bearer ")
        client.url = f"{host}/ahp?tkn={token}".replace("http", "ws", 1)
        return client

    async def visit(self, host: str) -> None:
        client = self._at(self.client, host)
        try:
            if client.states:
                await client.reconnect()
            else:
                await client.open()
                await client.initialize()
                await client.subscribe(self.channel)
            assert client._reader is not None
            await asyncio.wait({client._reader})
            await client._reader  # what it heard was wrong
        finally:
            if client.socket is not None:
                await client.drop()

    async def check(self, positions: dict[int, int]) -> int:
        """What it knows by its cursors is what a new editor is told."""
        async with asyncio.timeout(60):
            other = self._at(self._client("other"), self.host())
            await other.open()
            await other.initialize()
            await other.subscribe(self.channel)
            await self._at(self.client, self.host()).reconnect()
            await self.client.wait(lambda: _known(self.client, self.channel) == _known(other, self.channel))
        assert self.client.wrong == []
        for client in (self.client, other):
            await client.close()
        return len(self.client.envelopes)


def _known(client: WireClient, channel: str) -> Json:
    """A chat's title changes in its session's list only."""
    return {**client.states[channel], "title": ""}


READERS: tuple[type[Reader], ...] = (Stream, Page, Editor)
