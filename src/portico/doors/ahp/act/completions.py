"""What a message can be completed with: files (`@`, `#`), other chats (`#chat:`), commands of the agent (`/`).

VS Code asks on the session's channel, also before its first message; the Copilot CLI on the chat's.
"""

from typing import TYPE_CHECKING

from portico.doors.ahp.act.command import Method, optional, text
from portico.doors.ahp.view import names
from portico.doors.ahp.wire.record import Json
from portico.features.board import suggestions
from portico.features.board.suggestions import Suggestion
from portico.kernel.errors import NotFound
from portico.kernel.session import Session
from portico.kernel.state import is_subagent

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient

TRIGGERS = ["/", "@", "#"]
_CHATS = "#chat:"


async def completions(connection: "EditorClient", params: Json) -> Json:
    name = text(params, "channel")
    chat = names.find_chat(connection.view, name) or names.find_session(connection.view, name)
    if chat is None:
        raise NotFound("session", name)
    chat = await connection.view.get(chat.id)
    word, start, end = _word(optional(params, "text", str) or "", optional(params, "offset", int))
    items = await _items(connection, chat, word, start)
    return {"items": [{**each, "rangeStart": start, "rangeEnd": end} for each in items]}


async def _items(connection: "EditorClient", chat: Session, word: str, start: int) -> list[Json]:
    if word.startswith("/") and start == 0:
        return [_command(each) for each in await suggestions.commands(chat, word[1:])]
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
    found = await suggestions.paths(chat, query)
    labels = [each.shown.rstrip("/").rpartition("/")[2] for each in found]
    return [
        {
            "insertText": f"{trigger}{each.shown}",
            "attachment": {
                "type": "resource",
                "uri": names.file_uri(each.path),
                "label": label if labels.count(label) == 1 else each.shown,
                "displayKind": "directory" if each.is_folder else "document",
            },
        }
        for each, label in zip(found, labels, strict=True)
    ]


def _other_chats(connection: "EditorClient", chat: Session, word: str) -> list[Json]:
    """The other chats of the same session that have messages and are not sub-agents."""
    host = connection.host
    root = host.catalogue.root(chat)
    query = word[len(_CHATS) :].lower() if word.startswith(_CHATS) else ""
    items: list[Json] = []
    for of in (root.summary, *host.catalogue.descendants(root.id)):
        state = connection.broker.state(of.id)
        done = [turn for turn in state.turns if turn.outcome == "completed"] if state is not None else []
        if of.id == chat.id or is_subagent(of) or not done or query not in of.title.lower():
            continue
        attachment = {"type": "chat", "resource": names.chat_uri(of), "endTurn": done[-1].id, "label": of.title}
        items.append({"insertText": f"{_CHATS}{of.title} ", "attachment": attachment})
    return items if _CHATS.startswith(word) or word.startswith(_CHATS) else []


def _command(of: Suggestion) -> Json:
    """VS Code drops what has no `_meta.command`."""
    meta = {"command": of.text[1:], **({"description": of.about} if of.about else {})}
    attachment = {"type": "simple", "label": of.text, "displayKind": "command", "_meta": meta}
    return {"insertText": f"{of.text} ", "attachment": attachment}


COMMANDS = {"completions": Method(completions, "sessions", beside=True, seed=False)}
