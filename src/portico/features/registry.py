"""Features of other packages, found by the entry point group `portico.features`.

The host, the doors and the command line use it: a feature adds commands to all of them. One that cannot be loaded is
left out and logged.
"""

import logging
from functools import cache
from importlib.metadata import EntryPoint

from portico.kernel.feature import Feature
from portico.server.plugins import installed

GROUP = "portico.features"
logger = logging.getLogger("portico.features")


def installed_features() -> list[type[Feature]]:
    """Return the features of other packages, and add what they declare to the tables of commands and events."""
    found: list[type[Feature]] = []
    for point in sorted(installed(GROUP), key=lambda point: point.name):
        if not point.value.startswith("portico."):
            try:
                found.append(_loaded(point))
            except Exception as error:  # noqa: BLE001 - one broken plugin must not stop the host
                logger.error("the feature %s is left out: %s: %s", point.name, type(error).__name__, error)
    return found


def _loaded(point: EntryPoint) -> type[Feature]:
    kind = point.load()
    if not (isinstance(kind, type) and issubclass(kind, Feature) and kind.name == point.name):
        raise TypeError(f"{point.value} is no Feature of this name")
    kind.register()
    return kind


@cache
def installed_verbs() -> dict[str, str]:
    """Return the verbs of features of other packages: the place of each, by its name."""
    return {verb: place for kind in installed_features() for verb, place in kind.verbs.items()}
