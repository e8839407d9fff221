"""What an editor sends, as a message of ours: its text, and the rest as attachments.

A file that is mentioned inside the text is named there (`look at @lib.py and explain it`), and attached. A file behind
the text is attached only: editors add the open file or a selection there.
"""

import base64
from collections.abc import Sequence
from typing import Any

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
)

from portico.kernel.events import Json

_NO_BLANK_AFTER = "([{<\"'`"
_NO_BLANK_BEFORE = ")]}>\"'`.,;:!?"


def message_of(blocks: Sequence[Any]) -> tuple[str, list[Json]]:
    attachments: list[Json] = []
    for block in blocks:
        match block:
            case ResourceContentBlock():
                attachments.append({"type": "resource", "uri": block.uri, "label": block.name})
            case EmbeddedResourceContentBlock():
                attachments.append(_embedded(block))
            case ImageContentBlock() | AudioContentBlock():
                attachments.append(_data(block.type, block.data, block.mime_type))
    return _text(blocks), attachments


def _text(blocks: Sequence[Any]) -> str:
    texts = [at for at, block in enumerate(blocks) if isinstance(block, TextContentBlock)]
    found, mentioned = "", False
    for at, block in enumerate(blocks):
        if isinstance(block, TextContentBlock):
            mention_before, mentioned = mentioned, False
            found += _joint(found, block.text, mention_before, at == texts[0]) + block.text
        elif (name := _mention(block)) and texts and (at < texts[-1] or _is_open(found)):
            found += ("" if _joins(found) else " ") + f"@{name}"
            mentioned = True
    return found


def _joint(before: str, text: str, mention_before: bool, first: bool) -> str:
    """What separates a text from what is before it: a blank after a mention, a new line after another text."""
    if mention_before:
        return "" if not text or text[0].isspace() or text[0] in _NO_BLANK_BEFORE else " "
    return "" if first or not before else "\n"


def _joins(text: str) -> bool:
    return not text or text[-1].isspace() or text[-1] in _NO_BLANK_AFTER


def _is_open(text: str) -> bool:
    """Whether the sentence continues: a mention behind it belongs to it."""
    return text[-1:].isspace() or text[-1:] in tuple(_NO_BLANK_AFTER[:4])


def _mention(block: Any) -> str:
    if isinstance(block, ResourceContentBlock):
        return block.name
    return _label(block.resource.uri) if isinstance(block, EmbeddedResourceContentBlock) else ""


def _label(uri: str) -> str:
    return uri.rpartition("/")[2] or uri


def _data(label: str, data: str, media: str) -> Json:
    return {"type": "embeddedResource", "label": label, "data": data, "contentType": media}


def _embedded(block: EmbeddedResourceContentBlock) -> Json:
    resource = block.resource
    if isinstance(resource, BlobResourceContents):
        data, media = resource.blob, resource.mime_type or "application/octet-stream"
    else:
        data, media = base64.b64encode(resource.text.encode()).decode(), resource.mime_type or "text/plain"
    return {**_data(_label(resource.uri), data, media), "uri": resource.uri}
