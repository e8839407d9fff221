"""The difficult bytes of `bench/difficult`, all of them, with the built-in agent."""

from pathlib import Path

from bench.difficult.cases import CASES
from bench.difficult.endpoint import ByteEndpoint
from bench.difficult.run import play_all

from portico.agents.agent import AgentContext
from portico.agents.loop import LoopAgent


async def test_every_case_is_handled(tmp_path: Path) -> None:
    async with ByteEndpoint(CASES) as endpoint:
        environ = {"OPENAI_BASE_URL": f"{endpoint.url}/v1", "OPENAI_API_KEY": "k", "OLLAMA_HOST": "127.0.0.1:1"}
        agent = LoopAgent(AgentContext(tmp_path / "home", {}), environ)
        found = [each async for each in play_all(agent, list(CASES.values()), endpoint, tmp_path, 60)]
    assert {each.case: each.problem for each in found if not each.ok} == {}
    assert len(found) == len(CASES) >= 60
