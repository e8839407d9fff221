"""A session's customizations: what its agent offers (MCP servers, plugins, folders of rules), and how a person switched
them. The switches are kept in the session; an agent that opens a conversation leaves out what is switched off.

A customization that the host does not run has the state that the agent reports, or else `ready` while it is enabled.
"""

from portico.doors.ahp.wire.envelope import Outgoing
from portico.doors.ahp.wire.record import Json
from portico.kernel.agent import AgentInfo
from portico.kernel.customization import KEY, PLUGIN, plugins
from portico.kernel.events import ClientKept

READY: Json = {"kind": "ready"}


def modern(info: AgentInfo | None, kept: dict[str, Json]) -> list[Json]:
    return [_shown(item, kept) for item in offerings(info, kept)]


def offerings(info: AgentInfo | None, kept: dict[str, Json]) -> list[Json]:
    """The customizations of the agent and the plugins of clients."""
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
        shown["state"] = said.get("state") or item.get("state") or READY
    return shown


def seed(info: AgentInfo | None, kept: dict[str, Json]) -> list[Json]:
    """The flat list of version 1, with URIs as keys."""
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
    """The default customizations for AgentInfo, with the name field of version 1."""
    shown = [{**each, "displayName": each.get("name", "")} for each in modern(info, {})]
    return {"customizations": shown} if shown else {}


# -- as actions ------------------------------------------------------------------------------------------------


def actions(event: ClientKept) -> list[Outgoing]:
    """The actions of a switch on the session's channel. The server's state follows separately, because the reducer
    only records the request."""
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
    """The actions when a client's plugin is added, read or removed."""
    if event.value is None:
        return [Outgoing("customizationRemoved", {"id": event.key.removeprefix(PLUGIN)})]
    return [Outgoing("customizationUpdated", {"customization": _shown(event.value, kept)})]


def is_switch(event: ClientKept) -> bool:
    return event.key.startswith(KEY)


def is_plugin(event: ClientKept) -> bool:
    return event.key.startswith(PLUGIN)
