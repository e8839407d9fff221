"""Budgets with the real Copilot runtime: no turn starts while a budget is exhausted."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from portico.features.budgets.budgets import Budgets
from portico.features.budgets.ledger import rules_of
from portico.kernel import commands as c
from portico.kernel.events import Budget
from portico.server.settings import BudgetSettings
from portico.testing.model import ModelServer
from tests.budgets.test_start import ADA, question, questions
from tests.features import feature
from tests.live.copilot_agent import copilot_agent
from tests.live.host import hosting, play, script

pytestmark = pytest.mark.live
SAYS = {"say": "ok", "usage": {"input": 90, "output": 10}}


@pytest.mark.parametrize("scope", ["session", "day", "month", "person_day"])
@pytest.mark.parametrize("bound", [{"turns": 1}, {"tokens": 50}])
async def test_copilot_waits_for_the_answer(tmp_path: Path, scope: str, bound: dict[str, Any]) -> None:
    async with ModelServer() as model, hosting(tmp_path, copilot_agent(tmp_path, model.url)) as host:
        feature(host, Budgets).rules = rules_of(msgspec.convert({scope: Budget(**bound)}, BudgetSettings))
        started = await host.do(c.StartSession(cwd=str(tmp_path / "work")), ADA)
        session = await host.get(started.id)
        assert (await play(session, SAYS)).outcome == "completed"
        asked = len(model.requests)
        begun: c.TurnBegun = await host.do(c.SendMessage(session=session.id, text=script(SAYS)), ADA)
        await session.wait_until(lambda _: question(session) is not None)
        assert len(model.requests) == asked, "nothing was sent to the model"
        [found] = questions(host)
        assert "The agent starts when it is answered." in found.text
        await host.do(c.AnswerQuestion(question=found.id, answers={"answer": "finish"}), ADA)
        assert (await session.wait(begun.turn)).outcome == "completed"
