"""A session's customizations: a list of containers and bare MCP servers, where a container has children."""

from collections.abc import Callable

from portico.doors.ahp.wire.record import Json, index_of, items, put, upsert, with_item, without_item
from portico.doors.ahp.wire.versions import Dialect
from portico.testing.ahp.record import Handler, setter

Edit = Callable[[Json], Json | None]
"""What becomes of an entry; None removes it."""


def _edited(state: Json, wanted: object, edit: Edit, kind: str | None = None) -> Json:
    """Apply `edit` to the entry with this id: the top level comes first, then every container's children."""
    top = items(state, "customizations")
    after = _edited_list(top, wanted, edit, kind)
    if after is not None:
        return put(state, customizations=after)
    for at, container in enumerate(top):
        children = _edited_list(items(container, "children"), wanted, edit, kind)
        if children is not None:
            return put(state, customizations=with_item(top, at, put(container, children=children)))
    return state


def _edited_list(entries: list[Json], wanted: object, edit: Edit, kind: str | None) -> list[Json] | None:
    at = index_of(entries, wanted)
    if at is None or kind not in (None, entries[at].get("type")):
        return None
    entry = edit(entries[at])
    return without_item(entries, at) if entry is None else with_item(entries, at, entry)


def toggled(state: Json, action: Json, _: Dialect) -> Json:
    """Up to 0.7 a flag, from 0.8 on the whole set of decisions; whichever form the action carries is written."""
    forms = {field: action[field] for field in ("enabled", "enablement") if action.get(field) is not None}
    return _edited(state, action.get("id"), lambda entry: put(entry, **forms))


def updated(state: Json, action: Json, _: Dialect) -> Json:
    customization = action.get("customization")
    return put(state, customizations=upsert(items(state, "customizations"), customization)) if customization else state


def removed(state: Json, action: Json, _: Dialect) -> Json:
    return _edited(state, action.get("id"), lambda entry: None)


def server_state_changed(state: Json, action: Json, _: Dialect) -> Json:
    return _server(state, action, lambda entry: put(entry, state=action.get("state"), channel=action.get("channel")))


def server_start_requested(state: Json, action: Json, _: Dialect) -> Json:
    return _server(state, action, lambda entry: put(entry, state={"kind": "starting"}, channel=None))


def server_stop_requested(state: Json, action: Json, _: Dialect) -> Json:
    return _server(state, action, lambda entry: put(entry, state={"kind": "stopped"}, channel=None))


def server_background_requested(state: Json, action: Json, _: Dialect) -> Json:
    """Let a server continue its start without blocking the session."""
    return _server(state, action, _unblocked)


def _unblocked(entry: Json) -> Json:
    state = entry.get("state") or {}
    return put(entry, state=put(state, blocking=False)) if state.get("kind") == "starting" else entry


def _server(state: Json, action: Json, edit: Edit) -> Json:
    return _edited(state, action.get("id"), edit, "mcpServer")


HANDLERS: dict[str, Handler] = {
    "session/customizationsChanged": setter("customizations"),
    "session/customizationToggled": toggled,
    "session/customizationUpdated": updated,
    "session/customizationRemoved": removed,
    "session/mcpServerStateChanged": server_state_changed,
    "session/mcpServerStartRequested": server_start_requested,
    "session/mcpServerStopRequested": server_stop_requested,
    "session/mcpServerBackgroundRequested": server_background_requested,
}
