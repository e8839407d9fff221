"""Attachments that only the client can read: the host asks it for them, so that the agent has them, too."""

import base64
import logging
from typing import TYPE_CHECKING, Any

from portico.doors.ahp import uri
from portico.doors.ahp.record import Json
from portico.errors import PorticoError

if TYPE_CHECKING:
    from portico.doors.ahp.connection import Connection

logger = logging.getLogger("portico.ahp")

_OURS = ("file:", "http:", "https:", "portico-blob:", "git-blob:", "ahp-")
"""Schemes that need no client: the agent or the host can read these."""
_SIZE = 1024 * 1024
"""Characters of one fetched attachment: a message with a few of them still fits."""


async def fetched(connection: "Connection", said: Json) -> Json:
    """The message with the foreign resources in it; what cannot be had stays a mere name."""
    attached = said.get("attachments") or []
    if not any(_is_foreign(each) for each in attached):
        return said
    return {**said, "attachments": [await _fetch(connection, each) if _is_foreign(each) else each for each in attached]}


def _is_foreign(each: Json) -> bool:
    name = each.get("uri")
    return isinstance(name, str) and each.get("type") in ("resource", "file") and not name.startswith(_OURS)


async def _fetch(connection: "Connection", each: Json) -> Json:
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
