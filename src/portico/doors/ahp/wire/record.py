"""Copy-on-write functions for the JSON of states: nothing here changes its arguments.

An optional field is absent rather than null, so setting one to None removes it. All other fields stay, so the fields of
a newer protocol are preserved.
"""

from typing import Any

Json = dict[str, Any]


def present(**fields: Any) -> Json:
    """The fields that are not empty."""
    return {name: value for name, value in fields.items() if value}


def put(record: Json, /, **fields: Any) -> Json:
    return merge(record, fields)


def merge(record: Json, fields: Json) -> Json:
    merged = {**record, **fields}
    return {key: value for key, value in merged.items() if value is not None or key not in fields}


def items(record: Json, field: str) -> list[Any]:
    """A list field, empty when it is absent or null."""
    return record.get(field) or []


def index_of(entries: list[Any], value: object, key: str = "id") -> int | None:
    """The index of the first record with `key == value`. No record has the key None, so None is never found."""
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
