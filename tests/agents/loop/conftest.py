"""A host with the built-in agent, a scripted model behind it, and a project in git."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from portico.agents.agent import AgentContext, Message
from portico.agents.loop import LoopAgent
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import CallPart, QuestionPart, TextPart, TurnState
from portico.testing.fixtures import HostOpener
from portico.testing.model import ModelRule, ModelServer, Script, Step


class Desk:
    """Everything a test of the loop touches."""

    def __init__(self, server: ModelServer, opener: HostOpener, folder: Path) -> None:
        self.server = server
        self.opener = opener
        self.home = folder / "home"
        self.project = folder / "project"
        self.home.mkdir()
        self.project.mkdir()
        self.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "canary-key"}
        self.host: Host
        self.session: Session

    def settings(self, text: str) -> None:
        (self.home / "settings.toml").write_text(text)

    async def open(self, **start: Any) -> Session:
        """A fresh host on the same log, and a session in it."""
        self.host = await self.opener(LoopAgent(AgentContext(self.home, {}), self.environ))
        if not self.host.list():
            self.session = await self.host.start(by="test", agent="loop", cwd=str(self.project), **start)
        else:
            self.session = await self.host.get(self.host.list()[0].id)
        return self.session

    def says(self, *steps: Step, model: str = "") -> None:
        self.server.script = Script(rules=[ModelRule(steps=list(steps), model=model)], models=self.server.script.models)

    async def run(
        self, text: str = "agent: go", *, allow: bool | None = True, meta: Any = None, answer: str = "stop"
    ) -> TurnState:
        """Sends and waits for the end; approvals are answered with `allow` (None: left alone), questions with
        `answer`."""
        turn = await self.session.send(Message(text, meta=meta or {}), by="test")
        async with asyncio.timeout(60):
            while True:
                state = await self.session.wait_until(
                    lambda state: (
                        state.turn(turn) is None
                        or state.turn(turn).outcome is not None  # type: ignore[union-attr]
                        or (allow is not None and state.status == "waiting")
                    )
                )
                found = state.turn(turn)
                assert found is not None
                if found.outcome is not None:
                    return found
                for question in questions(found):
                    if not question.done:
                        await self.session.questions.answer(question.id, "accept", {"answer": answer}, by="test")
                for call in calls(found):
                    if call.approval is not None:
                        await self.session.approvals.answer(call.approval.id, by="test", allow=allow)

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.project, capture_output=True, text=True, check=True)
        return done.stdout


def calls(turn: TurnState) -> list[CallPart]:
    return [part for part in turn.parts if isinstance(part, CallPart)]


def questions(turn: TurnState) -> list[QuestionPart]:
    return [part for part in turn.parts if isinstance(part, QuestionPart)]


def texts(turn: TurnState, kind: str = "text") -> str:
    return "".join(part.text for part in turn.parts if isinstance(part, TextPart) and part.kind == kind)


def acts(*actions: dict[str, Any], commentary: str = "") -> Step:
    return Step(say=[json.dumps({"actions": actions, "commentary": commentary, "done": False})])


def ends(summary: str = "Finished.") -> Step:
    return Step(say=[json.dumps({"finalSummary": summary, "done": True})])


@pytest.fixture
async def desk(tmp_path: Path, open_host: HostOpener) -> AsyncIterator[Desk]:
    async with ModelServer(Script(models=["alpha", "beta"])) as server:
        desk = Desk(server, open_host, tmp_path)
        desk.git("init", "-q")
        desk.settings('[agents.loop]\nretries = 0\nprotocol = "text"\n')
        await desk.open()
        yield desk
        await open_host.close()
