"""What an editor sends, as a message of ours: its text, and the rest as attachments."""

import base64
from collections.abc import Iterable
from typing import Any

from acp.schema import (
    AudioContentBlock,
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
)

from portico.events import Json


def message_of(blocks: Iterable[Any]) -> tuple[str, list[Json]]:
    texts: list[str] = []
    attachments: list[Json] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                texts.append(block.text)
            case ResourceContentBlock():
                attachments.append({"type": "resource", "uri": block.uri, "label": block.name})
            case EmbeddedResourceContentBlock():
                attachments.append(_embedded(block))
            case ImageContentBlock() | AudioContentBlock():
                attachments.append(_data(block.type, block.data, block.mime_type))
    return "\n".join(texts), attachments


def _data(label: str, data: str, media: str) -> Json:
    return {"type": "embeddedResource", "label": label, "data": data, "contentType": media}


def _embedded(block: EmbeddedResourceContentBlock) -> Json:
    resource = block.resource
    if isinstance(resource, BlobResourceContents):
        data, media = resource.blob, resource.mime_type or "application/octet-stream"
    else:
        data, media = base64.b64encode(resource.text.encode()).decode(), resource.mime_type or "text/plain"
    return {**_data(resource.uri.rpartition("/")[2] or resource.uri, data, media), "uri": resource.uri}
