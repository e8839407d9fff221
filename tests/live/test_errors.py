"""What real programs report when their model fails: the turn fails with the reason, and the fallback takes over."""

from pathlib import Path
from typing import Any

import pytest

from portico.agents.agent import Agent
from portico.kernel.state import TurnState
from portico.testing.model import ModelServer
from tests.agents.acp_agent import said
from tests.live.host import agent_of, hosting, play
from tests.live.programs import LIVE

pytestmark = pytest.mark.live

CUT = {"say": "one two three four", "error": {"status": 529, "message": "overloaded", "after": 3}}
CALL = {"calls": [{"kind": "execute", "args": {"command": "echo hi"}}]}


def fails(status: int, message: str) -> dict[str, Any]:
    return {"error": {"status": status, "message": message}}


def once(key: str, step: dict[str, Any]) -> dict[str, Any]:
    """The first request fails as `step` describes, the next one is answered."""
    return {"say": "All is well.", "first": {"key": key, "times": 1, "step": step}}


CASES: dict[str, list[tuple[list[dict[str, Any]], str, str]]] = {
    # What the model does, the code of the error (empty: the turn completes), a part of its message. Copilot retries
    # 429 and 500 for up to a minute and cannot be configured: these texts are in tests/agents/test_acp_spoken.py.
    "codex": [
        ([fails(400, "bad thing")], "agent_failed", "Codex: bad thing."),
        ([fails(401, "no key")], "sign_in_required", "codex login"),
        ([fails(404, "no such model")], "agent_failed", "404 Not Found: no such model"),
        ([fails(429, "slow down")], "agent_failed", "429 Too Many Requests"),
        ([fails(500, "trouble")], "agent_failed", "high demand"),
        ([CUT], "agent_failed", "overloaded"),
        ([CALL, fails(400, "bad second")], "agent_failed", "bad second"),
        ([once("codex", CUT)], "", ""),
        ([{"say": "Error: 400 is what it printed."}], "", ""),
    ],
    "copilot": [
        ([fails(400, "bad thing")], "agent_failed", "400 bad thing."),
        ([fails(401, "no key")], "sign_in_required", "copilot login"),
        ([fails(404, "no such model")], "agent_failed", "Model 'gpt-4.1' not found"),
        ([CALL, fails(400, "bad second")], "agent_failed", "400 bad second"),
        ([once("copilot", CUT)], "", ""),
        ([{"say": "Error: 400 is what it printed."}], "", ""),
    ],
}


def answer(steps: list[dict[str, Any]]) -> str:
    return str(steps[-1].get("say", "")) if steps[-1] is not CUT else ""


@pytest.mark.parametrize("name", CASES)
async def test_a_model_that_fails(name: str, tmp_path: Path) -> None:
    (live,) = [each for each in LIVE if each.name == name]
    async with ModelServer() as model:
        agent = agent_of(tmp_path, live, model.url)
        if name == "codex":  # it retries five times, with pauses that double
            with (tmp_path / "vendor" / ".codex" / "config.toml").open("a") as file:
                file.write("request_max_retries = 1\nstream_max_retries = 1\n")
        async with hosting(tmp_path, agent) as host:
            for steps, code, message in CASES[name]:
                session = await host.start(by="test", agent=agent.id, cwd=str(tmp_path / "work"))
                turn = await play(session, *steps, allow=True)
                found = (turn.error.code, message in turn.error.message) if turn.error is not None else ("", True)
                assert found == (code, True), (steps, turn.error)
                assert (said(turn) == answer(steps)) == (steps != [CUT]), (steps, said(turn))
                if "first" in steps[-1]:
                    assert said(turn, "notice") != "", "the retry is shown"
            await _falls_back(host, agent, tmp_path)


async def _falls_back(host: Any, agent: Agent, folder: Path) -> None:
    config = {"fallback": ["scripted"]}
    session = await host.start(by="test", agent=agent.id, cwd=str(folder / "work"), config=config)
    turn: TurnState = await play(session, fails(400, "bad thing"))
    assert "'scripted' takes over" in said(turn, "notice")
