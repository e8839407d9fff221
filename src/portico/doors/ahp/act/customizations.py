"""Enable and disable a session's customizations: stored in the session and sent to all subscribers."""

from typing import TYPE_CHECKING

from portico.doors.ahp.act import relay
from portico.doors.ahp.view.customizations import READY, offerings
from portico.doors.ahp.view.targets import Target
from portico.doors.ahp.wire.record import Json
from portico.kernel.commands import ShareData
from portico.kernel.customization import KEY, is_on
from portico.kernel.errors import Conflict
from portico.kernel.session import Session

if TYPE_CHECKING:
    from portico.doors.ahp.act.client_action import ClientAction

_STOPPED: Json = {"kind": "stopped"}


async def toggle(client_action: "ClientAction", session: Session) -> None:
    action = client_action.action
    key = "uri" if client_action.connection.dialect.seed else "id"
    item = _find(client_action, session, key, action[key])
    enablement = action.get("enablement")
    enabled = next((each["enabled"] for each in enablement or []), action.get("enabled", True))
    value = {"enabled": enabled, "enablement": enablement or [{"kind": "session", "enabled": enabled}]}
    await _keep(client_action, session, item, value)


async def start(client_action: "ClientAction", session: Session) -> None:
    item = _server(client_action, session)
    await _keep(client_action, session, item, {"running": True})


async def stop(client_action: "ClientAction", session: Session) -> None:
    item = _server(client_action, session)
    await _keep(client_action, session, item, {"running": False})


async def background(client_action: "ClientAction", session: Session) -> bool:
    """No effect: no customization blocks the start of a session."""
    _server(client_action, session)
    return False


def _server(client_action: "ClientAction", session: Session) -> Json:
    item = _find(client_action, session, "id", client_action.action["id"])
    if item.get("type") != "mcpServer":
        raise Conflict(f"{client_action.action['id']!r} is no MCP server.")
    return item


def _find(client_action: "ClientAction", session: Session, key: str, wanted: str) -> Json:
    info = client_action.connection.broker.agents.get(session.state.agent)
    for item in offerings(info, session.state.client_data):
        children: list[Json] = item.get("children") or []
        for each in (item, *children):
            if each.get(key) == wanted:
                return each
    raise Conflict(f"This session has no customization {wanted!r}.")


async def _keep(client_action: "ClientAction", session: Session, item: Json, change: Json) -> None:
    key = KEY + str(item["id"])
    value: Json = {"uri": item.get("uri", ""), **session.state.client_data.get(key, {}), **change}
    if item.get("type") == "mcpServer":
        value["state"] = (item.get("state") or READY) if is_on(value) else _STOPPED
    command = ShareData(session=session.id, key=key, value=value, action=client_action.action)
    await client_action.do(command)
    session.runner.refresh()
    target = Target("session", session.id)
    for connection in list(client_action.connection.broker.hearers(target)):
        for said in relay.now(connection, session.state) if connection.shows_apps else ():
            connection.say(target, said)
