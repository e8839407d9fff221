"""The command about budgets: answer the question about an exhausted one."""

from msgspec import Struct

from portico.kernel.commands import Command, Done, Http, register


class UnansweredBudget(Struct, frozen=True):
    """An exhausted budget whose question no turn shows any more: the turn that reached it has ended."""

    budget: str
    """Its key: `session/ID`, `day/2026-11-18`."""
    text: str
    options: list[str]
    """The possible answers."""
    session: str
    """Where it was asked."""
    since: int
    """When it was asked first: milliseconds since the epoch."""


class AnswerBudget(Command, frozen=True, tag="budget.answer"):
    """Answer the question about an exhausted budget, also if no turn shows it."""

    scope = "approve"
    lock = "feature"
    gives = Done
    http = Http("POST", "/v1/budgets/answer")
    errors = ("not_found", "forbidden")

    budget: str
    """Its key, as the inbox lists it."""
    answer: str
    """The label or the id of an option: `raise`, `finish`, `stop`."""


register(AnswerBudget)
