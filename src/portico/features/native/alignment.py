"""Finds the turns that a session got in the agent's own program since its last import. Pure."""

from collections.abc import Sequence

from portico.kernel.state import TurnState


def added(known: Sequence[TurnState], native: Sequence[TurnState]) -> list[TurnState] | None:
    """Return the native turns after the known ones; None if the two histories cannot be aligned.

    Every known turn must be found in the native history, in order and without unknown turns between them. A native
    message may contain more than the known one: the host adds context to what a person writes. A known turn that did
    not complete may be missing, because some programs drop it.
    """
    position = 0
    for turn in known:
        if position < len(native) and _same(turn, native[position]):
            position += 1
        elif turn.outcome == "completed":
            return None
    return list(native[position:])


def _same(known: TurnState, native: TurnState) -> bool:
    return _words(known) in _words(native)


def _words(turn: TurnState) -> str:
    return " ".join(turn.message.text.split())
