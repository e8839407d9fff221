"""The question about an exhausted budget. It belongs to the budget, not to the turn that reached it.

One of the turns that wait for the answer shows it. When that turn ends without an answer, another waiting turn shows
it. If no turn waits, the question stays open: the inbox lists it, `budget.answer` answers it, and the next turn that
counts toward the budget shows it. The answer applies to everything that waits.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from portico.kernel.events import Json
from portico.kernel.turn import Turn

RAISE, FINISH, STOP = "raise", "finish", "stop"


class AskedBudget(Struct, frozen=True):
    """What the question is about, as it is stored while no turn shows it."""

    key: str
    about: str
    whole: str
    bound: str
    size: float
    """The size of the exhausted bound: by so much it can be raised."""
    words: str
    """`$0.41 of $0.50`."""
    session: str
    since: int

    @property
    def text(self) -> str:
        return f"The budget of {self.about} is spent: {self.words}."

    @property
    def fields(self) -> list[Json]:
        return options(self.bound, self.size, self.whole)

    @property
    def labels(self) -> list[str]:
        return [each["label"] for each in self.fields[0]["options"]]

    @property
    def of_turn(self) -> bool:
        """Return whether the budget, and so the question, ends with the turn."""
        return self.key.startswith("turn/")


class BudgetQuestion:
    def __init__(self, asked: AskedBudget) -> None:
        self.asked = asked
        self.turns: dict[str, Turn] = {}
        """Turns that wait for the answer, by `SESSION/TURN`."""
        self.shown_in: Turn | None = None
        self.closed = False
        """It was answered, or the period of its budget is over: all turns check their budgets again."""
        self._changed = asyncio.Event()

    @property
    def asked_in(self) -> str:
        """Return the session in which it is shown."""
        return self.shown_in.session.id if self.shown_in is not None else ""

    @contextmanager
    def waiting(self, turn: Turn) -> Iterator[None]:
        key = f"{turn.session.id}/{turn.id}"
        self.turns[key] = turn
        try:
            yield
        finally:
            self.turns.pop(key, None)

    @contextmanager
    def showing(self, turn: Turn) -> Iterator[None]:
        self.shown_in = turn
        try:
            yield
        finally:
            self.shown_in = None
            self._wake()

    async def changed(self) -> None:
        """Return when it is closed, when no turn shows it, or when a waiting turn has ended."""
        await self._changed.wait()

    def left(self, key: str) -> None:
        """Remove a turn that has ended."""
        if self.turns.pop(key, None) is not None:
            self._wake()

    def close(self) -> None:
        """All turns that wait for it check their budgets again."""
        self.closed = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def options(bound: str, size: float, whole: str) -> list[Json]:
    """Return the fields of the question. `whole`: what the answer stops or lets finish; empty: the turn."""
    amount = f"${size:.2f}" if bound == "dollars" else f"{size:,g} {'tool calls' if bound == 'calls' else bound}"
    found = [
        {"id": RAISE, "label": f"Raise it by {amount}"},
        {"id": FINISH, "label": f"Let this {whole or 'turn'} finish"},
        {"id": STOP, "label": f"Stop {f'the {whole}' if whole else ''}".strip()},
    ]
    return [{"id": "answer", "kind": "single-select", "message": "Go on?", "required": True, "options": found}]


def is_budget_question(fields: list[Json]) -> bool:
    return [option.get("id") for field in fields for option in field.get("options", [])] == [RAISE, FINISH, STOP]


def chosen(fields: list[Json], said: str) -> str | None:
    """Return the option whose id or label equals the answer; None: there is no such option."""
    named = said.strip().casefold()
    found = [option for field in fields for option in field["options"]]
    return next((each["id"] for each in found if named in (each["id"].casefold(), each["label"].casefold())), None)
