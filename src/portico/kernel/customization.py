"""Customizations of a session's agent: MCP servers, plugins and others, and which of them a person disabled.

Plugins of clients are stored with the session, with their texts (`plugin/ID`). The agent gets them as text with the
first message: rules that always apply, and the skills. A prompt is the text that replaces a slash and its name in a
message.
"""

from collections.abc import Iterator, Mapping

from portico.kernel.events import Json

KEY = "customization/"
"""Key prefix of the switches; the id of the customization follows."""
SERVER = "mcp:"
"""Prefix of the ids of MCP servers; the name of the server follows."""
CHANNEL = "mcp://"
PLUGIN = "plugin/"
"""Key prefix of the plugins of clients."""
_CHARS = 60_000
"""Maximum length of the instructions of plugins."""


def server_channel(session: str, customization: str) -> str:
    """Return the channel by which clients reach an MCP server of a session; stored with the calls that show it."""
    return f"{CHANNEL}{session}/{customization.removeprefix(SERVER)}"


def server_at(channel: str) -> tuple[str, str] | None:
    """Return the session and the name of the server."""
    session, _, server = channel.removeprefix(CHANNEL).partition("/")
    return (session, server) if channel.startswith(CHANNEL) and session and server else None


def is_on(said: Json) -> bool:
    return said.get("enabled", True) is True and said.get("running", True) is True


def switched_off(kept: Mapping[str, Json]) -> frozenset[str]:
    """Return the ids of the disabled customizations."""
    return frozenset(key.removeprefix(KEY) for key, said in kept.items() if key.startswith(KEY) and not is_on(said))


def plugins(kept: Mapping[str, Json]) -> list[Json]:
    return [value for key, value in kept.items() if key.startswith(PLUGIN)]


def _children(kept: Mapping[str, Json], kind: str) -> Iterator[tuple[Json, str]]:
    """Yield the enabled items of one kind in all plugins, with their texts."""
    off = switched_off(kept)
    for plugin in plugins(kept):
        if plugin.get("enabled") is not False and plugin["id"] not in off:
            for child in plugin.get("children", []):
                if child["type"] == kind and is_on(kept.get(KEY + child["id"], child)):
                    yield child, plugin.get("texts", {}).get(child["id"], "")


def instructions(kept: Mapping[str, Json]) -> str:
    """Return the rules and skills of the plugins as text for an agent."""
    rules = [text for child, text in _children(kept, "rule") if child.get("alwaysApply", True)]
    skills = [
        f"Skill {child['name']!r}{': ' + child['description'] if child.get('description') else ''}\n{text}"
        for child, text in _children(kept, "skill")
    ]
    return "\n\n".join([*rules, *skills])[:_CHARS]


def prompts(kept: Mapping[str, Json]) -> dict[str, tuple[str, str]]:
    """Return the prompts by name: a description and the text."""
    return {child["name"]: (child.get("description", ""), text) for child, text in _children(kept, "prompt")}


def expanded(text: str, kept: Mapping[str, Json]) -> str:
    """Expand a message that starts with a slash and the name of a prompt."""
    name, _, rest = text[1:].partition(" ")
    found = prompts(kept).get(name.strip())
    return text if found is None else f"{found[1]}\n\n{rest.strip()}".strip()
