"""What a person attached to a message, read for an agent's model: text as text, pictures as data, the rest by name.
And the other way round: blocks of content that an agent or a server of tools gives, as text.

The attack: a message names a file of the machine that the session has no business with, and its content goes to a
model. So a file is read only inside the session's folders.
"""

import base64
import binascii
import mimetypes
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from msgspec import Struct

from portico.kernel.errors import PorticoError
from portico.kernel.events import Json
from portico.workspace.files import Files, is_binary

TEXT_BYTES = 64 * 1024
"""Of one attached text: 16,000 tokens, a long source file."""
PICTURE_BYTES = 4 * 1024 * 1024
"""Of one attached picture: endpoints take about so much."""


class Attached(Struct, frozen=True):
    label: str
    media: str
    uri: str = ""
    text: str | None = None
    data: str | None = None
    """In base64."""
    problem: str = ""
    """Why there is neither."""

    @property
    def is_picture(self) -> bool:
        return self.data is not None and self.media.startswith("image/")


async def read(attachment: Json, files: Files) -> Attached:
    """Read an attachment. Never fails: `problem` contains the reason if it cannot be read."""
    path = path_of(attachment)
    uri = str(attachment.get("uri") or (Path(path).as_uri() if path.startswith("/") else path))
    label = str(attachment.get("label") or attachment.get("displayName") or Path(path).name or "attachment")
    media = str(attachment.get("contentType") or mimetypes.guess_type(path or label)[0] or "")
    if isinstance(words := attachment.get("modelRepresentation") or attachment.get("text"), str):
        return Attached(label, media or "text/plain", uri, text=_cut(words))
    if isinstance(data := attachment.get("data"), str):
        return _given(label, media, uri, data)
    if not path:
        return Attached(label, media, uri, problem="it has neither data nor a path")
    try:
        return await _from_file(label, media, uri, path, files)
    except PorticoError as error:
        return Attached(label, media, uri, problem=error.message)


def path_of(attachment: Json) -> str:
    name = str(attachment.get("uri") or attachment.get("path") or "")
    if not name.startswith("file:"):
        return "" if "://" in name else name
    return unquote(urlparse(name).path)


def _given(label: str, media: str, uri: str, data: str) -> Attached:
    if media.startswith("image/"):
        problem = f"it has more than {PICTURE_BYTES} bytes" if len(data) * 3 // 4 > PICTURE_BYTES else ""
        return Attached(label, media, uri, data=None if problem else data, problem=problem)
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return Attached(label, media, uri, problem="its data is not base64")
    text = _text(raw)
    return Attached(label, media, uri, text=text, data=data, problem="" if text is not None else "it is no text")


async def _from_file(label: str, media: str, uri: str, path: str, files: Files) -> Attached:
    status = await files.stat(path)
    uri = Path(status.path).as_uri()
    if status.kind == "directory":
        names = "\n".join(sorted(entry.name for entry in (await files.list(path)).entries))
        return Attached(label, "inode/directory", uri, text=_cut(names))
    if media.startswith("image/"):
        if status.size > PICTURE_BYTES:
            return Attached(label, media, uri, problem=f"it has more than {PICTURE_BYTES} bytes")
        raw = (await files.read(path)).data
        return Attached(label, media, uri, data=base64.b64encode(raw).decode())
    found = await files.read_text(path, limit=TEXT_BYTES)
    if found.binary:
        return Attached(label, media, uri, problem="it is no text")
    text = found.text + (f"\n[cut: the file has {found.size} bytes]" if found.cut else "")
    return Attached(label, media or "text/plain", uri, text=text)


def _text(raw: bytes) -> str | None:
    if is_binary(raw[:8192]):
        return None
    try:
        return _cut(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return None


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_BYTES else f"{text[:TEXT_BYTES]}\n[cut: it has {len(text)} characters]"


def text_of(block: Any) -> str:
    """A content block of ACP or MCP in words; empty for what is no block."""
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
