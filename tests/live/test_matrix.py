"""`portico agents test --all` against real agents: what docs/guide/agents.md says about them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from portico.agents.agent import Agent, AgentContext
from portico.agents.loop import LoopAgent
from portico.cli.matrix import CHECKS, Row, try_all
from portico.testing.model import ModelServer
from tests.live.copilot_agent import copilot_agent
from tests.live.host import agent_of
from tests.live.programs import LIVE

pytestmark = pytest.mark.live

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "agents.md"


async def tried(make: Callable[[], Agent], model: ModelServer) -> Row:
    def seen(word: str) -> bool:
        return any(word in str(request.body) for request in model.requests)

    return await try_all(make, scripted=True, seen=seen)


def line(row: Row) -> str:
    marks = {"yes": "yes", "no": "no", "unknown": "–"}
    return f"| `{row.agent}` | {row.version or '–'} | {' | '.join(marks[row.checks[name].answer] for name in CHECKS)} |"


def makers(folder: Path, model: str) -> dict[str, Callable[[], Agent]]:
    environ = {"OPENAI_BASE_URL": f"{model}/v1", "OPENAI_API_KEY": "k", "OLLAMA_HOST": "127.0.0.1:1"}
    return {
        **{live.name: partial(agent_of, folder, live, model) for live in LIVE},
        "copilot-sdk": partial(copilot_agent, folder, model),
        "loop": partial(LoopAgent, AgentContext(folder / "home", {}), environ),
    }


@pytest.mark.parametrize("name", [*(live.name for live in LIVE), "copilot-sdk", "loop"])
async def test_the_table_in_the_guide_is_what_was_seen(name: str, tmp_path: Path) -> None:
    async with ModelServer() as model:
        row = await tried(makers(tmp_path, model.url)[name], model)
    assert row.problem == ""
    assert line(row) in GUIDE.read_text(), f"{line(row)}\n{row.checks}"
