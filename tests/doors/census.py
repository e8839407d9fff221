"""How much the objects of this process hold, by class and attribute: where a leak shows, whatever it is of."""

import gc
from collections import deque
from typing import Any

from portico.kernel.cache import Cache


def census() -> dict[str, int]:
    """`Board._doing`: the entries of the largest such attribute. A cache and a ring have their bound from the start."""
    gc.collect()
    found: dict[str, int] = {}
    for each in gc.get_objects():
        kind = type(each)
        if not str(kind.__module__).startswith("portico"):
            continue
        for name, value in _attributes(each):
            if isinstance(value, dict | list | set | deque) and not _bounded(value):
                key = f"{kind.__qualname__}.{name}"
                found[key] = max(found.get(key, 0), len(value))
    return found


def _attributes(each: object) -> list[tuple[str, Any]]:
    slots = [name for kind in type(each).__mro__ for name in _slots(kind)]
    return [*getattr(each, "__dict__", {}).items(), *((name, getattr(each, name, None)) for name in slots)]


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _bounded(value: object) -> bool:
    return isinstance(value, Cache) or (isinstance(value, deque) and value.maxlen is not None)
