"""Notices for people while an agent has no output: for how long, and the known reason.

An agent that retries without output, a model that thinks and a command that runs all look like a hang. So after some
time a notice states what the turn is waiting for, and again when it takes much longer. It does not count as output of
the agent.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from portico.kernel import limits

TITLE_CHARS = 120


class WatchedTurn(Protocol):
    """What it reads of a turn."""

    active_at: float
    live: bool
    activity: str
    waiting: int

    @property
    def calls(self) -> Mapping[str, Any]: ...
    @property
    def children(self) -> "Sequence[WatchedTurn]": ...
    @property
    def respondent(self) -> str: ...


class Silence:
    """The notices of one turn. `due` returns when to check again, `notice` the text to show then."""

    def __init__(self, turn: WatchedTurn) -> None:
        self._turn = turn
        self._heard_at = 0.0
        self._told = 0

    def due(self, now: float) -> float:
        """Return the seconds until a notice may be due."""
        steps, heard = limits.SILENCE_SECONDS, last_heard(self._turn)
        if heard != self._heard_at:
            self._heard_at, self._told = heard, 0
        return steps[self._told] - (now - heard) if self._told < len(steps) else float("inf")

    def notice(self, now: float) -> str | None:
        if self._turn.waiting or self.due(now) > 0:
            return None
        self._told += 1
        return f"Nothing heard for {now - self._heard_at:.0f} seconds: {explained(self._turn)}."


def last_heard(turn: WatchedTurn) -> float:
    """Return the time of the last output. Output of sub-agents counts for the turn that waits for them."""
    return max([turn.active_at, *[last_heard(child) for child in turn.children if child.live]])


def explained(turn: WatchedTurn) -> str:
    """Return what the turn waits for, as far as it is known."""
    if turn.activity:
        return turn.activity
    running = [call for call in turn.calls.values() if not call.done]
    if running:
        title = running[-1].title.strip() or running[-1].tool
        return f"{title[:TITLE_CHARS]!r} is still running"
    return f"waiting for {turn.respondent} to answer"
