"""The first clients of a host: a failed start is not remembered, and a new client id belongs to one of two tokens."""

import asyncio
import contextlib

import pytest

from portico.kernel.agent import AgentInfo
from portico.kernel.errors import LogUnavailable
from portico.server.identity import new_token
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.wire_client import Refused, WireClient


@pytest.mark.parametrize("clients", [1, 3])
@pytest.mark.parametrize("error", [RuntimeError("a bug"), LogUnavailable("full"), asyncio.CancelledError()], ids=repr)
async def test_a_failed_start_is_tried_again_by_the_next_client(
    served: Served, connect: Connect, monkeypatch: pytest.MonkeyPatch, error: BaseException, clients: int
) -> None:
    """One failed `describe` while the first editor connected: every later one got HTTP 500 until the host restarted."""
    asked, describe = 0, served.host.describe

    async def failing() -> list[AgentInfo]:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        if asked == 1:
            raise error
        return await describe()

    monkeypatch.setattr(served.host, "describe", failing)

    async def tried(number: int) -> bool:
        client = WireClient(served.url, f"first-{number}", "0.9.0")
        with contextlib.suppress(Exception):
            await client.open()
            await client.initialize()
            await client.close()
            return True
        return False

    first = await asyncio.gather(*map(tried, range(clients)))
    assert first[0] is False or clients > 1
    client = await connect("0.9.0", "later")
    assert await client.create_session("scripted:/s1")


@pytest.mark.parametrize("order", [0, 1])
async def test_two_tokens_take_the_same_new_id_at_the_same_time(served: Served, order: int) -> None:
    """The one that was refused had closed the connection of the other before."""
    address = served.url.partition("?")[0]
    tokens = [new_token(served.home, f"token-{number}-{order}", ["read", "drive"]) for number in range(2)]
    for number in range(5):
        clients = [WireClient(f"{address}?tkn={token}", f"new-{order}-{number}", "0.9.0") for token in tokens]
        for client in clients:
            await client.open()
        asked = clients if order == 0 else clients[::-1]
        ended = await asyncio.gather(*(client.initialize() for client in asked), return_exceptions=True)
        refused = [each for each in ended if isinstance(each, Refused)]
        assert [each.code for each in refused] == [-32009]
        (owner,) = [client for client, end in zip(asked, ended, strict=True) if not isinstance(end, Exception)]
        assert "items" in await owner.request("listSessions", channel="ahp-root://")
        for client in clients:
            await client.close()
