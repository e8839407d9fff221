"""Events that wait for their commit. What JSON cannot hold is refused here, before it can spoil a batch."""

import asyncio
from typing import Any

import msgspec
from msgspec import Struct

from portico import limits
from portico.errors import BadRequest, TooLarge
from portico.events import Channel, Delta, Event, RunReserved, RunSettled, TerminalShown, encode


class Waiter(asyncio.Future[int]):
    """What an append waits for. The events of a cancelled caller are written all the same. It may hold a lock over what
    it checked, so it is let go only when the commit is decided."""

    def cancel(self, msg: Any = None) -> bool:
        return False


class Pending(Struct, eq=False, gc=False):
    """One event that waits for its commit; a delta collects the texts that join it."""

    channel: Channel
    event: Event
    size: int = 0
    ticket: int = 0
    waiter: Waiter | None = None
    more: bool = False
    """The same append has more events: they must not be parted by the end of a batch."""
    _data: bytes | None = None
    _texts: list[str] | None = None

    def __post_init__(self) -> None:
        self.event, self._data = _checked(self.event)
        self.size = len(self._data) if self._data is not None else len(getattr(self.event, "text", ""))

    def join(self, event: Event) -> bool:
        """Takes a delta in, if it continues this one."""
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
    """The event as it can be written, and its bytes; a small delta is encoded later, when it has merged."""
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
    """False for text with a lone surrogate, as programs that cut their output in the middle produce it."""
    try:
        return text.isascii() or text.encode() is not None
    except UnicodeEncodeError:
        return False


def _clean(value: Any) -> Any:
    """The same with `?` for what is no character: one broken byte must not cost a turn."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_clean(key): _clean(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_clean(each) for each in value]
    return value


def compactable_part(event: Event) -> str | None:
    """The part that it is a piece of: it may go when all of that is written down."""
    field = _PIECES.get(type(event))
    return getattr(event, field) or None if field is not None else None


_PIECES: dict[type[Event], str] = dict.fromkeys([*Delta.__subclasses__(), TerminalShown], "part")
_PIECES |= dict.fromkeys([RunReserved, RunSettled], "run")  # folded into what is stored beside the automation's channel
