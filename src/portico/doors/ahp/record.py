"""Copy-on-write for the JSON that states are made of: nothing here changes what it was given.

An optional field is absent rather than null, so setting one to None removes it. Everything that is not named stays,
which is how fields of a newer protocol survive us.
"""

from collections.abc import Callable
from typing import Any

from portico.doors.ahp.versions import Dialect

Json = dict[str, Any]
Handler = Callable[[Json, Json, Dialect], Json]
"""`(state, action, dialect) -> state`; the same object when nothing happened."""


def put(record: Json, /, **fields: Any) -> Json:
    return merge(record, fields)


def merge(record: Json, fields: Json) -> Json:
    merged = {**record, **fields}
    return {key: value for key, value in merged.items() if value is not None or key not in fields}


def items(record: Json, field: str) -> list[Any]:
    """A list field, empty when it is absent or null."""
    return record.get(field) or []


def index_of(entries: list[Any], value: object, key: str = "id") -> int | None:
    """Where the first record with `key == value` is. Nothing is called None, so None is never found."""
    if value is None:
        return None
    return next((at for at, entry in enumerate(entries) if isinstance(entry, dict) and entry.get(key) == value), None)


def with_item(entries: list[Any], at: int, entry: Any) -> list[Any]:
    return [*entries[:at], entry, *entries[at + 1 :]]


def without_item(entries: list[Any], at: int) -> list[Any]:
    return [*entries[:at], *entries[at + 1 :]]


def upsert(entries: list[Any], entry: Json, key: str = "id") -> list[Any]:
    """Replace the record with the same key in place, or append."""
    at = index_of(entries, entry.get(key), key)
    return [*entries, entry] if at is None else with_item(entries, at, entry)


def reorder(entries: list[Any], order: list[Any], key: str = "id") -> list[Any]:
    """The listed ones first, then the rest as they were: a client with a stale view must not lose any."""
    wanted = list(dict.fromkeys(value for value in order if isinstance(value, str)))
    first = [at for value in wanted if (at := index_of(entries, value, key)) is not None]
    return [entries[at] for at in first] + [entry for at, entry in enumerate(entries) if at not in first]


def setter(*fields: str) -> Handler:
    """A handler that copies these fields of the action into the state; an absent one is cleared."""

    def apply(state: Json, action: Json, _: Dialect) -> Json:
        return merge(state, {field: action.get(field) for field in fields})

    return apply


def config_changed(state: Json, action: Json, _: Dialect) -> Json:
    """Merge into the values, or replace them all; without a config there is nothing to change."""
    config = state.get("config")
    if not config:
        return state
    before = {} if action.get("replace") else config.get("values") or {}
    return put(state, config=put(config, values={**before, **(action.get("config") or {})}))
