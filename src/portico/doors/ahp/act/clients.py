"""The active clients of a session: they provide their tools and plugins while they are connected."""

import asyncio
from typing import TYPE_CHECKING, Any

from portico.doors.ahp.act import plugins
from portico.doors.ahp.wire.check import check
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.types import SessionActiveClient
from portico.kernel.commands import Caller, JoinSession, LeaveSession
from portico.kernel.errors import BadRequest
from portico.kernel.events import ToolSpec
from portico.kernel.session import Session

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient

GRACE_SECONDS = 30.0
"""How long a disconnected client that was running a tool may take to reconnect; after that its calls fail."""


def own(connection: "EditorClient", said: Any) -> Json | None:
    """The `activeClient` of a command. A client may only name itself."""
    if said is None:
        return None
    client: Json = check(SessionActiveClient, said, "activeClient")
    if client["clientId"] != connection.client_id:
        raise BadRequest("'activeClient' is somebody else.", field="activeClient.clientId")
    return client


async def join(connection: "EditorClient", session: Session, client: Json, by: str) -> None:
    tools = [
        ToolSpec(each["name"], each.get("description") or "", each.get("inputSchema") or {}, each.get("title") or "")
        for each in client.get("tools") or []
    ]
    shown = {**client, "tools": client.get("tools") or []}
    where = connection.host.members.name
    connection.joined.add(session.id)
    command = JoinSession(
        session=session.id,
        client=client["clientId"],
        name=client.get("displayName") or connection.title,
        tools=tools,
        meta={"ahp": shown, "by": by, **({"host": where} if where else {})},
    )
    await connection.do(command)
    if session.state.parent is None:
        await plugins.publish(connection, session, client.get("customizations") or [])


async def part(session: Session, client_id: str, by: str = "") -> None:
    """The client leaves the session, with its tools and its plugins."""
    await session.host.do(LeaveSession(session=session.id, client=client_id), Caller.inside(by))
    await plugins.withdraw(session, client_id)


async def resign(connection: "EditorClient", session: Session, by: str = "") -> None:
    """The client leaves the session and all its chats voluntarily: the calls that it runs are abandoned."""
    host, client_id = connection.host, connection.client_id
    await part(session, client_id, by)
    for ident in (session.id, *(each.id for each in host.catalogue.descendants(session.id))):
        await host.do(LeaveSession(session=ident, client=client_id, abandon=True), Caller.inside(""))
        connection.joined.discard(ident)


def left(connection: "EditorClient") -> None:
    """Remove the tools of a disconnected client. Its running calls get a grace period: it may reconnect."""
    host, client_id = connection.host, connection.client_id
    if not host.stopping and (connection.joined or _runs(connection)):
        connection.broker.away[client_id] = connection
        host.own(_leave(connection, client_id), f"ahp {client_id} leaves")


def _runs(connection: "EditorClient") -> list[Session]:
    """Sessions where this client runs a call, including a call from before its last disconnect."""
    host, ident = connection.host, connection.client_id
    here = [turn.session for turn in host.turns.values() if any(c.owner == ident for c in turn.calls.values())]
    joined = [found for each in connection.joined if (found := host.find(each)) is not None]
    return here + [session for session in joined if not host.members.owns(session.channel)]


async def _leave(connection: "EditorClient", client_id: str) -> None:
    host = connection.host
    sessions = [found for ident in connection.joined if (found := host.find(ident)) is not None]
    for session in sessions:
        await session.load()
        await part(session, client_id)
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    await host.clock.wait(never, GRACE_SECONDS)
    away = connection.broker.away
    if away.get(client_id) is connection:  # not back since; when it came and went again, that absence has its own time
        del away[client_id]
        for session in _runs(connection):
            await session.load()
            if all(each.id != client_id for each in session.state.clients):  # it may be back at another host
                await host.do(LeaveSession(session=session.id, client=client_id, abandon=True), Caller.inside(""))


async def sort_out(connection: "EditorClient", session: Session) -> None:
    """Remove clients that did not reconnect after a stop or crash of the host, where no disconnect was seen."""
    gone = connection.host.members.is_gone
    for client in session.state.clients:
        if client.id == connection.client_id:
            connection.joined.add(session.id)
        elif "ahp" in client.meta and client.id not in connection.broker.clients and gone(client.meta.get("host", "")):
            await part(session, client.id)
