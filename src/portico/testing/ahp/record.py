"""What reducers have in common."""

from collections.abc import Callable
from typing import Any

from portico.doors.ahp.wire.record import Json, index_of, merge, put
from portico.doors.ahp.wire.versions import Dialect

Handler = Callable[[Json, Json, Dialect], Json]
"""`(state, action, dialect) -> state`; the same object when nothing happened."""


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
