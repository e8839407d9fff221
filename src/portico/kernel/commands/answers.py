"""What commands are answered with, where it is not the summary of the thing they are about."""

from typing import Literal

from msgspec import Struct

from portico.kernel.events import QuestionResponse


class Deleted(Struct):
    kept: str
    """What stays of its worktree, and why."""


class TurnBegun(Struct):
    turn: str


class Queued(Struct):
    queued: bool
    pending: str
    position: int


class Steered(Struct):
    steered: bool
    queued: bool
    """The agent did not take it: it waits for the end of the turn."""


class Offered(Struct):
    steered: bool


class Decided(Struct):
    approval: str
    allowed: bool
    by: str


class Answered(Struct):
    question: str
    response: QuestionResponse


class Drafted(Struct):
    question: str


class Done(Struct):
    """It was done; there is no further result."""


Busy = Literal["queue", "steer", "refuse"]
"""What becomes of a message while a turn runs."""
