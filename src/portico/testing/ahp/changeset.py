"""The changeset channel: `changeset/…` over ChangesetState."""

from portico.doors.ahp.wire.record import Json, index_of, items, put, upsert, with_item, without_item
from portico.doors.ahp.wire.versions import Dialect
from portico.testing.ahp.record import Handler, setter


def file_set(state: Json, action: Json, _: Dialect) -> Json:
    file = action.get("file")
    return put(state, files=upsert(items(state, "files"), file)) if file else state


def file_removed(state: Json, action: Json, _: Dialect) -> Json:
    files = items(state, "files")
    at = index_of(files, action.get("fileId"))
    return state if at is None else put(state, files=without_item(files, at))


def files_review_changed(state: Json, action: Json, _: Dialect) -> Json:
    files, ids = items(state, "files"), items(action, "files")
    if not any(file.get("id") in ids for file in files):
        return state
    reviewed = action.get("reviewed") is True
    return put(state, files=[put(file, reviewed=reviewed) if file.get("id") in ids else file for file in files])


def content_changed(state: Json, action: Json, dialect: Dialect) -> Json:
    """Replace the whole content; operations are kept unless given. The `error` here was removed in 0.9."""
    changes: Json = {"files": items(action, "files")}
    if action.get("operations") is not None:
        changes["operations"] = action["operations"]
    if not dialect.since("0.9.0"):
        changes["error"] = action.get("error")
    return put(state, **changes)


def operation_status_changed(state: Json, action: Json, _: Dialect) -> Json:
    operations = items(state, "operations")
    at = index_of(operations, action.get("operationId"))
    if at is None:
        return state
    operation = put(operations[at], status=action.get("status"), error=action.get("error"))
    return put(state, operations=with_item(operations, at, operation))


def cleared(state: Json, action: Json, _: Dialect) -> Json:
    return put(state, files=[]) if items(state, "files") else state


HANDLERS: dict[str, Handler] = {
    "changeset/statusChanged": setter("status", "error"),
    "changeset/fileSet": file_set,
    "changeset/fileRemoved": file_removed,
    "changeset/filesReviewChanged": files_review_changed,
    "changeset/contentChanged": content_changed,
    "changeset/operationsChanged": setter("operations"),
    "changeset/operationStatusChanged": operation_status_changed,
    "changeset/cleared": cleared,
}
