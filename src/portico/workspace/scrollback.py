"""What a terminal has shown, in parts: loose text, and commands with their output. Bounded: the oldest goes first."""

from msgspec import Struct

SCROLLBACK_MAX = 1024 * 1024  # characters; about 10,000 lines, and what a client gets when it opens the terminal


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
        self.parts: list[Part] = []
        self.size = 0

    def add(self, text: str) -> None:
        tail = self.parts[-1] if self.parts else None
        if isinstance(tail, ShellCommand) and not tail.complete:
            tail.output += text
        elif isinstance(tail, Loose):
            tail.value += text
        else:
            self.parts.append(Loose(text))
        self._grow(len(text))

    def start(self, command: ShellCommand) -> None:
        self.parts.append(command)
        self._grow(len(command.line))

    def clear(self) -> None:
        self.parts.clear()
        self.size = 0

    def text(self) -> str:
        return "".join(part.value if isinstance(part, Loose) else part.output for part in self.parts)

    def _grow(self, size: int) -> None:
        self.size += size
        # In steps of a tenth: cutting the front of a long text for every new character would copy it each time.
        if self.size > self.limit + self.limit // 10:
            self._shrink()

    def _shrink(self) -> None:
        while self.size > self.limit and len(self.parts) > 1 and _size(self.parts[0]) <= self.size - self.limit:
            self.size -= _size(self.parts.pop(0))
        excess = self.size - self.limit
        first = self.parts[0]
        if excess <= 0:
            return
        if isinstance(first, Loose):
            first.value = first.value[excess:]
        else:
            first.output = first.output[excess:]
        self.size = sum(map(_size, self.parts))


def _size(part: Part) -> int:
    return len(part.value) if isinstance(part, Loose) else len(part.output) + len(part.line)
