"""`portico agents test --all` against real agents: what docs/guide/agents.md says about them."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from portico.agents.agent import Agent, AgentContext
from portico.agents.loop import LoopAgent
from portico.cli.matrix import MatrixCell, markdown, try_all
from portico.testing.model import ModelServer
from tests.live.copilot_agent import copilot_agent
from tests.live.host import agent_of
from tests.live.programs import COPILOT, LIVE, MODULES, NODE22, QWEN
from tests.live.test_native import CLAUDE, GOOSE, OPENCODE

pytestmark = pytest.mark.live

PROGRAMS = (*LIVE, QWEN)
UNSTEADY = {
    QWEN.name: {"MCP": MatrixCell("unknown")},  # it gives up on a server after five seconds, which a busy machine takes
    "gemini": {"resume": MatrixCell("no")},  # not within the minute in which a session began (see programs.py)
}
"""What depends on the time it takes, and on the time it is."""
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "agents.md"


def makers(folder: Path, model: str) -> dict[str, Callable[[], Agent]]:
    environ = {"OPENAI_BASE_URL": f"{model}/v1", "OPENAI_API_KEY": "k", "OLLAMA_HOST": "127.0.0.1:1"}
    return {
        **{live.name: partial(agent_of, folder, live, model) for live in PROGRAMS},
        "copilot-sdk": partial(copilot_agent, folder, model),
        "loop": partial(LoopAgent, AgentContext(folder / "home", {}), environ),
    }


@pytest.fixture(autouse=True)
def own_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agents' own programs on the PATH, as a user has them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    commands: dict[str, list[object]] = {
        "claude": [CLAUDE],
        "codex": [NODE22, MODULES / ".bin/codex"],
        "copilot": [COPILOT],
        "goose": [GOOSE],
        "opencode": [OPENCODE],
        "qwen": [NODE22, MODULES / ".bin/qwen"],
    }
    for name, command in commands.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {" ".join(map(str, command))} "$@"\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize("name", [*(live.name for live in PROGRAMS), "copilot-sdk", "loop"])
async def test_the_table_in_the_guide_is_what_was_seen(name: str, tmp_path: Path) -> None:
    async with ModelServer() as model:
        row = await try_all(makers(tmp_path, model.url)[name], scripted=True)
    assert row.problem == ""
    row = replace(row, checks={**row.checks, **UNSTEADY.get(name, {})})
    line = markdown([row]).splitlines()[-1]
    assert line in GUIDE.read_text(), f"{line}\n{row.checks}"
