"""The open questions about budgets, by the key of the budget, and their storage: those that no turn shows stay open."""

from collections.abc import Callable

import msgspec

from portico.features.budgets.budget import Use
from portico.features.budgets.commands import UnansweredBudget
from portico.features.budgets.ledger import AppliedBudget, is_current
from portico.features.budgets.question import AskedBudget, BudgetQuestion
from portico.kernel.commands import Caller
from portico.kernel.errors import NotFound
from portico.kernel.events import HOST
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.turn import Turn

UNANSWERED = "budget.unanswered"
"""Key of the stored questions."""


class BudgetQuestions:
    def __init__(self, host: Host) -> None:
        self._host = host
        self.open: dict[str, BudgetQuestion] = {}
        self._stored: bytes | None = None

    def get(self, key: str) -> BudgetQuestion:
        if key not in self.open:
            raise NotFound("open question about the budget", key, "`portico inbox list` shows them.")
        return self.open[key]

    def about(self, held: AppliedBudget, use: Use, turn: Turn) -> BudgetQuestion:
        """Return the question about this budget, with the amount that is spent now."""
        known, size = self.open.get(held.key), getattr(held.budget, use.bound)
        since = known.asked.since if known is not None else self._host.now()
        asked = AskedBudget(held.key, held.about, held.whole, use.bound, size, use.words, turn.session.id, since)
        if known is None:
            known = self.open[held.key] = BudgetQuestion(asked)
        known.asked = asked
        return known

    def left(self, question: BudgetQuestion) -> None:
        """A turn no longer waits for it. Remove it if it is answered, or if its budget ended with the turn."""
        key = question.asked.key
        if (question.closed or (question.asked.of_turn and not question.turns)) and self.open.get(key) is question:
            del self.open[key]
        self.store()

    def drop(self, wanted: Callable[[BudgetQuestion], bool] = lambda _: True) -> None:
        """Close questions that no turn shows and that are no longer about anything."""
        for key, question in list(self.open.items()):
            if question.shown_in is None and wanted(question):
                del self.open[key]
                question.close()
        self.store()

    def settle(self, key: str) -> None:
        """The budget is not exhausted any more: its settings were changed."""
        if key in self.open:
            self.drop(lambda question: question.asked.key == key)

    def drop_past(self) -> None:
        """Close those about a past day or month."""
        self.drop(lambda question: not is_current(question.asked.key, self._host.now()))

    def forget(self, session: Session) -> None:
        """Close those about a deleted session."""
        own = (f"session/{session.id}", f"own/{session.id}")
        self.drop(lambda question: question.asked.key in own)

    def unanswered(self, caller: Caller) -> list[UnansweredBudget]:
        """Return those that no turn shows, oldest first, about sessions that the caller may see."""
        found = [each.asked for each in self.open.values() if each.shown_in is None and not each.closed]
        ownership = self._host.ownership
        return [
            UnansweredBudget(each.key, each.text, each.labels, each.session, each.since)
            for each in sorted(found, key=lambda each: each.since)
            if ownership.may(caller, ownership.of_channel(f"session/{each.session}"))
        ]

    async def load(self) -> None:
        self._stored = await self._host.log.get_kv(HOST, UNANSWERED)
        for each in msgspec.json.decode(self._stored, type=list[AskedBudget]) if self._stored is not None else []:
            self.open[each.key] = BudgetQuestion(each)

    def store(self) -> None:
        """Store those that outlive their turn, if they have changed."""
        kept = [each.asked for each in self.open.values() if not each.closed and not each.asked.of_turn]
        data = msgspec.json.encode(kept) if kept else None
        if data != self._stored and not self._host.stopping:
            self._stored = data
            self._host.log.put_kv(HOST, UNANSWERED, data)
