"""Tools for unsaved buffers (seed 003): the document that an editor attached last, as the editor has it right now.

`readActiveDocument` asks the editor that attached it (`resourceRead`), so it gives what is not on the disk yet;
`applyActiveEdit` gives the new text back to the editor (`resourceWrite`) after approval. Sessions have these tools
while an editor is in them. Only what an editor itself attached is ever asked of it.
"""

import asyncio
import base64
import binascii
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Struct

from portico.doors.ahp.view import names
from portico.doors.ahp.wire import uri
from portico.kernel.call import Call
from portico.kernel.errors import BadRequest, Conflict, NotFound, PorticoError
from portico.kernel.events import ErrorInfo, Json, ToolSpec
from portico.kernel.session import Session
from portico.kernel.state import SessionState, client_of
from portico.kernel.tool import Tool, ToolResult
from portico.workspace import patch

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient, EditorHub

READ, APPLY = DOCUMENT_TOOLS = ("readActiveDocument", "applyActiveEdit")
_CHARS = 256 * 1024
"""Size limit of one document: four times the result of one readFiles call; larger buffers are not edited by hand."""
_DOCUMENTS = ("resource", "file", "embeddedResource")
"""Attachments that are documents, in either dialect; a foreign one is embedded when its message comes."""
_DESCRIBED = {
    READ: "Read the document that is open in the user's editor, with its unsaved changes. Its address comes first.",
    APPLY: "Change the document that is open in the user's editor: `content` is its whole new text, or `diff` a unified"
    " diff. Read it first.",
}
_TEXT: Json = {"type": "string"}
_APPLY: Json = {"type": "object", "properties": {"content": _TEXT, "diff": _TEXT}}


class Edit(Struct, forbid_unknown_fields=True):
    content: str | None = None
    diff: str | None = None


class OpenDocument(NamedTuple):
    uri: str
    editor: "EditorClient | None"
    """None: its editor has disconnected."""
    attached: str | None
    """Its text as it was when it was attached, where the editor sent that along."""

    @property
    def path(self) -> str | None:
        return names.path_of(self.uri) if self.uri.startswith("file:///") else None


def document_tools(broker: "EditorHub") -> dict[str, Tool]:
    async def read(arguments: Json, call: Call) -> ToolResult:
        document = find(broker, call.turn.session)
        return ToolResult(True, f"{document.uri}\n\n{await text_of(document)}")

    async def apply(arguments: Json, call: Call) -> ToolResult:
        return await _apply(find(broker, call.turn.session), _edit(arguments), call)

    shapes: dict[str, tuple[Json, Any]] = {READ: ({"type": "object", "properties": {}}, read), APPLY: (_APPLY, apply)}
    return {
        name: Tool(ToolSpec(name, _DESCRIBED[name], schema), run, offered=has_editor)
        for name, (schema, run) in shapes.items()
    }


def has_editor(state: SessionState) -> bool:
    return bool(state.clients)


def find(broker: "EditorHub", session: Session) -> OpenDocument:
    """The last document that was attached to a message of this session."""
    for turn in reversed(session.state.turns):
        for each in reversed(turn.message.attachments):
            name = each.get("uri")
            if isinstance(name, str) and each.get("type") in _DOCUMENTS:
                return OpenDocument(name, broker.clients.get(client_of(session.state, turn.id)), _attached(each))
    raise NotFound("document", "active", "The editor has attached none; ask the user to attach it to a message.")


def _attached(each: Json) -> str | None:
    data = each.get("data")
    if not isinstance(data, str):
        return None
    try:
        return base64.b64decode(data).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


async def text_of(document: OpenDocument) -> str:
    """As the editor has it now; else as it came with the message."""
    text = await _asked(document)
    if text is None:
        text = document.attached
    if text is None:
        elsewhere = f" Read {document.path!r} from the disk instead." if document.path else ""
        raise NotFound("document", document.uri, f"The editor does not give its text.{elsewhere}")
    if len(text) > _CHARS:
        raise BadRequest(f"The document {document.uri!r} has {len(text)} characters; the limit is {_CHARS}.")
    return text


async def _asked(document: OpenDocument) -> str | None:
    if document.editor is None:
        return None
    params = {"channel": uri.ROOT, "uri": document.uri, "encoding": "utf-8"}
    try:
        answer = await document.editor.ask("resourceRead", params)
    except PorticoError:
        return None
    if not isinstance(answer, dict) or not isinstance(answer.get("data"), str):
        return None
    if answer.get("encoding") != "base64":
        return str(answer["data"])
    return _attached(answer)


def _edit(arguments: Json) -> Edit:
    try:
        edit = msgspec.convert(arguments, Edit)
    except msgspec.ValidationError as error:
        raise BadRequest(f"The arguments of {APPLY!r} do not fit: {error}.", field="arguments") from None
    if (edit.content is None) == (edit.diff is None):
        raise BadRequest(f"{APPLY} takes either 'content' (the whole new text) or 'diff'.", field="content")
    return edit


async def _apply(document: OpenDocument, edit: Edit, call: Call) -> ToolResult:
    if document.editor is None:
        raise Conflict(f"The editor that has {document.uri!r} open is not connected.")
    before = await text_of(document)
    after = edit.content if edit.content is not None else await asyncio.to_thread(patch.apply, before, edit.diff or "")
    if after == before:
        raise BadRequest(f"This would change nothing in {document.uri!r}.", field="content")
    shown = document.path or document.uri
    diff = await asyncio.to_thread(patch.diff, before, after, shown)
    decision = await call.approve("write", title=f"Edit {shown} in the editor", path=document.path, diff=diff)
    if not decision.allowed:
        return ToolResult(False, error=ErrorInfo("denied", decision.reason or "The edit was refused."))
    if await text_of(document) != before:
        raise Conflict(f"{document.uri!r} has changed since this edit was shown. Read it again, then edit.")
    await call.turn.settled()
    await document.editor.ask(
        "resourceWrite", {"channel": uri.ROOT, "uri": document.uri, "data": after, "encoding": "utf-8"}
    )
    return ToolResult(True, f"Changed {document.uri} in the editor; it is not saved yet.")
