"""A session's customizations: what its agent offers (MCP servers, plugins, folders of rules), and how a person switched
them. The switches are kept in the session; an agent that opens a conversation leaves out what is switched off.

What the host runs none of itself has the state that the agent reports for it, or else `ready` while it is on.
"""

from typing import TYPE_CHECKING

from portico.commands import ShareData
from portico.doors.ahp.record import Json
from portico.doors.ahp.translate import Outgoing
from portico.errors import Conflict
from portico.events import ClientKept
from portico.host.agent import AgentInfo
from portico.host.customization import KEY, PLUGIN, is_on, plugins
from portico.host.state import SessionState

if TYPE_CHECKING:
    from portico.doors.ahp.client_action import ClientAction
    from portico.host.session import Session

_READY: Json = {"kind": "ready"}
_STOPPED: Json = {"kind": "stopped"}


def modern(info: AgentInfo | None, kept: dict[str, Json]) -> list[Json]:
    return [_shown(item, kept) for item in _all(info, kept)]


def _all(info: AgentInfo | None, kept: dict[str, Json]) -> list[Json]:
    """What the agent brings along, and the plugins of clients."""
    return [*(info.customizations if info is not None else []), *plugins(kept)]


def _shown(item: Json, kept: dict[str, Json]) -> Json:
    said = kept.get(KEY + str(item.get("id")), {})
    shown: Json = {key: value for key, value in item.items() if key != "texts"}
    shown["enabled"] = said.get("enabled", item.get("enabled", True))
    if "enablement" in said:
        shown["enablement"] = said["enablement"]
    if item.get("children"):
        shown["children"] = [_shown(child, kept) for child in item["children"]]
    if item.get("type") == "mcpServer":
        shown["state"] = said.get("state") or item.get("state") or _READY
    return shown


def seed(info: AgentInfo | None, kept: dict[str, Json]) -> list[Json]:
    """Version 1 has one flat list, known by its URIs."""
    return [
        {
            "customization": {"uri": each["uri"], "displayName": each["name"]},
            "enabled": each["enabled"],
            "status": (each.get("load") or {}).get("kind", "loaded"),
            **({"clientId": each["clientId"]} if "clientId" in each else {}),
        }
        for each in modern(info, kept)
    ]


def offered(info: AgentInfo) -> Json:
    """In AgentInfo, where nobody has switched anything yet; with the name that version 1 reads."""
    shown = [{**each, "displayName": each.get("name", "")} for each in modern(info, {})]
    return {"customizations": shown} if shown else {}


# -- switched --------------------------------------------------------------------------------------------------


async def toggle(client_action: "ClientAction", session: "Session") -> None:
    action = client_action.action
    key = "uri" if client_action.connection.dialect.seed else "id"
    item = _find(client_action, session, key, action[key])
    enablement = action.get("enablement")
    enabled = next((each["enabled"] for each in enablement or []), action.get("enabled", True))
    value = {"enabled": enabled, "enablement": enablement or [{"kind": "session", "enabled": enabled}]}
    await _keep(client_action, session, item, value)


async def start(client_action: "ClientAction", session: "Session") -> None:
    item = _server(client_action, session)
    await _keep(client_action, session, item, {"running": True})


async def stop(client_action: "ClientAction", session: "Session") -> None:
    item = _server(client_action, session)
    await _keep(client_action, session, item, {"running": False})


async def background(client_action: "ClientAction", session: "Session") -> bool:
    """Nothing here holds a session up while it starts."""
    _server(client_action, session)
    return False


def _server(client_action: "ClientAction", session: "Session") -> Json:
    item = _find(client_action, session, "id", client_action.action["id"])
    if item.get("type") != "mcpServer":
        raise Conflict(f"{client_action.action['id']!r} is no MCP server.")
    return item


def _find(client_action: "ClientAction", session: "Session", key: str, wanted: str) -> Json:
    info = client_action.connection.broker.agents.get(session.state.agent)
    for item in _all(info, session.state.client_data):
        children: list[Json] = item.get("children") or []
        for each in (item, *children):
            if each.get(key) == wanted:
                return each
    raise Conflict(f"This session has no customization {wanted!r}.")


async def _keep(client_action: "ClientAction", session: "Session", item: Json, change: Json) -> None:
    key = KEY + str(item["id"])
    value: Json = {"uri": item.get("uri", ""), **session.state.client_data.get(key, {}), **change}
    if item.get("type") == "mcpServer":
        value["state"] = (item.get("state") or _READY) if is_on(value) else _STOPPED
    command = ShareData(session=session.id, key=key, value=value, action=client_action.action)
    await client_action.do(command)
    session.runner.refresh()


# -- as actions ------------------------------------------------------------------------------------------------


def actions(event: ClientKept) -> list[Outgoing]:
    """What a switch says on the session's channel. A server's state comes behind it, for the reducer only knows that
    it was asked for."""
    value, ident = event.value or {}, event.key.removeprefix(KEY)
    name = str(event.action.get("type", "")).removeprefix("session/")
    fields: Json = {"id": ident}
    if name == "customizationToggled":
        fields |= {"enabled": value["enabled"], "enablement": value["enablement"]}
    said = [Outgoing(name, fields, event.by)]
    if "state" in value:
        said.append(Outgoing("mcpServerStateChanged", {"id": ident, "state": value["state"]}))
    return said


def contributed(event: ClientKept, kept: dict[str, Json]) -> list[Outgoing]:
    """What a client's plugin says there, when it comes, has been read, or goes."""
    if event.value is None:
        return [Outgoing("customizationRemoved", {"id": event.key.removeprefix(PLUGIN)})]
    return [Outgoing("customizationUpdated", {"customization": _shown(event.value, kept)})]


def is_switch(event: ClientKept) -> bool:
    return event.key.startswith(KEY)


def is_plugin(event: ClientKept) -> bool:
    return event.key.startswith(PLUGIN)


def of_session(info: AgentInfo | None, state: SessionState, *, as_seed: bool) -> Json:
    shown = seed(info, state.client_data) if as_seed else modern(info, state.client_data)
    return {"customizations": shown} if shown else {}
