"""A real host behind a real server, and clients of it."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvicorn
import yaml

from portico import limits
from portico.agents import script as s
from portico.agents.scripted import ScriptedAgent
from portico.doors.ahp.connection.broker import Broker
from portico.doors.ahp.door import build
from portico.kernel.log.sqlite import SqliteLog
from portico.server.app import App
from portico.server.compose import build_host
from portico.server.gate import Gate
from portico.server.home import Home
from portico.server.identity import Tokens
from portico.server.settings_load import load
from portico.server.websocket import WsProtocol
from tests.doors.ahp.wire_client import WireClient

SCRIPT = """
providers:
  - id: scripted
    name: Scripted
    steer: true
    customizations:
      - {type: mcpServer, id: "mcp:search", uri: "settings:/search", name: search}
      - type: plugin
        id: tools
        uri: "https://plugins.example/tools"
        name: Tools
        children: [{type: skill, id: tools/review, uri: "https://plugins.example/tools/review", name: review}]
    config:
      properties:
        flavour: {type: string, title: Flavour, enumDynamic: true}
    completions:
      flavour: [{value: sweet, label: Sweet}, {value: sour, label: Sour}]
      "/": [{value: review, label: Review}]
  - id: vendor
    name: Vendor
    sign_in: {resource: "https://vendor.example", name: Vendor Cloud, scopes: [ask], token: good-token}
rules:
  - match: ^edit (?P<file>\\S+)
    steps:
      - {do: write, path: "{file}", text: "three\\n", append: true}
  - match: ^context
    steps:
      - {do: say, text: "{context}|{prompt}|{attached}"}
  - match: ^stream
    steps:
      - {do: tool, name: look, input: {where: here}, input_deltas: 3, output: seen, structured: {n: 1}}
  - match: ^expire
    steps:
      - {do: say, text: half}
      - {do: sign_out}
  - match: ^write
    steps:
      - do: tool
        name: write
        input: {path: a.txt}
        output: written
        permission: {kind: write, path: "{cwd}/.env", editable: true}
      - {do: say, text: done}
  - match: ^run (?P<line>.*)
    steps:
      - do: tool
        name: bash
        kind: execute
        input: {command: "{line}", description: List things}
        output: "made\\n"
        permission: {kind: shell, command: "{line}", title: List things, editable: true}
      - {do: say, text: done}
  - match: ^result
    steps:
      - {do: tool, name: fetch, partial: [half], output: page, structured: {n: 1}, confirm_result: true}
      - {do: say, text: done}
  - match: ^ask
    steps:
      - do: ask
        text: Which?
        fields:
          - {id: which, kind: text, message: Which, required: true}
          - {id: many, kind: number, message: How many}
      - {do: say, text: ok}
  - match: ^child
    steps:
      - {do: spawn, prompt: look, title: Looker, steps: [{do: say, text: found}]}
      - {do: say, text: done}
  - match: ^delegate
    steps:
      - {do: spawn, prompt: look, title: Writer, steps: [{do: write, path: c.txt, text: "child\\n", ask: false}]}
      - {do: write, path: a.txt, text: "four\\n", append: true, ask: false}
  - match: ^hold
    steps:
      - {do: say, text: half}
      - {do: delay, ms: 600000}
  - match: ^fail
    steps:
      - {do: say, text: half}
      - {do: fail, message: it broke}
  - match: ^client
    steps:
      - {do: tool, name: pick, input: {n: 1}, input_deltas: 2, session_tool: true}
      - {do: say, text: "picked"}
  - match: ^peek
    steps:
      - {do: tool, name: readActiveDocument, session_tool: true}
  - match: ^apply
    steps:
      - {do: tool, name: applyActiveEdit, input: {content: "new text\\n"}, session_tool: true}
  - match: ^patch
    steps:
      - do: tool
        name: applyActiveEdit
        input: {diff: "--- a\\n+++ b\\n@@ -1 +1 @@\\n-unsaved\\n+patched\\n"}
        session_tool: true
  - match: ^usage
    steps:
      - {do: usage, input: 3, output: 4, model: m}
      - {do: title, text: A title}
      - {do: notice, text: Careful}
      - {do: say, text: done}
"""
_AS_JSON = msgspec.json.encode(yaml.safe_load(SCRIPT)).decode()
"""The same, in the notation that is read a hundred times as fast: each test of this folder does."""


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


class Served:
    """A host that can be stopped and started again on the same folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.work.mkdir()
        self.home = Home(folder / "home")
        self.home.make()
        self.url = ""
        self.policies: list[Any] = []
        self._stack = contextlib.AsyncExitStack()

    async def start(self) -> None:
        log = await SqliteLog.open(self.home.log_path)
        self._stack.push_async_callback(log.close)
        script = s.parse(_AS_JSON, "test")
        self.host = await build_host(log, [ScriptedAgent(each, script.rules) for each in script.providers])
        self.host.policies.extend(self.policies)
        self._stack.push_async_callback(self.host.close)
        self.tokens = Tokens(self.home)
        self.gate = Gate(self.tokens, hosts=frozenset({"127.0.0.1", "localhost"}))
        loaded = load(self.home.settings_path, environ={})
        self.host.workspaces = [self.work]
        self.app = App(self.host, self.home, loaded, lambda: None)
        self.broker = Broker(self.app)
        self.gate.add(build(self.broker))
        config = uvicorn.Config(
            self.gate,
            port=0,
            ws=WsProtocol,
            lifespan="off",
            log_config=None,
            ws_max_size=limits.FRAME_BYTES,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=1,
        )
        self._server = _Uvicorn(config)
        serving = asyncio.create_task(self._server.serve())
        while not self._server.started:  # noqa: ASYNC110  (uvicorn tells nobody)
            await asyncio.sleep(0.005)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"ws://127.0.0.1:{port}/ahp?tkn={self.home.token()}"

        async def stop() -> None:
            self._server.should_exit = True
            self.gate.close_all()
            await serving

        self._stack.push_async_callback(stop)

    async def stop(self) -> None:
        await self._stack.aclose()
        self._stack = contextlib.AsyncExitStack()

    async def restart(self) -> None:
        await self.stop()
        await self.start()


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    served = Served(tmp_path)
    await served.start()
    yield served
    await served.stop()


def run_served(play: Callable[[Served], Awaitable[None]]) -> None:
    """A fresh host for one example of a property test."""

    async def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            served = Served(Path(folder))
            await served.start()
            try:
                await play(served)
            finally:
                await served.stop()

    asyncio.run(run())


Connect = Callable[..., Any]


@pytest.fixture
async def connect(served: Served) -> AsyncIterator[Connect]:
    """`await connect("0.9.0", "client-id")`: an initialized client; `version="1"` is version 1."""
    made: list[WireClient] = []

    async def connect(version: str = "0.9.0", client_id: str = "tester", *subscriptions: str) -> WireClient:
        client = WireClient(served.url, client_id, version)
        made.append(client)
        await client.open()
        await client.initialize(*(subscriptions or (client.root,)))
        return client

    yield connect
    for client in made:
        await client.close()
    assert [wrong for client in made for wrong in client.wrong] == []


@pytest.fixture(params=["1", "0.5.1", "0.7.0", "0.9.0", "1.0.0"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)
