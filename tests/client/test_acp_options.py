"""The options and the usage of a session, as an editor that speaks ACP sees them."""

from typing import Any

import pytest

from portico.client.acp.options import AGENT, SessionOptions
from portico.client.acp.usage import UsageReport
from portico.kernel import events as e
from portico.kernel.agent import AgentInfo, Model
from portico.kernel.state import SessionState, Usage

SCHEMA = {
    "properties": {
        "web": {"type": "boolean", "title": "Web search", "description": "May it search?"},
        "fast": {"type": "boolean", "default": True},
        "mode": {"type": "string", "enum": ["plan", "build"]},
        "depth": {"type": "integer"},
    }
}
ONE = AgentInfo("one", "One", models=[Model("big", "Big", context=1000), Model("small", "Small")], config=SCHEMA)
TWO = AgentInfo("two", "Two")
AWAY = AgentInfo("away", "Away", missing="Install it.")


def options(*agents: AgentInfo, booleans: bool = True, **config: Any) -> SessionOptions:
    return SessionOptions(agents or (ONE,), "one", "big", config, booleans=booleans)


def shown(found: SessionOptions) -> dict[str, Any]:
    return {each.id: each.current_value for each in found.options()}


def test_a_boolean_is_a_switch_where_the_editor_has_them() -> None:
    switch = next(each for each in options().options() if each.id == "web").model_dump(exclude_none=True)
    assert switch == {
        "type": "boolean",
        "id": "web",
        "name": "Web search",
        "description": "May it search?",
        "current_value": False,
    }
    assert shown(options(web=True)) == {
        "model": "big",
        "web": True,
        "fast": True,
        "mode": "plan",
        "approvals": "ask",
    }
    assert shown(options(booleans=False, fast=False))["fast"] == "false"


@pytest.mark.parametrize(
    ("key", "value", "stored"),
    [
        ("web", True, True),
        ("web", "true", True),
        ("web", "False", False),
        ("web", "maybe", None),
        ("mode", "build", "build"),
        ("mode", True, None),
        ("model", "small", "small"),
        ("model", "none", None),
        ("approvals", "allow", "allow"),
        ("depth", "3", None),
        ("none", "x", None),
        (AGENT, "two", "two"),
        (AGENT, "away", None),
        (AGENT, "none", None),
    ],
)
def test_which_values_an_option_takes(key: str, value: Any, stored: Any) -> None:
    assert options(ONE, TWO, AWAY).value(key, value) == stored


def test_the_agents_that_can_be_chosen() -> None:
    (first, *_) = options(ONE, TWO, AWAY).options()
    assert (first.id, [each.value for each in first.options]) == (AGENT, ["one", "two"])
    assert AGENT not in shown(options(ONE)), "there is no choice"
    lost = SessionOptions([TWO], "gone", "m", {})
    assert shown(lost)["approvals"] == "ask"


def spent(*events: e.UsageReported) -> UsageReport:
    found = UsageReport()
    for each in events:
        found.add(each)
    return found


def test_the_usage_of_a_turn_and_of_the_window() -> None:
    found = spent(
        e.UsageReported("t", input=100, output=10, cost=0.1),
        e.UsageReported("t", input=200, output=20, cached=50, cost=0.2),
    )
    update = found.update(1000)
    assert update is not None
    assert (update.used, update.size, update.cost and update.cost.amount) == (220, 1000, 0.3)
    usage = found.end("t")
    assert usage is not None
    assert usage.model_dump(exclude_none=True) == {
        "total_tokens": 330,
        "input_tokens": 300,
        "output_tokens": 30,
        "cached_read_tokens": 50,
    }
    assert found.end("t") is None


def test_what_is_not_known_is_not_reported() -> None:
    assert spent(e.UsageReported("t", input=1)).update(None) is None
    assert spent(e.UsageReported("t", cost=0.5, total=True)).update(1000) is None
    assert spent(e.UsageReported("t", cost=0.5, total=True)).end("t") is None


def test_a_report_of_the_total_replaces_the_earlier_ones() -> None:
    found = spent(
        e.UsageReported("t", input=5, output=1, cost=1.0), e.UsageReported("t", input=9, cost=1.5, total=True)
    )
    update, usage = found.update(10), found.end("t")
    assert update is not None
    assert usage is not None
    assert (update.cost and update.cost.amount, usage.input_tokens, usage.output_tokens) == (1.5, 9, 0)


def test_the_cost_is_that_of_the_session() -> None:
    found = UsageReport(SessionState("s", usage=Usage(cost=2.0)))
    found.add(e.UsageReported("t", input=1, cost=0.5))
    update = found.update(10)
    assert update is not None
    assert update.cost is not None
    assert update.cost.amount == 2.5
