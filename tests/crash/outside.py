"""Clients outside of the host, one for each door: each talks, reads, and goes on with its cursor after a kill."""

import asyncio
import contextlib
import itertools
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

import httpx
import websockets
from websockets.asyncio.client import connect

from portico.doors.ahp.wire import uri
from portico.server.home import Home
from tests.doors.ahp.wire_client import Json, WireClient

PROMPTS = ["[[deltas:60]]", "[[deltas:15]] [[gap:2]]", "[[tool:absent|x]] [[say:hi]]", "[[say:short]]", "[[crash]]"]
GUARD = 120.0
"""Seconds: far above what a busy machine needs."""
CUT = (ConnectionError, websockets.WebSocketException)
STREAM = {"Accept": "text/event-stream", "Accept-Encoding": "identity"}


class Service(Protocol):
    """The host as its clients know it: an address that changes with every restart."""

    url: str
    home: Path
    generation: int
    done: asyncio.Event
    counts: Counter[str]
    rng: random.Random

    def saw(self, count: int = 1) -> None: ...
    async def restarted(self, generation: int) -> None: ...


class Outside:
    name = ""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.rng = random.Random(service.rng.random())
        home = Home(service.home)
        home.make()
        headers = {"Authorization": f"Bearer {home.token()}"}
        self.http = httpx.AsyncClient(headers=headers, timeout=GUARD, trust_env=False)
        self.once: set[str] = set()
        """Acknowledged: in the log exactly once."""
        self.at_most_once: set[str] = set()
        """The answer never came, and the door has no ids."""
        self._numbers = itertools.count(1)
        self._changed = asyncio.Event()
        self._cursor = "0"

    def talks(self) -> bool:
        """Until the run is over, but at least once: on a busy machine the host may be killed before the first time."""
        return not self.once or not self.service.done.is_set()

    def fresh(self) -> str:
        return f"{self.name}-{next(self._numbers)}"

    def prompt(self) -> str:
        return f"{self.rng.choice(PROMPTS)} {self.fresh()}."

    def wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def ask(self, method: str, path: str, key: str = "", **more: Any) -> Any:
        """Until it is answered, if it is a read or has an id; else it is asked once, and None says: no answer came."""
        headers = {"Idempotency-Key": key} if key else {}
        while True:
            generation = self.service.generation
            try:
                answer = await self.http.request(method, self.service.url + path, headers=headers, **more)
            except httpx.TransportError as error:
                await self.service.restarted(generation)
                self.wake()
                if method != "GET" and not isinstance(error, httpx.ConnectError):
                    if not key:
                        return None
                    self.service.counts[f"commands repeated ({self.name})"] += 1
                continue
            if answer.status_code == 429:
                await asyncio.sleep(float(answer.headers["Retry-After"]))
                continue
            assert answer.status_code < 400, f"{method} {path}: {answer.status_code} {answer.text}"
            self.service.counts["commands acknowledged" if method != "GET" else "reads"] += 1
            return answer.json() if answer.content else {}

    async def frames(self, path: str) -> AsyncIterator[dict[str, str]]:
        """Server-sent events over all restarts; a frame that was cut in two was not seen by anybody."""
        while True:
            generation = self.service.generation
            with contextlib.suppress(httpx.TransportError):
                headers = {**STREAM, "Last-Event-ID": self._cursor}
                async with self.http.stream("GET", self.service.url + path, headers=headers) as answer:
                    assert answer.status_code == 200, await answer.aread()
                    fields: dict[str, str] = {}
                    async for line in answer.aiter_lines():
                        if line:
                            name, _, value = line.partition(": ")
                            fields[name] = value
                        elif fields:
                            if "id" in fields:
                                self._cursor = fields["id"]
                                yield fields
                            fields = {}
            await self.service.restarted(generation)
            self.wake()

    async def close(self) -> None:
        await self.http.aclose()

    async def talk(self) -> None:
        raise NotImplementedError

    async def read(self) -> None:
        raise NotImplementedError


