"""What a terminal has shown, in parts: loose text, and commands with their output. Bounded: the oldest goes first."""

from collections import deque

from msgspec import Struct

SCROLLBACK_MAX = 1024 * 1024  # characters; about 10,000 lines, and what a client gets when it opens the terminal
_PIECES = 1_000


class Loose(Struct):
    value: str


class ShellCommand(Struct):
    command_id: str
    line: str
    started: float  # seconds since the epoch
    output: str = ""
    complete: bool = False
    exit_code: int | None = None
    seconds: float | None = None


Part = Loose | ShellCommand


class Scrollback:
    def __init__(self, limit: int = SCROLLBACK_MAX) -> None:
        self.limit = limit
        self.size = 0
        self._parts: list[Part] = []
        self._new: deque[str] = deque()
        """Text added to the last part since the last read: appending each piece to a megabyte would copy it."""

    @property
    def parts(self) -> list[Part]:
        if self._new:
            tail, text = self._parts[-1], "".join(self._new)
            self._new.clear()
            _set_text(tail, _text(tail) + text)
        return self._parts

    def add(self, text: str) -> None:
        tail = self._parts[-1] if self._parts else None
        if tail is None or (isinstance(tail, ShellCommand) and tail.complete):
            self._parts.append(Loose(""))
        self._new.append(text)
        if len(self._new) >= _PIECES:
            self.parts  # noqa: B018 - thousands of single characters take more than their text
        self._grow(len(text))

    def start(self, command: ShellCommand) -> None:
        self.parts.append(command)
        self._grow(len(command.line))

    def clear(self) -> None:
        self.parts.clear()
        self.size = 0

    def text(self) -> str:
        return "".join(map(_text, self.parts))

    def _grow(self, size: int) -> None:
        self.size += size
        # In steps of a tenth: cutting the front of a long text for every new character would copy it each time.
        if self.size > self.limit + self.limit // 10:
            self._shrink()

    def _shrink(self) -> None:
        parts = self._parts
        while self.size > self.limit and len(parts) > 1 and _size(parts[0]) <= self.size - self.limit:
            self.size -= _size(parts.pop(0))
        text, excess = _text(parts[0]), self.size - self.limit
        if text and excess > 0:
            _set_text(parts[0], text[excess:])
            self.size -= min(excess, len(text))
        while len(parts) == 1 and self._new and self.size > self.limit:
            piece, excess = self._new.popleft(), self.size - self.limit
            if piece[excess:]:
                self._new.appendleft(piece[excess:])
            self.size -= min(excess, len(piece))


def _text(part: Part) -> str:
    return part.value if isinstance(part, Loose) else part.output


def _set_text(part: Part, text: str) -> None:
    if isinstance(part, Loose):
        part.value = text
    else:
        part.output = text


def _size(part: Part) -> int:
    return len(_text(part)) + (0 if isinstance(part, Loose) else len(part.line))
