"""What a message can be completed with: files (`@`, `#`), other chats (`#chat:`), commands of the agent (`/`).

VS Code asks on the session's channel, also before its first message; the Copilot CLI on the chat's.
"""

from typing import TYPE_CHECKING

from portico.doors.ahp.act.command import Method, optional, text
from portico.doors.ahp.view import names
from portico.doors.ahp.wire.record import Json
from portico.errors import NotFound
from portico.host.agent import Completes
from portico.host.customization import prompts
from portico.host.session import Session
from portico.workspace import search
from portico.workspace.jail import Jail

if TYPE_CHECKING:
    from portico.doors.ahp.connection.connection import Connection

TRIGGERS = ["/", "@", "#"]
_CHATS = "#chat:"
_FILES = 50
"""Files in one list of completions: more than anybody scrolls through."""


async def completions(connection: "Connection", params: Json) -> Json:
    name = text(params, "channel")
    chat = names.find_chat(connection.view, name) or names.find_session(connection.view, name)
    if chat is None:
        raise NotFound("session", name)
    chat = await connection.view.get(chat.id)
    word, start, end = _word(optional(params, "text", str) or "", optional(params, "offset", int))
    items = await _items(connection, chat, word, start)
    return {"items": [{**each, "rangeStart": start, "rangeEnd": end} for each in items]}


async def _items(connection: "Connection", chat: Session, word: str, start: int) -> list[Json]:
    if word.startswith("/") and start == 0:
        return await _commands(connection, chat, word[1:])
    if not word.startswith(("@", "#")):
        return []
    chats = _other_chats(connection, chat, word) if word.startswith("#") else []
    if word.startswith(_CHATS):
        return chats
    connection.view.require("files")
    return [*chats, *await _files(chat, word[0], word[1:])]


def _word(said: str, offset: int | None) -> tuple[str, int, int]:
    """The word before the cursor. Clients count in UTF-16."""
    wide = said.encode("utf-16-le")
    end = len(wide) // 2 if offset is None else max(0, min(offset, len(wide) // 2))
    before = wide[: end * 2].decode("utf-16-le", "ignore")
    word = before[max(before.rfind(sign) for sign in (" ", "\n", "\t")) + 1 :]
    return word, end - len(word.encode("utf-16-le")) // 2, end


async def _files(chat: Session, trigger: str, query: str) -> list[Json]:
    """Of all its folders; what is not in the session's own is called by its whole path."""
    items: list[Json] = []
    for folder in chat.folders.reach():
        jail = Jail([folder])
        for path in (await search.find(jail, query, _FILES - len(items))).paths:
            where = str(jail.root / path)
            shown = path if folder == chat.summary.cwd else where
            attachment = {"type": "resource", "uri": names.file_uri(where), "displayKind": "document"}
            label = path.rpartition("/")[2]
            items.append({"insertText": f"{trigger}{shown}", "attachment": {**attachment, "label": label}})
        if len(items) >= _FILES:
            break
    return items


def _other_chats(connection: "Connection", chat: Session, word: str) -> list[Json]:
    """Those of the same session that have said something and are no sub-agents."""
    host = connection.host
    root = host.catalogue.root(chat)
    query = word[len(_CHATS) :].lower() if word.startswith(_CHATS) else ""
    items: list[Json] = []
    for of in (root.summary, *host.catalogue.descendants(root.id)):
        state = connection.broker.state(of.id)
        done = [turn for turn in state.turns if turn.outcome == "completed"] if state is not None else []
        spawned = of.origin is not None and of.origin.kind == "agent"
        if of.id == chat.id or spawned or not done or query not in of.title.lower():
            continue
        attachment = {"type": "chat", "resource": names.chat_uri(of), "endTurn": done[-1].id, "label": of.title}
        items.append({"insertText": f"{_CHATS}{of.title} ", "attachment": attachment})
    return items if _CHATS.startswith(word) or word.startswith(_CHATS) else []


async def _commands(connection: "Connection", chat: Session, query: str) -> list[Json]:
    """What the agent offers, what it has told this session, and the prompts of clients' plugins."""
    agent = connection.host.agent(chat.summary.agent)
    offered = await agent.complete("/", query) if isinstance(agent, Completes) else []
    found = {str(each["value"]): str(each.get("description") or each.get("label") or "") for each in offered}
    found |= {each["name"]: each.get("description", "") for each in chat.state.config.get("commands", [])}
    found |= {name: description for name, (description, _) in prompts(chat.state.client_data).items()}
    return [_command(name, description) for name, description in found.items() if name.startswith(query)]


def _command(name: str, description: str) -> Json:
    """VS Code drops what has no `_meta.command`."""
    meta = {"command": name, **({"description": description} if description else {})}
    attachment = {"type": "simple", "label": f"/{name}", "displayKind": "command", "_meta": meta}
    return {"insertText": f"/{name} ", "attachment": attachment}


COMMANDS = {"completions": Method(completions, "sessions", beside=True, seed=False)}
