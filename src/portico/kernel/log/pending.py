"""Events waiting for their commit. Events that cannot be encoded as JSON are refused here, before they fail a batch."""

import asyncio
from typing import Any

import msgspec
from msgspec import Struct

from portico.kernel import limits
from portico.kernel.errors import BadRequest, TooLarge
from portico.kernel.events import Channel, Delta, Event, encode


class Waiter(asyncio.Future[int]):
    """The future that an append awaits. The events of a cancelled caller are still written. The caller may hold a lock
    for its checks, so it continues only after the commit has succeeded or failed."""

    def cancel(self, msg: Any = None) -> bool:
        return False


class Pending(Struct, eq=False, gc=False):
    """One event waiting for its commit; a delta collects the texts merged into it."""

    channel: Channel
    event: Event
    size: int = 0
    ticket: int = 0
    waiter: Waiter | None = None
    more: bool = False
    """The same append has more events: they must be in the same batch."""
    _data: bytes | None = None
    _texts: list[str] | None = None

    def __post_init__(self) -> None:
        self.event, self._data = _checked(self.event)
        self.size = len(self._data) if self._data is not None else len(getattr(self.event, "text", ""))

    def join(self, event: Event) -> bool:
        """Merge a delta, if it continues this one."""
        mine = self.event
        if type(mine) is not type(event) or not isinstance(mine, Delta) or not isinstance(event, Delta):
            return False
        size = self.size + len(event.text)
        if mine.part != event.part or mine.turn != event.turn or size > limits.DELTA_BYTES:
            return False
        if not _is_unicode(event.text):
            return False
        if self._texts is None:
            self._texts = [mine.text]
        self._texts.append(event.text)
        self.size = size
        self._data = None
        return True

    def whole(self) -> tuple[Event, bytes]:
        event = self.event
        if self._texts is not None:
            assert isinstance(event, Delta)
            event = type(event)(turn=event.turn, part=event.part, text="".join(self._texts))
        return event, self._data or encode(event)


def _checked(event: Event) -> tuple[Event, bytes | None]:
    """Return the event in a writable form, and its bytes; a small delta is encoded later, after merging."""
    if isinstance(event, Delta) and len(event.text) <= limits.DELTA_BYTES and _is_unicode(event.text):
        return event, None
    try:
        data = encode(event)
    except UnicodeEncodeError:
        event = msgspec.convert(_clean(msgspec.to_builtins(event)), type(event))
        data = encode(event)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadRequest(f"The event {type(event).__name__} cannot be written as JSON: {error}.") from error
    if len(data) > limits.EVENT_BYTES:
        raise TooLarge(f"An event of {len(data)} bytes is over the limit of {limits.EVENT_BYTES}; use a blob.")
    return event, data


def _is_unicode(text: str) -> bool:
    """False for text with a lone surrogate, which programs produce when they truncate output inside a character."""
    try:
        return text.isascii() or text.encode() is not None
    except UnicodeEncodeError:
        return False


def _clean(value: Any) -> Any:
    """Replace invalid characters by `?`: one broken byte must not fail a turn."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_clean(key): _clean(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_clean(each) for each in value]
    return value


def compactable_part(event: Event) -> str | None:
    """Return the part that the event is a piece of; it can be compacted when the whole part is written."""
    return getattr(event, event.piece_of) or None if event.piece_of else None
