"""Which log is this? Its epoch is in every cursor that clients keep; a log that lost its tail, was restored from a
backup or copied gets another one, so that no cursor points at an event that its reader has not seen."""

from msgspec import Struct


class Identity(Struct):
    epoch: str
    salt: int
    """Part of every checksum: events of another log do not fit."""
    lost: int = 0
    """How many numbers were given and are gone, over all starts."""
    lost_now: int = 0
    """Those that this start has found missing."""
    last: int = 0
    """The last number that was ever given."""
    why: str = ""
    """Why it has a new epoch; empty when it has not."""
    tail_lost: bool = False
    """The last events may be missing; it is not known how many."""
