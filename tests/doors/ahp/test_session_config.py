"""A session's settings, changed by clients that may and by clients that may not decide over calls."""

from collections.abc import AsyncIterator

import pytest

from portico.server.identity import new_token
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import WireClient, opened

SESSION = "scripted:/s1"
RULES = {"permissions": {"deny": ["shell"]}, "approvals": "ask", "flavour": "sweet"}


@pytest.fixture
async def driver(served: Served, version: str) -> AsyncIterator[WireClient]:
    """May drive, and not approve."""
    token = new_token(served.home, "driver", ["read", "drive"])
    async with opened(WireClient(served.url.partition("?")[0] + f"?tkn={token}", "driver", version)) as driver:
        yield driver


async def values(client: WireClient) -> object:
    """What a client that comes now sees must be what this one has folded."""
    folded = client.states[SESSION]["config"]["values"]
    assert (await client.subscribe(SESSION))["snapshot"]["state"]["config"]["values"] == folded
    return folded


async def test_replacing_all_settings_drops_no_rule_of_somebody_else(
    connect: Connect, driver: WireClient, version: str
) -> None:
    owner: WireClient = await connect(version)
    await owner.create_session(SESSION, config=RULES)
    await driver.initialize(SESSION)
    echo = await driver.act(SESSION, "session/configChanged", config={"flavour": "sour"}, replace=True)
    assert "rejectionReason" not in echo
    assert await values(driver) == {**RULES, "flavour": "sour"}
    echo = await driver.act(SESSION, "session/configChanged", config={"permissions": {}}, replace=True)
    assert "approve" in echo["rejectionReason"]
    # Who may approve may also take the rules away.
    await owner.act(SESSION, "session/configChanged", config={"flavour": "none"}, replace=True)
    assert await values(owner) == {"flavour": "none"}
    await driver.wait(lambda: driver.states[SESSION]["config"]["values"] == {"flavour": "none"})


async def test_what_is_settled_stays(connect: Connect) -> None:
    client: WireClient = await connect("0.9.0")
    await client.create_session(SESSION, config={"isolation": "folder", "flavour": "sweet"})
    await client.act(SESSION, "session/configChanged", config={}, replace=True)
    assert await values(client) == {"isolation": "folder"}
