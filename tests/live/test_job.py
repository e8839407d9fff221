"""One job whose tasks run on three different agents goes green, offline."""

import asyncio
from pathlib import Path

import pytest

from portico.agents.acp import acp
from portico.agents.agent import AgentContext
from portico.features.jobs import Model, entry, seq, task
from portico.features.jobs.jobs import Jobs
from portico.testing.model import ModelServer
from tests.jobs.playing import until_ended
from tests.live.copilot_agent import copilot_agent
from tests.live.host import SECONDS, hosting, script
from tests.live.programs import LIVE, MODEL

pytestmark = pytest.mark.live

MODELS = {"goose": MODEL, "gemini": "auto"}


def steps(path: Path) -> str:
    """The agent runs a command and reports."""
    report = {"match": ".*job_boolean_true", "args": {"argument": "done"}}
    return script(
        {"calls": [{"kind": "execute", "args": {"command": f"echo done > {path}"}}]},
        {"calls": [report]},
        {"say": "Reported."},
    )


async def test_a_job_on_three_agents_goes_green(tmp_path: Path) -> None:
    work = tmp_path / "work"
    async with ModelServer() as model:
        tables = {
            live.name: {**live.table(tmp_path / live.name, model.url), "models": [MODELS[live.name]]}
            for live in LIVE
            if live.name in MODELS
        }
        found = [each for each in acp(AgentContext(tmp_path / "home", {"acp": tables})) if each.id[4:] in MODELS]
        agents = [copilot_agent(tmp_path, model.url), *found]
        names = {"copilot": f"copilot/{MODEL}", **{name: f"acp:{name}/{each}" for name, each in MODELS.items()}}
        tasks = [
            task(name, steps(work / name), model=Model(id=ident), tools=("job_boolean_true",))
            for name, ident in names.items()
        ]
        async with hosting(tmp_path, *agents) as host:
            jobs = await Jobs.open(host)
            await jobs.install(entry(models={"driving": names["copilot"]}, jobs={"all": seq(*tasks)}))
            job = await jobs.start_job("all", cwd=str(work), by="test")
            async with asyncio.timeout(SECONDS):
                await until_ended(host.log, f"job/{job}")
            assert jobs.job(job).status == "succeeded", jobs.job(job)
            assert sorted(path.name for path in work.iterdir() if path.read_text() == "done\n") == sorted(names)
            assert {summary.agent for summary in host.list()} == {"copilot", "acp:goose", "acp:gemini"}
            await jobs.close()
