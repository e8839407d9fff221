"""What a tool call shows while it runs and when it is done: text, edits, terminals, sub-agents."""

from portico.doors.ahp.view import names
from portico.doors.ahp.wire import uri
from portico.doors.ahp.wire.record import Json
from portico.kernel import limits
from portico.kernel.state import CallPart
from portico.workspace import patch

_CONTENT: dict[object, tuple[str, ...]] = {
    "text": ("text",),
    "embeddedResource": ("data", "contentType"),
    "resource": ("uri",),
    "fileEdit": (),
    "terminal": ("resource", "title"),
    "subagent": ("resource", "title"),
}
"""The protocol's kinds of content and their required fields; other content of an agent is not sent to clients."""
STRUCTURED = "structured"
"""The item of a call's content that has a separate field in AHP."""
_PREVIEW = 1000
"""Characters of a terminal's output that are kept with its call: about one screen."""
_WHOLE = 4096
"""Characters of live output that are sent immediately. AHP has no delta here: each change carries the full text."""


def content_of(part: CallPart, seed: bool = False) -> list[Json]:
    ran = part.done or any(each.result for each in part.approvals)
    text = part.output if ran else part.output[: visible(len(part.output))]
    left = _preview(text, part.blob) if part.done and text else {}
    items = [made for each in part.content if (made := _content(each, left, seed)) is not None]
    if text and not any(each["type"] == "text" for each in items):
        items.insert(0, {"type": "text", "text": text})
    if part.blob is not None:
        items.append({"type": "resource", "uri": names.BLOB + part.blob, "contentType": "text/plain"})
    return items


def _preview(text: str, blob: str | None) -> Json:
    """The end of a terminal's output, for clients that subscribe after the terminal is closed."""
    return {"preview": text[-_PREVIEW:], "truncated": blob is not None or len(text) > _PREVIEW}


def visible(size: int) -> int:
    """How much of live output is shown: all of a short one, then in steps of an eighth, so that a long one costs a
    few times its size and not its square."""
    size = min(size, limits.TOOL_OUTPUT_CHARS)
    if size <= _WHOLE:
        return size
    step = 1 << (size.bit_length() - 4)
    return size - size % step


def _content(item: Json, left: Json, seed: bool) -> Json | None:
    """`left`: what is kept of the terminal in which the call ran."""
    kind = item.get("type")
    if kind == "subagent" and "session" in item:
        return _subagent(item, seed)
    if kind == "terminal" and "terminal" in item:
        return _terminal(item, left)
    if kind == "diff":
        edit = file_edit(item)
        return {"type": "fileEdit", **edit} if edit is not None else None
    return item if kind in _CONTENT and all(key in item for key in _CONTENT[kind]) else None


def file_edit(item: Json) -> Json | None:
    """An edit, as agents report it. Both sides can be read; for edits from an older Portico only the file itself."""
    path = str(item.get("path") or "")
    if not path.startswith("/"):
        return None
    name, at = names.file_uri(path), item.get("at")
    sides = {side: {"uri": name, "content": {"uri": names.diff_uri(at, side, path)}} for side in _sides(item)}
    diff = item.get("diff")
    if not isinstance(diff, str):  # an older Portico kept both sides only
        diff = patch.diff(str(item.get("old") or ""), str(item.get("new") or ""), path)
    return {**sides, "diff": patch.counted(diff)}


def _sides(item: Json) -> list[str]:
    if "at" not in item:
        return ["after"]
    return ["before", "after"] if item.get("old") is not None else ["after"]


def _terminal(item: Json, left: Json) -> Json:
    """A terminal in which an agent runs a command. It is removed when the agent is done; the call's text is kept."""
    shown: Json = {
        "type": "terminal",
        "resource": names.TERMINAL + str(item["terminal"]),
        "title": item.get("title") or "Terminal",
        "isPty": True,
    }
    code: Json = {"exitCode": item["code"]} if isinstance(item.get("code"), int) else {}
    return shown | ({"result": {**code, **left}} if code or left else {})


def _subagent(item: Json, seed: bool) -> Json:
    chat = str(item.get("uri") or names.CHAT + str(item["session"]))
    shown: Json = {
        "type": "subagent",
        "resource": (uri.seed_subagent(chat) if seed else None) or chat,
        "title": item.get("title") or "Sub-agent",
    }
    return shown | ({"agentName": item["agent"]} if item.get("agent") else {})