class Rest(Outside):
    """Commands with ids, and all channels as one stream."""

    name = "rest"

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self.seen: list[Json] = []
        self.titles: set[str] = set()
        self._running: set[str] = set()
        self._waiting: set[str] = set()
        self.session = ""

    async def read(self) -> None:
        async for frame in self.frames("/v1/events"):
            record = json.loads(frame["data"])
            self.seen.append(record)
            self._apply(record["channel"], record["event"])
            self.service.saw()
            self.wake()

    def _apply(self, channel: str, event: Json) -> None:
        if channel != f"session/{self.session}":
            return
        match event["type"]:
            case "turn.started":
                self._running.add(event["turn"])
                self._waiting.discard(event.get("pending", ""))
            case "turn.ended":
                self._running.discard(event["turn"])
            case "queue.added":
                self._waiting.add(event["pending"])

    async def talk(self) -> None:
        self.session = (await self.ask("POST", "/v1/sessions", self.fresh(), json={"agent": "scripted"}))["id"]
        while self.talks():
            for _ in range(self.rng.choice([1, 1, 2])):
                await self._send()
            if self.rng.random() < 0.5:
                await self._rename()
            await self._idle()

    async def _send(self) -> None:
        text = self.prompt()
        await self.ask("POST", f"/v1/sessions/{self.session}/messages", text, json={"text": text})
        self.once.add(text)

    async def _rename(self) -> None:
        title = self.fresh()
        more: Json = self.rng.choice([{}, {"archived": False}, {"config": {"named": title}, "archived": False}])
        await self.ask("PATCH", f"/v1/sessions/{self.session}", title, json={"title": title, **more})
        self.titles.add(title)

    async def _idle(self) -> None:
        """A queue is held after a kill: it is released until nothing waits any more."""
        while True:
            changed = self._changed
            if not self._running and not self._waiting:
                return
            if not self._running:
                await self.ask("POST", f"/v1/sessions/{self.session}/queue/release", self.fresh(), json={})
            await changed.wait()

    async def caught_up(self) -> None:
        """Until it has seen everything that is in the log now."""
        head = (await self.ask("GET", "/v1/events?after=0&limit=1"))["head"]
        while not self.seen or self.seen[-1]["seq"] < head:
            await self._changed.wait()


class Anywhere(Outside):
    name = "anywhere"

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self.seen: list[tuple[int, str, str]] = []
        """Place in the log, kind, id of the message."""
        self._done: set[str] = set()

    async def read(self) -> None:
        async for frame in self.frames("/events"):
            ident = json.loads(frame["data"])["id"]
            self.seen.append((int(frame["id"].partition(".")[0]), frame["event"], ident))
            self._done |= {ident} if frame["event"] == "done" else set()
            self.service.saw()
            self.wake()

    async def talk(self) -> None:
        while self.talks():
            text = self.prompt()
            sent = await self.ask("POST", "/message", text, json={"text": text, "agent": "scripted"})
            self.once.add(text)
            while sent["id"] not in self._done:
                await self._changed.wait()


class Portal(Outside):
    """No ids: what was not answered may have been done or not. The host keeps the cursor."""

    name = "portal"

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self.session = ""
        self.answers: list[list[Json]] = []
        self._idle = 0

    async def talk(self) -> None:
        self.session = await self._start()
        self.wake()
        while self.talks():
            generation, idle, text = self.service.generation, self._idle, self.prompt()
            answer = await self.ask("POST", f"/api/copilot/session/{self.session}/query", content=text)
            assert answer in ({}, None), answer
            (self.at_most_once if answer is None else self.once).add(text)
            while self._idle == idle and self.service.generation == generation:
                await self._changed.wait()
            if self.service.generation != generation:
                await self.ask("POST", f"/v1/sessions/{self.session}/queue/release", self.fresh(), json={})

    async def _start(self) -> str:
        while True:
            made = await self.ask("POST", "/api/copilot/session/start/gpt-5-mini")
            if made is not None:
                return str(made["sessionId"])

    async def read(self) -> None:
        while not self.session:
            await self._changed.wait()
        while True:
            answer = await self.ask("GET", f"/api/copilot/session/{self.session}/live/page?seq=1&prompts=1")
            elements = answer.get("responses", [])
            if elements:
                self.answers.append(elements)
                self._idle += sum(each.get("callback") == "onIdle" for each in elements)
                self.service.saw(len(elements))
                self.wake()


class _Editor(WireClient):
    service: Service

    async def open(self) -> None:
        self.socket = await connect(self.url, max_size=None, ping_interval=None, compression=None, open_timeout=GUARD)
        self._reader = asyncio.create_task(self._read(self.socket))

    async def request(self, method: str, **params: Any) -> Any:
        """Without a time limit of its own: the run has one."""
        message = await (await self.start_request(method, **params))
        assert "error" not in message, message
        return message["result"]

    def hear(self, envelope: Json) -> None:
        super().hear(envelope)
        self.service.saw()


