"""What `GET /v1/usage` answers."""

from msgspec import Struct

KEYS = ("day", "session", "agent", "model", "by", "job", "automation", "person")


class UsageCounts(Struct, omit_defaults=True, kw_only=True):
    turns: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0
    """Dollars, as the agents told them."""
    estimated: float = 0.0
    """Dollars by list prices, of turns whose cost no agent told."""
    unpriced: int = 0
    """Turns that told no cost and have no list price: what they cost is unknown, not nothing."""


class UsageRow(UsageCounts, omit_defaults=True):
    """One session on one day."""

    day: str
    """YYYY-MM-DD, in the zone of whoever asks."""
    session: str
    title: str
    agent: str
    model: str
    by: str = ""
    """Who began the session: `task:ID` for one of a job."""
    job: str = ""
    """The job that it was a task of."""
    automation: str = ""
    """The name of the automation that began it, or its job."""
    person: str = ""
    """Whose it counts as: a person, or `token:NAME` where the token is nobody's."""


class UsageSum(UsageCounts, omit_defaults=True):
    key: dict[str, str]
    """What it is the sum of, for example `{"agent": "loop", "day": "2026-11-16"}`."""
    sessions: int = 0


class UsageAnswer(Struct, omit_defaults=True):
    """`GET /v1/usage`."""

    rows: list[UsageRow] = []
    sums: list[UsageSum] = []
    """Instead of the rows, with `by`."""
    prices: str = ""
    """The list that estimates come from, by its release; empty: none is installed."""
    prices_date: str = ""
    """Of the newest price in that list; empty: nothing here is estimated."""
    priced_as: dict[str, str] = {}
    """Models whose estimate is by another name of that list."""
