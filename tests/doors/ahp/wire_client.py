"""A raw WebSocket client for tests: it keeps what it hears and folds it with our reducers, as an editor would."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import websockets
from websockets.asyncio.client import ClientConnection, connect

from portico.doors.ahp.wire import uri
from portico.doors.ahp.wire.versions import Dialect
from portico.testing.ahp import reducer
from tests.doors.ahp import valid

Json = dict[str, Any]
WAIT = 30.0


class Refused(Exception):
    def __init__(self, error: Json) -> None:
        super().__init__(error["message"])
        self.code = error["code"]
        self.data = error.get("data")


class WireClient:
    def __init__(self, url: str, client_id: str, version: str) -> None:
        self.url = url
        self.client_id = client_id
        self.version = version
        self.about: Json | None = {"name": "vscode-editor-window"}
        """Its `clientInfo`: as VS Code sends it, whose sessions are drafts until their first message."""
        self.dialect = Dialect(version, lambda: 0)
        self.states: dict[str, Json] = {}
        self.kinds: dict[str, str] = {}
        self.envelopes: list[Json] = []
        self.notices: list[Json] = []
        self.asked: list[Json] = []
        self.last_seen = 0
        self.client_seq = 0
        self.next_id = 0
        self._replies: dict[int, asyncio.Future[Any]] = {}
        self._methods: dict[Any, str] = {}
        self.wrong: list[str] = []
        self._changed: asyncio.Event = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self._answering: asyncio.Future[None] | None = None
        self.socket: ClientConnection | None = None
        self.answer: Callable[[Json], Any] | None = None

    @property
    def seed(self) -> bool:
        return self.dialect.seed

    @property
    def root(self) -> str:
        return uri.SEED_ROOT if self.seed else uri.ROOT

    # -- the connection ----------------------------------------------------------------------------------------

    async def open(self) -> None:
        self.socket = await connect(self.url, max_size=None, ping_interval=None, compression=None)
        self._reader = asyncio.create_task(self._read(self.socket))

    async def drop(self) -> None:
        """As when the network goes: no goodbye."""
        assert self.socket is not None
        assert self._reader is not None
        self.socket.transport.abort()
        await asyncio.wait({self._reader})

    async def close(self) -> None:
        if self.socket is not None:
            await self.socket.close()
        if self._reader is not None:
            await asyncio.wait({self._reader})

    async def _read(self, socket: ClientConnection) -> None:
        try:
            async for frame in socket:
                self._take(json.loads(frame))
        except websockets.ConnectionClosed:
            pass
        finally:
            self._wake()

    def _take(self, message: Json) -> None:
        if "method" in message and "id" in message:
            self.asked.append(message)
            reply = {"jsonrpc": "2.0", "id": message["id"]}
            assert self.socket is not None
            result = self.answer(message) if self.answer else None
            self._answering = asyncio.ensure_future(self.socket.send(json.dumps({**reply, "result": result})))
        elif message.get("method") == "action":
            self.hear(message["params"])
        elif "method" in message:
            self.notices.append(message)
            self._check(valid.check_notice, message)
        else:
            method = self._methods.pop(message.get("id"), None)
            if method is not None and "error" not in message:
                self._check(valid.check_result, method, message["result"])
            self._apply(message.get("result"))
            future = self._replies.pop(message.get("id"), None)  # type: ignore[arg-type]
            if future is None:
                self.notices.append(message)
            elif not future.done():
                future.set_result(message)
        self._wake()

    def _check(self, check: Callable[..., None], *what: Any) -> None:
        """Against the published schemas; what does not fit is told at the end of the test."""
        if valid.knows(self.version):
            try:
                check(self.version, *what)
            except AssertionError as error:
                self.wrong.append(str(error))

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait(self, condition: Callable[[], Any], seconds: float = WAIT) -> Any:
        async with asyncio.timeout(seconds):
            while not (found := condition()):
                await self._changed.wait()
            return found

    # -- messages ----------------------------------------------------------------------------------------------

    async def send_raw(self, text: str | bytes) -> None:
        assert self.socket is not None
        await self.socket.send(text)

    async def request(self, method: str, **params: Any) -> Any:
        future = await self.start_request(method, **params)
        async with asyncio.timeout(WAIT):
            message = await future
        if "error" in message:
            raise Refused(message["error"])
        return message["result"]

    async def start_request(self, method: str, **params: Any) -> "asyncio.Future[Any]":
        self.next_id += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._replies[self.next_id] = future
        self._methods[self.next_id] = method
        await self.send_raw(json.dumps({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}))
        return future

    async def notify(self, method: str, **params: Any) -> None:
        await self.send_raw(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}))

    # -- the protocol ------------------------------------------------------------------------------------------

    async def initialize(self, *subscriptions: str, **more: Any) -> Json:
        versions: Json = {"protocolVersion": 1} if self.seed else {"protocolVersions": [self.version]}
        channel: Json = {} if self.seed else {"channel": uri.ROOT}
        result: Json = await self.request(
            "initialize",
            **channel,
            **versions,
            clientId=self.client_id,
            initialSubscriptions=list(subscriptions),
            **({} if self.about is None else {"clientInfo": self.about}),
            **more,
        )
        return result

    @property
    def claim(self) -> Json:
        """The claim of a terminal that this client opens for itself."""
        return {"kind": "client", "clientId": self.client_id}

    async def reconnect(self) -> Json:
        await self.open()
        result: Json = await self.request(
            "reconnect",
            clientId=self.client_id,
            lastSeenServerSeq=self.last_seen,
            subscriptions=list(self.states),
        )
        return result

    async def subscribe(self, name: str, **more: Any) -> Json:
        field = "resource" if self.seed else "channel"
        result: Json = await self.request("subscribe", **{field: name}, **more)
        return result

    def _apply(self, result: Any) -> None:
        """At once, before any frame behind it is read: a snapshot's place is between two actions."""
        if not isinstance(result, dict):
            return
        self.last_seen = max(self.last_seen, result.get("serverSeq", 0))
        for snapshot in [*result.get("snapshots", []), *([result["snapshot"]] if "snapshot" in result else [])]:
            self._snapshot(snapshot)
        for envelope in result.get("actions", []):
            self.hear(envelope)

    def _snapshot(self, snapshot: Json) -> None:
        name = snapshot["resource"]
        self.states[name] = snapshot["state"]
        self.kinds[name] = _kind(snapshot["state"])
        self._check(valid.check_state, self.kinds[name], snapshot["state"])
        self.last_seen = max(self.last_seen, snapshot["fromSeq"])

    def hear(self, envelope: Json) -> None:
        assert envelope["serverSeq"] > self.last_seen, (envelope, self.last_seen)
        self.last_seen = envelope["serverSeq"]
        self.envelopes.append(envelope)
        if envelope.get("rejectionReason") is None:
            self._check(valid.check_action, envelope["action"])
        if "rejectionReason" in envelope:
            return
        name = self._channel(envelope)
        if name in self.states:
            kind: Any = self.kinds[name]
            self.states[name] = reducer.reduce(kind, self.states[name], envelope["action"], self.dialect)

    def _channel(self, envelope: Json) -> str:
        if not self.seed:
            return str(envelope["channel"])
        action = envelope["action"]
        return str(action.get("session") or action.get("terminal") or uri.SEED_ROOT)

    async def dispatch(self, name: str, kind: str, /, **fields: Any) -> int:
        """Says an action; returns its clientSeq."""
        self.client_seq += 1
        action: Json = {"type": kind, **fields}
        if self.seed:
            if not kind.startswith("root/"):
                action["terminal" if kind.startswith("terminal/") else "session"] = name
            await self.notify("dispatchAction", clientSeq=self.client_seq, action=action)
        else:
            await self.notify("dispatchAction", channel=name, clientSeq=self.client_seq, action=action)
        return self.client_seq

    async def act(self, name: str, kind: str, /, **fields: Any) -> Json:
        """Says an action and waits for its echo."""
        seq = await self.dispatch(name, kind, **fields)
        return await self.echo(seq)

    async def echo(self, seq: int) -> Json:
        found: list[Json] = await self.wait(lambda: self.echoes(seq))
        return found[0]

    def echoes(self, seq: int) -> list[Json]:
        origin = {"clientId": self.client_id, "clientSeq": seq}
        return [each for each in self.envelopes if each.get("origin") == origin]

    def actions(self, kind: str) -> list[Json]:
        return [each["action"] for each in self.envelopes if each["action"]["type"] == kind]

    async def action(self, kind: str) -> Json:
        found: list[Json] = await self.wait(lambda: self.actions(kind))
        return found[-1]

    # -- a conversation, in the words of either dialect --------------------------------------------------------

    async def create_session(self, name: str, **more: Any) -> str:
        """Creates, subscribes, and returns the name of the conversation's channel."""
        if self.seed:
            await self.request("createSession", session=name, **more)
            await self.subscribe(name)
            return name
        await self.request("createSession", channel=name, **more)
        await self.subscribe(name)
        chat = uri.default_chat(name)
        await self.subscribe(chat)
        return chat

    def verb(self, name: str) -> str:
        return f"session/{name}" if self.seed else f"chat/{name}"

    async def say(self, chat: str, turn: str, text: str, **more: Any) -> Json:
        said: Json = {"text": text} if self.seed else {"text": text, "origin": {"kind": "user"}}
        field = "userMessage" if self.seed else "message"
        times: Json = {} if self.seed else {"startedAt": "2026-01-01T00:00:00.000Z"}
        return await self.act(chat, self.verb("turnStarted"), turnId=turn, **{field: said}, **times, **more)

    async def idle(self, chat: str) -> Json:
        await self.wait(lambda: "activeTurn" not in self.states[chat])
        return self.states[chat]


def _kind(state: Json) -> str:
    if "agents" in state:
        return "root"
    if "turns" in state and "summary" in state:
        return "session"
    if "turns" in state:
        return "chat"
    if "chats" in state:
        return "session"
    if "entries" in state:
        return "automation"
    if "sessions" in state:
        return "automationRun"
    if "claim" in state:
        return "terminal"
    if "annotations" in state and isinstance(state["annotations"], list):
        return "annotations"
    return "changeset" if "files" in state else "resourceWatch"


@asynccontextmanager
async def opened(client: WireClient) -> AsyncIterator[WireClient]:
    await client.open()
    try:
        yield client
    finally:
        await client.close()