class Ahp(Outside):
    """An editor: what it knows is the fold of what it heard, and an action that got no echo is said again."""

    name = "ahp"
    session = "scripted:/editor"

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self.client = self._editor("editor")
        self.chat = uri.default_chat(self.session)
        self.answers: Counter[str] = Counter()

    def _editor(self, name: str) -> _Editor:
        made = _Editor("", name, "0.9.0")
        made.service = self.service
        return made

    @property
    def url(self) -> str:
        token = self.http.headers["Authorization"].removeprefix("Bearer ")
        return f"{self.service.url}/ahp?tkn={token}".replace("http", "ws", 1)

    async def read(self) -> None:
        """The client reads by itself."""

    async def talk(self) -> None:
        await self._open()
        while self.talks():
            text = self.prompt()
            await self._say(self.fresh(), text)
            self.once.add(text)

    async def _open(self) -> None:
        """A session that was made before the kill is there: it is subscribed to, not made again."""
        while True:
            generation = self.service.generation
            try:
                self.client.url = self.url
                await self.client.open()
                await self._unless_cut(self.client.initialize())
                await self._create()
                await self._unless_cut(self.client.subscribe(self.session))
                await self._unless_cut(self.client.subscribe(self.chat))
            except CUT:
                await self.service.restarted(generation)
                continue
            return

    async def _create(self) -> None:
        """A draft that was made before the kill is not listed, but it is there."""
        listed = (await self.ask("GET", "/v1/sessions"))["sessions"]
        if any(each.get("uri") == self.session for each in listed):
            return
        answer = await self._unless_cut(await self.client.start_request("createSession", channel=self.session))
        error = answer.get("error", {}).get("message", "already")
        assert "already" in error, answer

    async def _say(self, turn: str, text: str) -> None:
        said = False
        while True:
            generation = self.service.generation
            try:
                await self._say_once(turn, text)
                await self._unless_cut(self.client.wait(lambda: self._ended(turn), GUARD))
            except CUT:
                self.service.counts["commands repeated (ahp)"] += not said
                said = True
                await self._reconnect(generation)
                continue
            return

    async def _say_once(self, turn: str, text: str) -> None:
        message = {"text": text, "origin": {"kind": "user"}}
        fields = {"turnId": turn, "startedAt": "2026-01-01T00:00:00.000Z", "message": message}
        await self.client.dispatch(self.chat, "chat/turnStarted", **fields)

    def _ended(self, turn: str) -> bool:
        state = self.client.states[self.chat]
        return "activeTurn" not in state and any(each["id"] == turn for each in state["turns"])

    async def _reconnect(self, generation: int) -> None:
        while True:
            await self.service.restarted(generation)
            generation = self.service.generation
            self.client.url = self.url
            try:
                await self.client.open()
                known = {"lastSeenServerSeq": self.client.last_seen, "subscriptions": [*self.client.states]}
                answer = await self._unless_cut(self.client.request("reconnect", clientId="editor", **known))
            except CUT:
                continue
            self.answers[answer["type"]] += 1
            return

    async def _unless_cut(self, doing: Any) -> Any:
        """An answer never comes from a connection that is gone."""
        task, reader = asyncio.ensure_future(doing), self.client._reader
        await asyncio.wait({task, *([reader] if reader is not None else [])}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return await task
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, *CUT):
            await task
        if reader is not None:
            await reader  # what it heard was wrong
        raise ConnectionError("the host is gone")

    async def caught_up(self) -> None:
        """What it knows by its cursors is what a new editor is told."""
        other = self._editor("other")
        other.url = self.url
        await other.open()
        await other.initialize()
        await other.subscribe(self.session)
        await other.subscribe(self.chat)
        await self.client.wait(lambda: self._known(self.client) == self._known(other), GUARD)
        await other.close()

    def _known(self, client: WireClient) -> Json:
        """A chat's title changes in its session's list only: no action of the chat's own channel has it."""
        return {"chats": client.states[self.session]["chats"], **client.states[self.chat], "title": ""}

    async def close(self) -> None:
        await self.client.close()
        await super().close()
