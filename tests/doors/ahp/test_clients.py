"""Clients that lend a session their tools, lose their network, and come back or do not."""

import asyncio
from typing import Any

from portico.doors.ahp.act.clients import GRACE_SECONDS
from portico.kernel.clock import Clock
from tests.doors.ahp.conftest import Connect, Served
from tests.doors.ahp.test_conversation import call_of, waiting_call
from tests.doors.ahp.wire_client import WireClient

S = "scripted:/s1"


class Graces(Clock):
    """A clock by which the grace of an absence ends when the test says so."""

    def __init__(self) -> None:
        self._begun: asyncio.Queue[asyncio.Future[None]] = asyncio.Queue()

    async def wait(self, future: "asyncio.Future[Any]", timeout: float) -> None:
        if timeout != GRACE_SECONDS:
            await super().wait(future, timeout)
            return
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._begun.put_nowait(over)
        await asyncio.wait({future, over}, return_when=asyncio.FIRST_COMPLETED)

    async def next(self) -> "asyncio.Future[None]":
        """The end of the grace that begins next."""
        async with asyncio.timeout(30):
            return await self._begun.get()


async def running(client: WireClient, watcher: WireClient) -> None:
    """A turn in which the client runs a tool."""
    me = {"clientId": client.client_id, "tools": [{"name": "pick"}]}
    await client.create_session(S, activeClient=me)
    await watcher.subscribe(S)
    await client.say(S, "t", "client tool")
    await waiting_call(watcher, S, "running")


async def test_every_absence_has_its_own_grace(connect: Connect, served: Served) -> None:
    """The grace of an absence that was over ran on, and ended the call a moment after the next one had begun."""
    served.host.clock = graces = Graces()
    client, watcher = await connect("1", "owner"), await connect("1", "watcher")
    await running(client, watcher)
    await client.drop()
    first = await graces.next()
    await client.reconnect()
    await client.drop()
    second = await graces.next()
    first.set_result(None)
    await watcher.act(S, "session/titleChanged", title="Still there")
    assert call_of(watcher.states[S]["activeTurn"])["status"] == "running"
    second.set_result(None)
    done = call_of((await watcher.idle(S))["turns"][0])
    assert done["error"]["code"] == "client_gone"


async def test_who_comes_back_in_time_goes_on_with_its_call(connect: Connect, served: Served) -> None:
    served.host.clock = graces = Graces()
    client, watcher = await connect("1", "owner"), await connect("1", "watcher")
    await running(client, watcher)
    await client.drop()
    over = await graces.next()
    await client.reconnect()
    over.set_result(None)
    await watcher.act(S, "session/titleChanged", title="Still there")
    call = call_of(client.states[S]["activeTurn"])
    result = {"success": True, "pastTenseMessage": "Picked"}
    await client.act(S, "session/toolCallComplete", turnId="t", toolCallId=call["toolCallId"], result=result)
    assert call_of((await watcher.idle(S))["turns"][0])["success"] is True


async def test_who_does_not_listen_runs_no_tools(connect: Connect) -> None:
    """In version 1 it stayed the active client, and the call that it could not see waited for ever."""
    client, watcher = await connect("1", "owner"), await connect("1", "watcher")
    await running(client, watcher)
    await client.notify("unsubscribe", resource=S)
    done = call_of((await watcher.idle(S))["turns"][0])
    assert done["error"]["code"] == "client_gone"
    assert "activeClient" not in watcher.states[S]


async def test_a_second_socket_takes_over_what_the_client_has_joined(connect: Connect) -> None:
    """An editor whose old socket still looked open said hello on a new one, left, and stayed the active client."""
    watcher = await connect("1", "watcher")
    await running(await connect("1", "owner"), watcher)
    again = await connect("1", "owner")
    await again.drop()
    await watcher.wait(lambda: "activeClient" not in watcher.states[S])
