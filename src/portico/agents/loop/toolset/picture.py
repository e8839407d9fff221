"""`viewImage`: a picture of the folder, which the model sees with its next request."""

import base64

from msgspec import Struct

from portico.agents.attachment import PICTURE_BYTES
from portico.agents.loop.tools import PlannedCall
from portico.agents.loop.toolset.tool import TEXT, ExtraTool, ToolContext, declare
from portico.kernel.action import Action
from portico.kernel.call import Call
from portico.kernel.errors import BadRequest

_FORMS = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
"""By the first bytes: the name of a file may be wrong, and endpoints reject a wrong type."""


class ViewArguments(Struct, forbid_unknown_fields=True):
    path: str


async def _plan(wanted: ViewArguments, context: ToolContext) -> PlannedCall:
    async def act(call: Call) -> str:
        return await _view(wanted.path, context)

    return PlannedCall(Action("read", files=(wanted.path,)), f"View {wanted.path}"[:200], act)


async def _view(path: str, context: ToolContext) -> str:
    at = context.roots.within(path)
    size = (await context.roots.files.stat(at)).size
    if size > PICTURE_BYTES:
        raise BadRequest(f"{path!r} has {size} bytes; a picture has at most {PICTURE_BYTES}.", field="path")
    data = (await context.roots.files.read(at)).data
    media = media_type(data)
    if media is None:
        raise BadRequest(f"{path!r} is no PNG, JPEG, GIF or WebP picture.", field="path")
    context.pictures.append((path, f"data:{media};base64,{base64.b64encode(data).decode()}"))
    return f"{path} ({media}, {size} bytes) follows in the next message."


def media_type(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((media for head, media in _FORMS.items() if data.startswith(head)), None)


VIEW = ExtraTool(
    declare("viewImage", "Shows you a picture file (PNG, JPEG, GIF, WebP) of the project.", ["path"], path=TEXT),
    ViewArguments,
    _plan,
    kind="read",
    reads=True,
)
