"""The annotations channel: `annotations/…` over AnnotationsState. Every action here may come from a client."""

from collections.abc import Callable

from portico.doors.ahp.wire.record import Json, index_of, items, put, upsert, with_item, without_item
from portico.doors.ahp.wire.versions import Dialect

_ANCHOR = ("turnId", "origin", "resource", "range", "resolved")
"""Fields that `updated` may write; `origin` replaced `turnId` in 0.9."""


def in_both_forms(action: Json, session: str) -> Json:
    """The action with both anchors, for older and newer clients: `turnId`, and `origin` since 0.9."""
    if action.get("annotation"):
        return {**action, "annotation": _anchored(action["annotation"], session)}
    return _anchored(action, session) if "turnId" in action or "origin" in action else action


def _anchored(said: Json, session: str) -> Json:
    turn = said.get("turnId") or (said.get("origin") or {}).get("turnId") or ""
    origin = said.get("origin") or {"session": session, **({"turnId": turn} if turn else {})}
    return {**said, "turnId": turn, "origin": origin}


def set_annotation(state: Json, action: Json, _: Dialect) -> Json:
    annotation = action.get("annotation")
    return put(state, annotations=upsert(items(state, "annotations"), annotation)) if annotation else state


def removed(state: Json, action: Json, _: Dialect) -> Json:
    annotations = items(state, "annotations")
    at = index_of(annotations, action.get("annotationId"))
    return state if at is None else put(state, annotations=without_item(annotations, at))


def _edited(state: Json, action: Json, **fields: object) -> Json:
    annotations = items(state, "annotations")
    at = index_of(annotations, action.get("annotationId"))
    return state if at is None else put(state, annotations=with_item(annotations, at, put(annotations[at], **fields)))


def updated(state: Json, action: Json, _: Dialect) -> Json:
    """Only what the action carries is written; it cannot clear anything."""
    return _edited(state, action, **{field: action[field] for field in _ANCHOR if action.get(field) is not None})


def _entries(state: Json, action: Json) -> list[Json]:
    annotations = items(state, "annotations")
    at = index_of(annotations, action.get("annotationId"))
    return [] if at is None else items(annotations[at], "entries")


def entry_set(state: Json, action: Json, _: Dialect) -> Json:
    entry = action.get("entry")
    return _edited(state, action, entries=upsert(_entries(state, action), entry)) if entry else state


def entry_removed(state: Json, action: Json, _: Dialect) -> Json:
    entries = _entries(state, action)
    at = index_of(entries, action.get("entryId"))
    return state if at is None else _edited(state, action, entries=without_item(entries, at))


HANDLERS: dict[str, Callable[[Json, Json, Dialect], Json]] = {
    "annotations/set": set_annotation,
    "annotations/updated": updated,
    "annotations/removed": removed,
    "annotations/entrySet": entry_set,
    "annotations/entryRemoved": entry_removed,
}
