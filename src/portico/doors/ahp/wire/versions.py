"""The supported protocol versions, and the small object that gives reducers the negotiated version.

The most frequent complaint of AHP users is that editor and host must have the same version, so `negotiate` also accepts
unknown patch releases, and every version from 1.0.0 up to 2.0.0: those only add features.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

import msgspec

SEED = "1"
"""Protocol version 1: a number on the wire, and older than every dotted version."""

SUPPORTED = ("1.0.0", "0.9.0", "0.8.0", "0.7.0", "0.6.0", "0.5.2", "0.5.1")
"""The versions of the channel dialect, highest first; this is `data.supportedVersions` of a -32005."""

Order = tuple[int, int, int]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=256)
def parse(version: str) -> Order | None:
    """`"0.9.0"` as numbers that compare; None for anything that is not a released version."""
    if version == SEED:
        return (0, 0, 1)
    numbers = version.split(".")
    if len(numbers) != 3 or not all(map(_is_number, numbers)):
        return None
    major, minor, patch = map(int, numbers)
    return (major, minor, patch)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 6 and (text == "0" or text[0] != "0")


_ORDER = {version: order for version in SUPPORTED if (order := parse(version)) is not None}
_LINES = {order[:2] for order in _ORDER.values()}
_OLDEST = min(_ORDER.values())


def negotiate(offered: Iterable[object]) -> str | None:
    """The highest offered version that we support, or None. Invalid versions are skipped, not refused."""
    acceptable = [
        (order, version)
        for version in offered
        if isinstance(version, str) and (order := parse(version)) and _is_spoken(order)
    ]
    return max(acceptable)[1] if acceptable else None


def _is_spoken(order: Order) -> bool:
    return order[0] == 1 or (order[:2] in _LINES and order >= _OLDEST)


class Dialect(msgspec.Struct, frozen=True):
    """What a reducer must know besides state and action: the negotiated version, and the time.

    `clock` gives milliseconds since 1970. Up to 0.8 the reducers stamp `modifiedAt` with it; from 0.9 on every time
    comes from the actions, and the clock is not read.
    """

    version: str
    clock: Callable[[], int]
    seed: bool = False
    """Whether it is version 1. Stored because it is read for every message."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "seed", self.version == SEED)

    @property
    def message(self) -> str:
        """The name of the field with the user's message."""
        return "userMessage" if self.seed else "message"

    def since(self, version: str) -> bool:
        """Whether the negotiated version is `version` or later."""
        mine, theirs = parse(self.version), parse(version)
        return mine is not None and theirs is not None and mine >= theirs

    def now(self) -> int | str:
        """The clock in the dialect's own form: milliseconds in version 1, ISO 8601 afterwards."""
        milliseconds = self.clock()
        return milliseconds if self.seed else iso(milliseconds)


def iso(milliseconds: float) -> str:
    moment = _EPOCH + timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def later(start: str, milliseconds: float) -> str | None:
    """`start` plus a duration; None when `start` is not a time, because a client may have sent anything."""
    try:
        moment = datetime.fromisoformat(start)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return iso((moment - _EPOCH) / timedelta(milliseconds=1) + milliseconds)
    except (ValueError, OverflowError):
        return None
