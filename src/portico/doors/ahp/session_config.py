"""The settings a session can have, and completions: of settings, of files (`@`) and of commands (`/`)."""

from pathlib import Path
from typing import TYPE_CHECKING

from portico.doors.ahp import config, names, working_directories
from portico.doors.ahp.command import Command, optional, text
from portico.doors.ahp.record import Json
from portico.errors import NotFound
from portico.host.agent import AgentInfo, Completes
from portico.host.customization import prompts
from portico.host.session import Session
from portico.workspace import search
from portico.workspace.jail import Jail

if TYPE_CHECKING:
    from portico.doors.ahp.connection import Connection

_FILES = 50
"""Files in one list of completions: more than anybody scrolls through."""


async def resolve(connection: "Connection", params: Json) -> Json:
    """The whole schema each time; the values are what was given and our defaults."""
    info, folder = _subject(connection, params)
    is_git = folder is not None and await config.is_git(folder)
    connection.broker.git_folders[str(folder)] = is_git
    schema = config.session_schema(info, is_git=is_git)
    return {"schema": schema, "values": config.values(schema, optional(params, "config", dict) or {})}


def _subject(connection: "Connection", params: Json) -> tuple[AgentInfo, Path | None]:
    agents = connection.broker.agents
    provider = optional(params, "provider", str) or next(iter(agents), "")
    if provider not in agents:
        raise NotFound("agent", provider)
    named = working_directories.listed(params)[:1]
    return agents[provider], next((Path(each) for each in named if Path(each).is_dir()), None)


async def property_completions(connection: "Connection", params: Json) -> Json:
    info, folder = _subject(connection, params)
    wanted, query = text(params, "property"), (optional(params, "query", str) or "").lower()
    if wanted == "branch":
        found = await config.branches(folder) if folder is not None and await config.is_git(folder) else []
        items: list[Json] = [{"value": each, "label": each} for each in found]
    else:
        agent = connection.host.agent(info.id)
        items = await agent.complete(wanted, query) if isinstance(agent, Completes) else []
    return {"items": [each for each in items if query in str(each.get("label", each.get("value", ""))).lower()]}


async def completions(connection: "Connection", params: Json) -> Json:
    chat = names.find_chat(connection.host, text(params, "channel"))
    if chat is None:
        raise NotFound("session", text(params, "channel"))
    said, offset = optional(params, "text", str) or "", optional(params, "offset", int)
    word, start, end = _word(said, offset)
    if word.startswith("@"):
        connection.require("files")
        items = await _files(chat, word[1:])
    elif word.startswith("/") and start == 0:
        agent = connection.host.agent(chat.summary.agent)
        found = await agent.complete("/", word[1:]) if isinstance(agent, Completes) else []
        own = prompts((await connection.host.get(chat.id)).state.client_data)
        items = _verbs([*found, *({"value": name} for name in own)], word[1:])
    else:
        items = []
    return {"items": [{**each, "rangeStart": start, "rangeEnd": end} for each in items]}


def _word(said: str, offset: int | None) -> tuple[str, int, int]:
    """The word before the cursor. Clients count in UTF-16."""
    wide = said.encode("utf-16-le")
    end = len(wide) // 2 if offset is None else max(0, min(offset, len(wide) // 2))
    before = wide[: end * 2].decode("utf-16-le", "ignore")
    word = before[max(before.rfind(sign) for sign in (" ", "\n", "\t")) + 1 :]
    return word, end - len(word.encode("utf-16-le")) // 2, end


async def _files(chat: Session, query: str) -> list[Json]:
    """Of all its folders; what is not in the session's own is called by its whole path."""
    items: list[Json] = []
    for folder in chat.folders.reach():
        jail = Jail([folder])
        for path in (await search.find(jail, query, _FILES - len(items))).paths:
            where = str(jail.root / path)
            shown = path if folder == chat.summary.cwd else where
            attachment = {"type": "resource", "uri": names.file_uri(where), "displayKind": "file"}
            label = path.rpartition("/")[2]
            items.append({"insertText": f"@{shown}", "attachment": {**attachment, "label": label}})
        if len(items) >= _FILES:
            break
    return items


def _verbs(found: list[Json], query: str) -> list[Json]:
    return [
        {
            "insertText": f"/{each['value']} ",
            "attachment": {"type": "simple", "label": f"/{each['value']}", "displayKind": "command"},
        }
        for each in found
        if str(each.get("value", "")).startswith(query)
    ]


COMMANDS = {
    "resolveSessionConfig": Command(resolve, "read", beside=True),
    "sessionConfigCompletions": Command(property_completions, "read", beside=True),
    "completions": Command(completions, "read", beside=True, seed=False),
}
