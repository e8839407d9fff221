"""The automation channels of 0.9: the catalogue `automation/…` and one run `automationRun/…`.

`createRequested`, `updateRequested` and `cancelRequested` ask the host to do something and change no state.
"""

from portico.doors.ahp.wire.record import Json, index_of, items, put, upsert, without_item
from portico.doors.ahp.wire.versions import Dialect
from portico.testing.ahp.record import Handler, setter


def set_entry(state: Json, action: Json, _: Dialect) -> Json:
    entry = action.get("automation") or action.get("entry")
    return put(state, entries=upsert(items(state, "entries"), entry, "resource")) if entry else state


def removed(state: Json, action: Json, _: Dialect) -> Json:
    entries = items(state, "entries")
    at = index_of(entries, action.get("resource") or action.get("automation"), "resource")
    return state if at is None else put(state, entries=without_item(entries, at))


def session_set(state: Json, action: Json, _: Dialect) -> Json:
    """A run lists its sessions as URIs or as records with a `resource`."""
    session, sessions = action.get("session"), items(state, "sessions")
    if isinstance(session, dict):
        return put(state, sessions=upsert(sessions, session, "resource"))
    return state if session is None or session in sessions else put(state, sessions=[*sessions, session])


def session_removed(state: Json, action: Json, _: Dialect) -> Json:
    session = action.get("session")
    kept = [entry for entry in items(state, "sessions") if session not in (entry, _resource(entry))]
    return put(state, sessions=kept) if len(kept) < len(items(state, "sessions")) else state


def _resource(entry: object) -> object:
    return entry.get("resource") if isinstance(entry, dict) else entry


HANDLERS: dict[str, Handler] = {
    "automation/set": set_entry,
    "automation/removed": removed,
}

RUN_HANDLERS: dict[str, Handler] = {
    "automationRun/lifecycleChanged": setter("lifecycle"),
    "automationRun/sessionSet": session_set,
    "automationRun/sessionRemoved": session_removed,
    "automationRun/primarySessionChanged": setter("primarySession"),
}
