"""How long a run waits for an endpoint that asks it to."""

import pytest

from portico.agents.loop.model_call import WAITS_MAX, ModelCaller, Way
from portico.agents.loop.wires.request import CompletionRequest
from portico.kernel.errors import AgentError
from tests.agents.loop.conftest import Desk
from tests.agents.loop.vendor import stream, vendor

BUSY = {"error": {"message": "Rate limit reached"}}
TWO = {"data": [{"id": "m"}, {"id": "n"}]}


@pytest.mark.parametrize(
    ("headers", "models", "slept"),
    [
        ({"retry-after": "7"}, ["m"], [7.0]),
        ({"retry-after-ms": "250"}, ["m"], [0.25]),
        ({"retry-after": "120"}, ["m"], [120.0]),
        ({"retry-after": "120"}, ["m", "n"], []),
        ({"retry-after": "0"}, ["m"], [0.0]),
    ],
)
async def test_it_waits_as_long_as_it_is_asked_to(
    desk: Desk, headers: dict[str, str], models: list[str], slept: list[float]
) -> None:
    waited: list[float] = []
    notices: list[str] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def drained() -> None:
        pass

    settings = "[agents.loop]\nretries = 2\n"
    async with vendor(desk, (429, BUSY, headers), stream({"content": "Yes."}), settings=settings, models=TWO):
        agent = desk.host.agents["loop"]
        caller = ModelCaller(agent.directory, agent.settings.current(), models, {}, notices.append, sleep)  # type: ignore[attr-defined]

        def build(way: Way) -> CompletionRequest:
            return CompletionRequest(way.model, [{"role": "user", "content": "?"}])

        reply = await caller.ask(build, lambda text, thought: None, drained)
    assert (reply.text, waited, caller.model) == ("Yes.", slept, models[-1])
    assert len(notices) == 1
    assert (f"in {slept[0]:.0f} seconds" in notices[0]) if slept and slept[0] >= 5 else True


@pytest.mark.parametrize(
    ("headers", "requests"), [({"retry-after": "1"}, WAITS_MAX + 1), ({"retry-after": "301"}, 1), ({}, 3)]
)
async def test_waiting_has_an_end(desk: Desk, headers: dict[str, str], requests: int) -> None:
    async def sleep(seconds: float) -> None:
        pass

    async def drained() -> None:
        pass

    settings = "[agents.loop]\nretries = 2\n"
    async with vendor(desk, *[(429, BUSY, headers)] * 20, settings=settings) as endpoint:
        agent = desk.host.agents["loop"]
        caller = ModelCaller(agent.directory, agent.settings.current(), ["m"], {}, lambda text: None, sleep)  # type: ignore[attr-defined]
        with pytest.raises(AgentError, match="Rate limit reached"):
            await caller.ask(lambda way: CompletionRequest(way.model, []), lambda text, thought: None, drained)
    assert len(endpoint.bodies) == requests
