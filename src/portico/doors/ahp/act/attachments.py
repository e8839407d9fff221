"""Attachments that the agent cannot read. The host requests resources that only the client can read. Another chat and
annotations are converted to text when the message is accepted, in their state at that time, and only one level deep."""

import base64
import logging
from typing import TYPE_CHECKING, Any

from portico.doors.ahp.view import names, snapshots
from portico.doors.ahp.wire import uri
from portico.doors.ahp.wire.record import Json
from portico.kernel.context import transcript
from portico.kernel.errors import BadRequest, PorticoError

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient

logger = logging.getLogger("portico.ahp")

_OURS = ("file:", "http:", "https:", "portico-blob:", "git-blob:", "ahp-")
"""Schemes that need no client: the agent or the host can read these."""
_SIZE = 1024 * 1024
"""Characters of one fetched attachment: a message with a few of them still fits."""


async def fetched(connection: "EditorClient", said: Json) -> Json:
    """The message with what is attached to it. A foreign resource that cannot be had stays a mere name; a chat or a
    turn that is not there is refused."""
    attached = said.get("attachments") or []
    if not attached:
        return said
    return {**said, "attachments": [await _settled(connection, each) for each in attached]}


async def _settled(connection: "EditorClient", each: Json) -> Json:
    if _is_foreign(each):
        return await _fetch(connection, each)
    match each.get("type"):
        case "chat":
            return {**each, "modelRepresentation": await _transcript(connection, each)}
        case "annotations":
            return {**each, "modelRepresentation": await _annotations(connection, each)}
    return each


async def _transcript(connection: "EditorClient", each: Json) -> str:
    chat = names.find_chat(connection.view, each["resource"])
    if chat is None:
        raise BadRequest(f"There is no chat {each['resource']!r}.", field="attachments")
    turns = [turn for turn in (await connection.view.get(chat.id)).state.turns if turn.outcome is not None]
    end = each.get("endTurn")
    if end is not None:
        index = next((at for at, turn in enumerate(turns) if turn.id == end), None)
        if index is None:
            raise BadRequest(f"The chat has no finished turn {end!r}.", field="attachments")
        turns = turns[: index + 1]
    return transcript(turns)


async def _annotations(connection: "EditorClient", each: Json) -> str:
    owner = uri.annotations_session(each["resource"])
    session = names.find_session(connection.view, owner) if owner is not None else None
    if session is None:
        raise BadRequest(f"There are no annotations {each['resource']!r}.", field="attachments")
    found = snapshots.annotations((await connection.view.get(session.id)).state)["annotations"]
    wanted = each.get("annotationIds")
    lines: list[str] = []
    for annotation in found:
        if wanted is None or annotation["id"] in wanted:
            words = "\n".join(str(entry.get("text", "")) for entry in annotation.get("entries", []))
            start = ((annotation.get("range") or {}).get("start") or {}).get("line")
            lines.append(f"{annotation['resource']}{f', line {start + 1}' if isinstance(start, int) else ''}: {words}")
    return "\n".join(lines)


def _is_foreign(each: Json) -> bool:
    name = each.get("uri")
    return isinstance(name, str) and each.get("type") in ("resource", "file") and not name.startswith(_OURS)


async def _fetch(connection: "EditorClient", each: Json) -> Json:
    try:
        found = await connection.ask("resourceRead", {"channel": uri.ROOT, "uri": each["uri"], "encoding": "base64"})
    except PorticoError as error:
        logger.warning("the client does not give %r: %s", each["uri"], error.message)
        return each
    data = _data(found)
    if data is None:
        return each
    kind = found.get("contentType") or "application/octet-stream"
    label = each.get("label") or each.get("displayName") or each["uri"]
    return {**each, "type": "embeddedResource", "label": label, "data": data, "contentType": kind}


def _data(found: Any) -> str | None:
    if not isinstance(found, dict) or not isinstance(found.get("data"), str) or len(found["data"]) > _SIZE:
        return None
    data: str = found["data"]
    return data if found.get("encoding") == "base64" else base64.b64encode(data.encode()).decode()
