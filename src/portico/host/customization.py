"""What a session's agent works with besides its own: MCP servers, plugins and the like, and what a person switched off.

Plugins that clients contribute are kept with the session, with their texts (`plugin/ID`). An agent is told them in
words, with the first message: rules that always apply whole, and which skills there are. A prompt is what its name
with a slash stands for.
"""

from collections.abc import Iterator, Mapping

from portico.events import Json

KEY = "customization/"
"""The switches are kept under this key and the customization's id."""
SERVER = "mcp:"
"""The ids of MCP servers begin with it, and go on with their names."""
CHANNEL = "mcp://"
PLUGIN = "plugin/"
"""So are plugins of clients."""
_CHARS = 60_000
"""What a model reads of plugins before the real question."""


def server_channel(session: str, customization: str) -> str:
    """What clients call the way to an MCP server of a session; stored with the calls that it shows."""
    return f"{CHANNEL}{session}/{customization.removeprefix(SERVER)}"


def server_at(channel: str) -> tuple[str, str] | None:
    """The session and the server's name."""
    session, _, server = channel.removeprefix(CHANNEL).partition("/")
    return (session, server) if channel.startswith(CHANNEL) and session and server else None


def is_on(said: Json) -> bool:
    return said.get("enabled", True) is True and said.get("running", True) is True


def switched_off(kept: Mapping[str, Json]) -> frozenset[str]:
    """The ids of what an agent has to leave out."""
    return frozenset(key.removeprefix(KEY) for key, said in kept.items() if key.startswith(KEY) and not is_on(said))


def plugins(kept: Mapping[str, Json]) -> list[Json]:
    return [value for key, value in kept.items() if key.startswith(PLUGIN)]


def _children(kept: Mapping[str, Json], kind: str) -> Iterator[tuple[Json, str]]:
    """What the plugins have of one kind and nobody switched off, with its text."""
    off = switched_off(kept)
    for plugin in plugins(kept):
        if plugin.get("enabled") is not False and plugin["id"] not in off:
            for child in plugin.get("children", []):
                if child["type"] == kind and is_on(kept.get(KEY + child["id"], child)):
                    yield child, plugin.get("texts", {}).get(child["id"], "")


def instructions(kept: Mapping[str, Json]) -> str:
    """What the plugins have to say to an agent."""
    rules = [text for child, text in _children(kept, "rule") if child.get("alwaysApply", True)]
    skills = [
        f"Skill {child['name']!r}{': ' + child['description'] if child.get('description') else ''}\n{text}"
        for child, text in _children(kept, "skill")
    ]
    return "\n\n".join([*rules, *skills])[:_CHARS]


def prompts(kept: Mapping[str, Json]) -> dict[str, tuple[str, str]]:
    """What a slash and a name stand for: a description, and the text."""
    return {child["name"]: (child.get("description", ""), text) for child, text in _children(kept, "prompt")}


def expanded(text: str, kept: Mapping[str, Json]) -> str:
    """A message that begins with the name of a prompt, written out."""
    if not text.startswith("/"):
        return text
    name, _, rest = text[1:].partition(" ")
    found = prompts(kept).get(name.strip())
    return text if found is None else f"{found[1]}\n\n{rest.strip()}".strip()
