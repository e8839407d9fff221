"""The settings a session can have, and what to complete their values with."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from portico.doors.ahp.act import working_directories
from portico.doors.ahp.act.command import Method, optional, text
from portico.doors.ahp.view import config
from portico.doors.ahp.wire.record import Json
from portico.features.sandboxes.offer import properties_in
from portico.kernel.agent import AgentInfo, Completes
from portico.kernel.errors import NotFound

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient


async def resolve(connection: "EditorClient", params: Json) -> Json:
    """The whole schema each time; the values are what was given and our defaults."""
    info, folder = _subject(connection, params)
    is_git = folder is not None and await config.is_git(folder)
    connection.broker.git_folders[str(folder)] = is_git
    given = optional(params, "config", dict) or {}
    sandbox = properties_in(connection.host, str(folder or ""), info.id)
    schema = config.session_schema(info, sandbox, is_git=is_git, isolation=given.get("isolation"))
    return {"schema": schema, "values": config.values(schema, given)}


def _subject(connection: "EditorClient", params: Json) -> tuple[AgentInfo, Path | None]:
    agents = connection.broker.agents
    provider = optional(params, "provider", str) or next(iter(agents), "")
    if provider not in agents:
        raise NotFound("agent", provider)
    named = working_directories.listed(params)[:1]
    return agents[provider], next((Path(each) for each in named if os.path.isdir(each)), None)


async def property_completions(connection: "EditorClient", params: Json) -> Json:
    info, folder = _subject(connection, params)
    wanted, query = text(params, "property"), (optional(params, "query", str) or "").lower()
    if wanted == "branch":
        found = await config.branches(folder) if folder is not None and await config.is_git(folder) else []
        items: list[Json] = [{"value": each, "label": each} for each in found]
    else:
        agent = connection.host.agent(info.id)
        items = await agent.complete(wanted, query) if isinstance(agent, Completes) else []
    return {"items": [each for each in items if query in str(each.get("label", each.get("value", ""))).lower()]}


COMMANDS = {
    "resolveSessionConfig": Method(resolve, "sessions", beside=True),
    "sessionConfigCompletions": Method(property_completions, "sessions", beside=True),
}
