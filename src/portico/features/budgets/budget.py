"""A budget, the amount spent, and the texts for both. Pure."""

from msgspec import Struct

from portico.kernel.events import Budget

WARN_AT = 0.8
"""From this share on, people are notified once."""


class Spent(Struct):
    dollars: float = 0.0
    estimated: bool = False
    unpriced: int = 0
    """Turns whose cost is unknown."""
    tokens: int = 0
    minutes: float = 0.0
    turns: int = 0
    calls: int = 0

    def __iadd__(self, other: "Spent") -> "Spent":
        self.dollars += other.dollars
        self.estimated = self.estimated or other.estimated
        self.unpriced += other.unpriced
        self.tokens += other.tokens
        self.minutes += other.minutes
        self.turns += other.turns
        self.calls += other.calls
        return self


class Use(Struct, frozen=True):
    """The bound with the highest share of use."""

    bound: str
    share: float
    words: str
    """`$0.41 of $0.50`."""


def most_used(budget: Budget, spent: Spent) -> Use | None:
    """Return the bound with the highest share of use; None if the budget has no bound. A limit on turns is exceeded by
    the first turn after the last allowed one. Shares are rounded: eight times $0.10 are $0.7999999999999999."""
    found = [
        Use(name, round((used - (name == "turns")) / limit, 9), _words(name, used, limit, spent))
        for name in Budget.__struct_fields__
        if (limit := getattr(budget, name)) is not None
        for used in [getattr(spent, name)]
    ]
    return max(found, key=lambda each: each.share, default=None)


def _words(name: str, used: float, limit: float, spent: Spent) -> str:
    if name == "dollars":
        return f"{'about ' if spent.estimated else ''}${used:.2f} of ${limit:.2f}"
    if name == "minutes":
        return f"{used:.0f} of {limit:g} minutes"
    return f"{used:,} of {limit:,} {'tool calls' if name == 'calls' else name}"


def raised(budget: Budget, by: dict[str, float]) -> Budget:
    """Return the budget plus the amounts that people have added."""
    values = {name: getattr(budget, name) for name in Budget.__struct_fields__}
    for name, more in by.items():
        if values.get(name) is not None:
            values[name] += more if name in ("dollars", "minutes") else int(more)
    return Budget(**values)
