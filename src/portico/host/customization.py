"""What a person switched off in a session: MCP servers, plugins and the like that its agent would else use."""

from collections.abc import Mapping

from portico.events import Json

KEY = "customization/"
"""The switches are kept under this key and the customization's id."""


def is_on(said: Json) -> bool:
    return said.get("enabled", True) is True and said.get("running", True) is True


def switched_off(kept: Mapping[str, Json]) -> frozenset[str]:
    """The ids of what an agent has to leave out."""
    return frozenset(key.removeprefix(KEY) for key, said in kept.items() if key.startswith(KEY) and not is_on(said))
