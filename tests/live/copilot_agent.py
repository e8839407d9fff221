"""The Copilot SDK's agent with a provider of our own: the scripted model server."""

from pathlib import Path
from typing import Any

from portico.agents.agent import AgentContext
from portico.agents.copilot import copilot
from portico.agents.copilot.agent import CopilotAgent
from tests.live.programs import COPILOT, MODEL, START_SECONDS, copilot_cache


def copilot_agent(folder: Path, model: str, **settings: Any) -> CopilotAgent:
    """`settings`: other tables of the agents, such as `mcp`."""
    vendor = folder / "vendor"
    vendor.mkdir(parents=True, exist_ok=True)
    table = {
        "program": str(COPILOT),
        "home": str(vendor / ".copilot"),
        "env": {"HOME": str(vendor), "XDG_CACHE_HOME": str(copilot_cache())},
        "models": [MODEL],
        "provider": {"base_url": f"{model}/v1"},
        "start_timeout": START_SECONDS,
    }
    (agent,) = copilot(AgentContext(folder / "home", {"copilot": table, **settings}))
    assert isinstance(agent, CopilotAgent)
    return agent
