"""The session channel of the modern dialect: `session/…` over SessionState, a catalogue around the chats."""

from portico.doors.ahp.wire import status
from portico.doors.ahp.wire.record import Json, index_of, items, merge, put, upsert, with_item, without_item
from portico.doors.ahp.wire.versions import Dialect
from portico.testing.ahp.customization import HANDLERS as CUSTOMIZATION_HANDLERS
from portico.testing.ahp.directory import removed_directory, replaced_directory, set_directory
from portico.testing.ahp.record import Handler, config_changed, reorder, setter
from portico.testing.ahp.status import is_archived_changed, is_read_changed, with_flag


def ready(state: Json, action: Json, _: Dialect) -> Json:
    return put(state, lifecycle="ready")


def creation_failed(state: Json, action: Json, dialect: Dialect) -> Json:
    lifecycle = "failed" if dialect.since("0.9.0") else "creationFailed"
    return put(state, lifecycle=lifecycle, creationError=action.get("error"))


def chat_added(state: Json, action: Json, _: Dialect) -> Json:
    summary = action.get("summary")
    return put(state, chats=upsert(items(state, "chats"), summary, "resource")) if summary else state


def chat_removed(state: Json, action: Json, _: Dialect) -> Json:
    chats, chat = items(state, "chats"), action.get("chat")
    at = index_of(chats, chat, "resource")
    if at is None:
        return state
    state = put(state, chats=without_item(chats, at))
    return put(state, defaultChat=None) if state.get("defaultChat") == chat else state


def chat_updated(state: Json, action: Json, _: Dialect) -> Json:
    chats = items(state, "chats")
    at = index_of(chats, action.get("chat"), "resource")
    if at is None:
        return state
    changes = {key: value for key, value in (action.get("changes") or {}).items() if key != "resource"}
    return put(state, chats=with_item(chats, at, merge(chats[at], changes)))


def chats_reordered(state: Json, action: Json, _: Dialect) -> Json:
    order = items(action, "order") or items(action, "chats")
    return put(state, chats=reorder(items(state, "chats"), order, "resource"))


def server_tools_changed(state: Json, action: Json, _: Dialect) -> Json:
    return put(state, serverTools=items(action, "tools"))


def active_client_set(state: Json, action: Json, _: Dialect) -> Json:
    client = action.get("activeClient")
    return put(state, activeClients=upsert(items(state, "activeClients"), client, "clientId")) if client else state


def active_client_removed(state: Json, action: Json, _: Dialect) -> Json:
    clients = items(state, "activeClients")
    at = index_of(clients, action.get("clientId"), "clientId")
    return state if at is None else put(state, activeClients=without_item(clients, at))


def input_needed_set(state: Json, action: Json, dialect: Dialect) -> Json:
    request = action.get("request")
    return _with_needed(state, upsert(items(state, "inputNeeded"), request), dialect) if request else state


def input_needed_removed(state: Json, action: Json, dialect: Dialect) -> Json:
    needed = items(state, "inputNeeded")
    at = index_of(needed, action.get("id"))
    return state if at is None else _with_needed(state, without_item(needed, at), dialect)


def _with_needed(state: Json, needed: list[Json], dialect: Dialect) -> Json:
    """Derive the status from the list. When no input is needed any more, the turn continues: clear only that bit."""
    before = state.get("status") or 0
    if any(status.blocks(request, dialect) for request in needed):
        after = status.with_activity(before, status.INPUT_NEEDED)
    else:
        after = with_flag(before, status.WAITING, False)
    return put(state, inputNeeded=needed or None, status=after)


HANDLERS: dict[str, Handler] = {
    **CUSTOMIZATION_HANDLERS,
    "session/ready": ready,
    "session/creationFailed": creation_failed,
    "session/chatAdded": chat_added,
    "session/chatRemoved": chat_removed,
    "session/chatUpdated": chat_updated,
    "session/chatsReordered": chats_reordered,
    "session/defaultChatChanged": setter("defaultChat"),
    "session/titleChanged": setter("title"),
    "session/isReadChanged": is_read_changed,
    "session/isArchivedChanged": is_archived_changed,
    "session/activityChanged": setter("activity"),
    "session/changesetsChanged": setter("changesets"),
    "session/serverToolsChanged": server_tools_changed,
    "session/activeClientSet": active_client_set,
    "session/activeClientRemoved": active_client_removed,
    "session/workingDirectorySet": set_directory,
    "session/workingDirectoryRemoved": removed_directory,
    "session/workingDirectoryReplaced": replaced_directory,
    "session/inputNeededSet": input_needed_set,
    "session/inputNeededRemoved": input_needed_removed,
    "session/configChanged": config_changed,
    "session/metaChanged": setter("_meta"),
}
