"""Convert a person's message to ACP content blocks."""

from typing import Literal

from portico.agents.attachment import Attached, read
from portico.kernel.events import Json, Message
from portico.workspace.files import Files

Texts = Literal["embedded", "words", "links"]
"""How small texts reach the agent's model: as resources, in the prompt itself, or only by their addresses."""


async def blocks(message: Message, files: Files, *, images: bool, audio: bool, texts: Texts) -> list[Json]:
    """`images`, `audio`, `texts`: what the agent takes. A link alone reaches few models, so small texts go along."""
    content: list[Json] = [{"type": "text", "text": message.text}] if message.text else []
    return content + [await _block(each, files, images, audio, texts) for each in message.attachments]


async def _block(attachment: Json, files: Files, images: bool, audio: bool, texts: Texts) -> Json:
    found = await read(attachment, files)
    uri = found.uri or f"attachment:{found.label}"
    if found.data is not None and images and found.is_picture:
        return {"type": "image", "data": found.data, "mimeType": found.media}
    if found.data is not None and audio and found.media.startswith("audio/"):
        return {"type": "audio", "data": found.data, "mimeType": found.media}
    if found.text is not None and texts == "words" and not _is_folder(found):
        return {"type": "text", "text": f"Attached file {found.label} ({uri}):\n{found.text}"}
    if found.text is not None and texts == "embedded" and not _is_folder(found):
        resource = {"uri": uri, "mimeType": found.media or "text/plain", "text": found.text}
        return {"type": "resource", "resource": resource}
    if found.data is not None and texts != "links":
        media = found.media or "application/octet-stream"
        return {"type": "resource", "resource": {"uri": uri, "mimeType": media, "blob": found.data}}
    if found.text is not None and not found.uri:
        return {"type": "text", "text": f"{found.label}:\n{found.text}"}
    if not found.uri:
        return {"type": "text", "text": f"(attachment {found.label!r}, which cannot be shown to this agent)"}
    link: Json = {"type": "resource_link", "uri": found.uri, "name": found.label}
    return {**link, "mimeType": found.media} if found.media and not _is_folder(found) else link


def _is_folder(found: Attached) -> bool:
    return found.media == "inode/directory"
