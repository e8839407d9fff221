"""Assembles a message from the deltas of a stream without knowing its fields: what a vendor adds is kept."""

from typing import Any

from portico.kernel.events import Json

_GROWS = ("reason", "think", "thought", "content", "text", "signature", "summary")
"""Fields that stream in pieces; any other string replaces the one before."""
_LISTED_TEXT = ("text", "summary", "thinking", "content")


def merge(message: Json, delta: Json) -> None:
    """Adds the fields of one delta. A null changes nothing."""
    for key, value in delta.items():
        if value is None:
            continue
        before = message.get(key)
        if isinstance(value, str) and isinstance(before, str) and any(word in key for word in _GROWS):
            message[key] = before + value
        elif isinstance(value, list) and isinstance(before, list):
            for item in value:
                _add(before, item)
        elif isinstance(value, dict) and isinstance(before, dict):
            merge(before, value)
        elif isinstance(value, list):
            message[key] = []
            for item in value:
                _add(message[key], item)
        else:
            message[key] = dict(value) if isinstance(value, dict) else value


def _add(items: list[Any], item: Any) -> None:
    """A piece of the last item, or a new one. OpenRouter's `reasoning_details` have an index; Mistral's content parts
    of one type follow each other."""
    if not isinstance(item, dict):
        items.append(item)
        return
    last = items[-1] if items and isinstance(items[-1], dict) else None
    same = last is not None and last.get("type") == item.get("type") and last.get("index") == item.get("index")
    if last is None or not same or not _streams(item):
        items.append(dict(item))
        return
    for key, value in item.items():
        if key in _LISTED_TEXT and isinstance(value, str) and isinstance(last.get(key), str):
            last[key] += value
        elif isinstance(value, list) and isinstance(last.get(key), list):
            for each in value:
                _add(last[key], each)
        elif value is not None:
            last[key] = value


def _streams(item: Json) -> bool:
    """Encrypted data comes whole: two of it are two items."""
    return "data" not in item and (
        any(isinstance(item.get(key), str | list) for key in _LISTED_TEXT) or "signature" in item
    )
