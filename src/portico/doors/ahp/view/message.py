"""Messages on the wire and in the log. Fields that the log's message does not have are stored and sent unchanged."""

from typing import Any

from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.versions import Dialect
from portico.kernel.events import Message

_KEPT = ("agent", "_meta")
_SEED_TYPES = ("file", "directory", "selection")
AUTOMATION = "automation"
"""An origin that clients support since 0.9."""
_ORIGINS = {
    "user": "user",
    "agent": "agent",
    "tool": "tool",
    "system": "systemNotification",
    AUTOMATION: AUTOMATION,
}
_BACK = {wire: ours for ours, wire in _ORIGINS.items()}


def from_wire(said: Json) -> Message:
    """Parse a message of either dialect; it has already been validated."""
    model = said.get("model") or {}
    origin = said.get("origin") or {}
    kept: Json = {key: said[key] for key in _KEPT if said.get(key) is not None}
    kind = str(origin.get("kind", "user"))
    if kind not in _BACK:
        kept["origin"] = origin
    return Message(
        text=said.get("text", ""),
        attachments=said.get("attachments") or [],
        model=model.get("id"),
        origin=_BACK.get(kind, "user"),
        meta={"ahp": kept} if kept else {},
        model_config=model.get("config") or {},
    )


def to_seed(message: Message) -> Json:
    attachments = [made for each in message.attachments if (made := _seed_attachment(each)) is not None]
    return {"text": message.text, **({"attachments": attachments} if attachments else {})}


def to_modern(message: Message, dialect: Dialect) -> Json:
    kept = message.meta.get("ahp") or {}
    kind = _ORIGINS.get(message.origin, "user")
    if kind == AUTOMATION and not dialect.since("0.9.0"):
        kind = "user"
    said: Json = {"text": message.text, "origin": kept.get("origin") or {"kind": kind}}
    attachments = [_modern_attachment(each) for each in message.attachments]
    if attachments:
        said["attachments"] = attachments
    if message.model is not None:
        config = message.model_config or kept.get("modelConfig")  # where an older Portico kept it
        said["model"] = {"id": message.model, **({"config": config} if config else {})}
    return said | {key: kept[key] for key in _KEPT if key in kept}


def to_wire(message: Message, dialect: Dialect) -> Json:
    return to_seed(message) if dialect.seed else to_modern(message, dialect)


def _seed_attachment(said: Json) -> Json | None:
    """Version 1 knows files, folders and selections; anything that has a URI can be shown as one of them."""
    if said.get("type") in _SEED_TYPES:
        return said
    if not isinstance(said.get("uri"), str):
        return None
    kind = said.get("displayKind")
    return _short({"type": kind if kind in _SEED_TYPES else "file", "uri": said["uri"], "displayName": _label(said)})


def _modern_attachment(said: Json) -> Json:
    if said.get("type") not in _SEED_TYPES:
        return {"type": "simple", **said, "label": _label(said)}
    return {"type": "resource", "uri": said.get("uri", ""), "label": _label(said), "displayKind": said["type"]}


def _label(said: Json) -> str:
    for key in ("label", "displayName", "name"):
        if isinstance(said.get(key), str):
            return str(said[key])
    return str(said.get("uri") or said.get("path") or "attachment").rstrip("/").rpartition("/")[2] or "attachment"


def _short(said: dict[str, Any]) -> Json:
    return {key: value for key, value in said.items() if value is not None}
