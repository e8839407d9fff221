"""`session.agent`: another agent continues a session."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from portico.kernel.autonomy import Autonomy
from portico.server.identity import new_token
from tests.doors.standing import Standing, problem, standing

SCRIPT = """
providers:
  - {id: scripted, name: Scripted, models: [{id: big, name: Big}]}
  - {id: other, name: Other, models: [{id: small, name: Small}, {id: tiny, name: Tiny}]}
rules: [{match: ^wait, steps: [{do: hang}]}, {match: "", steps: [{do: say, text: hi}]}]
"""


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Standing]:
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT)
    async with standing(tmp_path, script=script, agents=("scripted",)) as found:
        yield found


@pytest.fixture
async def session(here: Standing) -> str:
    return str((await here.http.post("/v1/sessions", json={"agent": "scripted"})).json()["id"])


@pytest.mark.parametrize(
    ("body", "agent", "model"),
    [
        ({"agent": "other"}, "other", "small"),
        ({"agent": "other", "model": "tiny"}, "other", "tiny"),
        ({"agent": "scripted"}, "scripted", "big"),
    ],
)
async def test_the_next_turn_is_that_of_the_chosen_agent(
    here: Standing, session: str, body: dict[str, Any], agent: str, model: str
) -> None:
    await here.http.post(f"/v1/sessions/{session}/messages", json={"text": "one"})
    found = await here.server.host.get(session)
    await found.wait_until(lambda state: state.active is None)
    answer = await here.http.put(f"/v1/sessions/{session}/agent", json=body)
    assert answer.status_code == 200, answer.text
    await here.http.post(f"/v1/sessions/{session}/messages", json={"text": "two"})
    await found.wait_until(lambda state: len(state.turns) == 2 and state.active is None)
    assert (found.state.agent, found.state.model) == (agent, model)
    assert [turn.outcome for turn in found.state.turns] == ["completed", "completed"]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"agent": "none"}, 404, "no agent 'none'"),
        ({"agent": "other", "model": "big"}, 404, "no model 'big'"),
        ({}, 400, "agent"),
    ],
)
async def test_what_cannot_be_chosen(
    here: Standing, session: str, body: dict[str, Any], status: int, words: str
) -> None:
    answer = await here.http.put(f"/v1/sessions/{session}/agent", json=body)
    assert answer.status_code == status
    assert words in answer.text


async def test_not_while_a_turn_runs(here: Standing, session: str) -> None:
    await here.http.post(f"/v1/sessions/{session}/messages", json={"text": "wait"})
    problem(await here.http.put(f"/v1/sessions/{session}/agent", json={"agent": "other"}), 409, "turn_in_progress")


async def test_an_agent_that_asks_less_needs_the_scope_approve(
    here: Standing, session: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack: a token that may not approve gives the session to an agent that acts without asking."""
    loose = type(here.server.host.agents["other"])
    monkeypatch.setattr(loose, "autonomy", lambda self, option, value: Autonomy.ASKS_NOBODY, raising=False)
    async with here.client(new_token(here.home, "small", ["read", "drive"])) as http:
        refused = await http.put(f"/v1/sessions/{session}/agent", json={"agent": "other"})
        assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert (await here.http.put(f"/v1/sessions/{session}/agent", json={"agent": "other"})).status_code == 200
