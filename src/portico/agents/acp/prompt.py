"""What a person says, as ACP content blocks; and an earlier conversation in words, for an agent that forgot it."""

import mimetypes
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from portico.events import Json, Message
from portico.host.context import transcript
from portico.host.state import TurnState


def blocks(message: Message, *, images: bool, audio: bool, embedded: bool) -> list[Json]:
    content: list[Json] = [{"type": "text", "text": message.text}] if message.text else []
    return content + [_block(each, images, audio, embedded) for each in message.attachments]


def _block(attachment: Json, images: bool, audio: bool, embedded: bool) -> Json:
    uri = str(attachment.get("uri") or attachment.get("path") or "")
    media = str(attachment.get("contentType") or mimetypes.guess_type(uri)[0] or "")
    label = str(attachment.get("label") or attachment.get("displayName") or Path(urlparse(uri).path).name or "file")
    data = attachment.get("data")
    if isinstance(data, str):
        if images and media.startswith("image/"):
            return {"type": "image", "data": data, "mimeType": media}
        if audio and media.startswith("audio/"):
            return {"type": "audio", "data": data, "mimeType": media}
        if embedded:
            resource = {"uri": uri or f"attachment:{label}", "mimeType": media or "application/octet-stream"}
            return {"type": "resource", "resource": {**resource, "blob": data}}
    if isinstance(words := attachment.get("modelRepresentation") or attachment.get("text"), str):
        return {"type": "text", "text": f"{label}:\n{words}"}
    if not uri:
        return {"type": "text", "text": f"(attachment {label!r}, which cannot be shown to this agent)"}
    link: Json = {"type": "resource_link", "uri": uri if ":" in uri else Path(uri).as_uri(), "name": label}
    return {**link, "mimeType": media} if media else link


def retold(history: list[TurnState]) -> str:
    """The turns so far, for a conversation that has to begin again."""
    said = transcript(history)
    return f"This conversation began earlier. What was said so far:\n\n{said}\n\nThe next message is:\n\n"


def text_of(block: Any) -> str:
    """A content block from the agent, in words."""
    if not isinstance(block, dict):
        return ""
    match block.get("type"):
        case "text":
            return str(block.get("text") or "")
        case "resource_link":
            return f"[{block.get('name') or 'link'}]({block.get('uri')})"
        case "resource":
            resource = block.get("resource")
            resource = resource if isinstance(resource, dict) else {}
            return str(resource.get("text") or f"({resource.get('uri') or 'resource'})")
        case "image" | "audio" as kind:
            return f"({kind}, {block.get('mimeType') or 'unknown type'})"
    return ""
