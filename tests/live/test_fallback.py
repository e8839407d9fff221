"""From programs that are really dead to a real agent, offline: in a session and in a task."""

import asyncio
from pathlib import Path

import pytest

from portico.agents.acp import acp
from portico.agents.agent import Agent, AgentContext
from portico.features.jobs import Model, entry, task
from portico.features.jobs.jobs import Jobs
from portico.kernel.events import SessionModel
from portico.testing.model import ModelServer
from tests.agents.acp_agent import said
from tests.jobs.playing import story
from tests.live.host import SECONDS, hosting, play, script
from tests.live.programs import LIVE, MODEL

pytestmark = pytest.mark.live

GOOSE = f"acp:goose/{MODEL}"


def agents(folder: Path, model: str) -> list[Agent]:
    """One that is not installed, one that ends as soon as it is started, and goose."""
    (live,) = [live for live in LIVE if live.name == "goose"]
    tables = {
        "gone": {"command": ["no-such-program", "acp"], "models": [MODEL]},
        "dead": {"command": ["false"], "models": [MODEL]},
        "goose": {**live.table(folder / "vendor", model), "models": [MODEL]},
    }
    return [each for each in acp(AgentContext(folder / "home", {"acp": tables})) if each.id[4:] in tables]


async def test_a_session_passes_from_dead_programs_to_a_living_one(tmp_path: Path) -> None:
    async with ModelServer() as model, hosting(tmp_path, *agents(tmp_path, model.url)) as host:
        config = {"fallback": ["acp:dead", GOOSE]}
        session = await host.start(by="test", agent="acp:gone", cwd=str(tmp_path / "work"), config=config)
        turn = await play(session, {"say": "I am here."})
        assert (turn.outcome, said(turn)) == ("completed", "I am here."), turn.error
        notices = said(turn, "notice")
        assert "'acp:gone' cannot answer: The program 'no-such-program' is not on the PATH." in notices
        assert "'acp:dead' cannot answer: dead does not start. The process of dead ended (exit code 1)." in notices
        events = [record.event for record in await host.log.read(session.channel)]
        assert [event.agent for event in events if isinstance(event, SessionModel)] == ["acp:dead", "acp:goose"]
        turn = await play(session, {"say": "I stay."})
        assert (said(turn), said(turn, "notice")) == ("I stay.", "")


async def test_a_task_passes_from_dead_programs_to_a_living_one(tmp_path: Path) -> None:
    async with ModelServer() as model, hosting(tmp_path, *agents(tmp_path, model.url)) as host:
        plan = task(
            "work",
            script({"say": "Done."}),
            model=Model(id=f"acp:gone/{MODEL}"),
            fallback=[Model(id=f"acp:dead/{MODEL}"), Model(id=GOOSE)],
        )
        jobs = await Jobs.open(host)
        await jobs.install(entry(models={"driving": GOOSE}, jobs={"it": plan}))
        await jobs.start_job("it", cwd=str(tmp_path / "work"), by="test")
        async with asyncio.timeout(SECONDS):
            words = await story(host.log, "task-1")
        assert words[-1] == "taskSucceeded", words
        assert [word for word in words if word.startswith("[FALLBACK]")] == [
            f"[FALLBACK] acp:dead/{MODEL} takes over from acp:gone/{MODEL}",
            f"[FALLBACK] {GOOSE} takes over from acp:dead/{MODEL}",
        ]
        await jobs.close()
