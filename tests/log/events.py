"""Small events to fill a log with."""

from portico.kernel.events import Audited, Delta, Event, PartDelta, PartEnded, PartStarted, ToolOutput

CHANNEL = "session/s"


def fact(number: int | str) -> Event:
    return Audited(action=str(number), by="test")


def started(part: str = "p1") -> Event:
    return PartStarted(turn="t1", part=part, kind="text")


def delta(text: str, part: str = "p1", kind: type[Delta] = PartDelta) -> Event:
    return kind(turn="t1", part=part, text=text)


def ended(text: str, part: str = "p1") -> Event:
    return PartEnded(turn="t1", part=part, text=text)


def output(text: str, call: str = "c1") -> Event:
    return ToolOutput(turn="t1", part=call, text=text)
