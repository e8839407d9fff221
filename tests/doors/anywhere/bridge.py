"""A running server with the built-in agent, a scripted model and a project: what the tests of this door share."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx

from portico.agents.agent import AgentContext
from portico.agents.loop import LoopAgent, endpoint
from portico.agents.registry import discover
from portico.kernel.events import HOST, Audited
from portico.server import server as module
from portico.server.server import Server
from portico.testing.model import ModelServer, Script, Step
from tests.doors.standing import Standing, options

CREATE = {"tool": "createFile", "path": "README.md", "content": "files: none\n"}


def acts(*actions: Mapping[str, object]) -> Step:
    return Step(say=[json.dumps({"actions": actions, "commentary": "", "done": False})])


def ends(summary: str) -> Step:
    return Step(say=[json.dumps({"finalSummary": summary, "done": True})])


class Stream:
    """An open `/events`, read frame by frame."""

    def __init__(self, answer: httpx.Response) -> None:
        self.answer = answer
        self.last = ""
        self._bytes = answer.aiter_bytes()
        self._rest = b""
        self._frames: list[bytes] = []

    async def next(self) -> tuple[str, dict[str, Any]]:
        """The next event; heartbeats and hints are passed over."""
        while True:
            while self._frames:
                fields = dict(line.split(b": ", 1) for line in self._frames.pop(0).split(b"\n"))
                if b"event" in fields:
                    self.last = fields[b"id"].decode()
                    return fields[b"event"].decode(), json.loads(fields[b"data"])
            self._rest += await anext(self._bytes)
            *self._frames, self._rest = self._rest.split(b"\n\n")

    async def until(self, name: str, **values: Any) -> list[tuple[str, dict[str, Any]]]:
        """All events up to and with the first of that name that has these values."""
        found = []
        async with asyncio.timeout(30):
            while True:
                found.append(await self.next())
                event, data = found[-1]
                if event == name and all(data.get(key) == value for key, value in values.items()):
                    return found


class Bridge(Standing):
    def __init__(self, server: Server, model: ModelServer, project: Path) -> None:
        super().__init__(server)
        self.model = model
        self.project = project

    @asynccontextmanager
    async def events(self, query: str = "", **headers: str) -> AsyncIterator[Stream]:
        wanted = {"Accept-Encoding": "identity", **headers}
        async with self.http.stream("GET", f"/events{query}", headers=wanted, timeout=60) as answer:
            assert answer.status_code == 200, await answer.aread()
            yield Stream(answer)

    async def send(self, text: str, **more: Any) -> dict[str, Any]:
        answer = await self.http.post("/message", json={"text": text, **more})
        assert answer.status_code == 202, answer.text
        sent: dict[str, Any] = answer.json()
        return sent

    async def project_id(self) -> str:
        ident: str = (await self.http.get("/sessions")).json()[0]["id"]
        return ident

    async def set(self, line: str) -> None:
        """A line more at the top of the settings file; returns when the host has taken it over."""
        path, log = self.home.settings_path, self.server.host.log
        after = log.head(HOST)
        path.write_text(f"{line}\n{path.read_text()}")
        async with asyncio.timeout(30):
            async for records in log.follow(HOST, after=after):
                if any(isinstance(each.event, Audited) and each.event.action == "settings.changed" for each in records):
                    return

    def says(self, *steps: Step) -> None:
        self.model.script = Script.of(*steps)


@asynccontextmanager
async def bridge(folder: Path, **given: Any) -> AsyncIterator[Bridge]:
    project = folder / "project"
    project.mkdir(exist_ok=True)
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q"], cwd=project, check=True)
    home = folder / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    settings = home / "settings.toml"
    if not settings.exists():
        settings.write_text('[agents.loop]\nprotocol = "text"\nretries = 0\n')
    flags = {"workspaces": [str(project)], **given.pop("flags", {})}
    # On a busy machine the list of models takes longer than a person would wait; without it there is no model.
    with patch.object(endpoint, "LIST_SECONDS", 30.0):
        async with _bridge(folder, home, project, flags, given) as here:
            yield here


@asynccontextmanager
async def _bridge(
    folder: Path, home: Path, project: Path, flags: dict[str, Any], given: dict[str, Any]
) -> AsyncIterator[Bridge]:
    async with ModelServer() as model:
        agent = LoopAgent(AgentContext(home, {}), {"OPENAI_BASE_URL": f"{model.url}/v1"})
        stack = AsyncExitStack()
        # The agent of this test, with an environment of its own, beside the discovered one.
        with patch.object(module, "discover", lambda *given: [*discover(*given), agent]):
            server = await stack.enter_async_context(
                Server(options(folder, flags=flags, agents=("scripted",), **given))
            )
        async with stack:
            here = Bridge(server, model, project)
            try:
                yield here
            finally:
                await here.close()
