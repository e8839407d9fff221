"""Entry points of installed packages, by group: for agents and for doors."""

import sys
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, distributions


def installed(group: str) -> list[EntryPoint]:
    """Where two copies of a package are on the path, of the first one, which is the one that is imported."""
    return [point for each in _offering(tuple(sys.path)) for point in each.entry_points if point.group == group]


@lru_cache(maxsize=1)
def _offering(path: tuple[str, ...]) -> list[Distribution]:
    """`importlib.metadata.entry_points` reads and parses the files of all packages, which is a tenth of the start."""
    found: dict[str, Distribution] = {}
    for each in distributions():
        if "[portico." in (each.read_text("entry_points.txt") or ""):
            found.setdefault(each.name, each)
    return list(found.values())
