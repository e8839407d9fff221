"""The response of `GET /v1/usage`."""

from msgspec import Struct

KEYS = ("day", "session", "agent", "model", "by", "job", "automation", "person")


class UsageCounts(Struct, omit_defaults=True, kw_only=True):
    turns: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0
    """Dollars, as reported by the agents."""
    estimated: float = 0.0
    """Dollars at list prices, for turns whose cost was not reported."""
    unpriced: int = 0
    """Turns without a reported cost and without a list price: their cost is unknown, not zero."""


class UsageRow(UsageCounts, omit_defaults=True):
    """One session on one day."""

    day: str
    """YYYY-MM-DD, in the time zone of the caller."""
    session: str
    title: str
    agent: str
    model: str
    by: str = ""
    """Who started the session: `task:ID` for a session of a job."""
    job: str = ""
    """The job that the session belongs to."""
    automation: str = ""
    """The name of the automation that started the session or its job."""
    person: str = ""
    """Whose usage it is: a person, or `token:NAME` if the token has no owner."""


class UsageSum(UsageCounts, omit_defaults=True):
    key: dict[str, str]
    """The values that the sum is grouped by, for example `{"agent": "loop", "day": "2026-11-16"}`."""
    sessions: int = 0


class UsageAnswer(Struct, omit_defaults=True):
    """`GET /v1/usage`."""

    rows: list[UsageRow] = []
    sums: list[UsageSum] = []
    """Returned instead of the rows if `by` is given."""
    prices: str = ""
    """Name and release of the price list for estimates; empty: none is installed."""
    prices_date: str = ""
    """Date of the newest price in that list; empty: nothing in this response is estimated."""
    priced_as: dict[str, str] = {}
    """Models that are priced by an entry with another name, and that name."""
