"""Groups usage rows by the requested keys and sums them: `by=agent,model`."""

from collections.abc import Iterable, Sequence

from portico.features.usage.shapes import KEYS, UsageCounts, UsageRow, UsageSum
from portico.kernel.errors import BadRequest, nearest


def read_keys(text: str) -> list[str]:
    found = [each.strip() for each in text.split(",") if each.strip()]
    for each in found:
        if each not in KEYS:
            near = nearest(each, KEYS)
            guess = f" Did you mean {near!r}?" if near else ""
            raise BadRequest(f"{each!r} is not one of {', '.join(KEYS)}.{guess}", field="by")
    return list(dict.fromkeys(found))


def roll_up(rows: Iterable[UsageRow], by: Sequence[str]) -> list[UsageSum]:
    """Return the sums, sorted by day if that is a key, otherwise by cost in descending order."""
    sums: dict[tuple[str, ...], UsageSum] = {}
    sessions: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        values = tuple(str(getattr(row, each)) for each in by)
        found = sums.setdefault(values, UsageSum(dict(zip(by, values, strict=True))))
        sessions.setdefault(values, set()).add(row.session)
        found.sessions = len(sessions[values])
        for name in UsageCounts.__struct_fields__:
            setattr(found, name, getattr(found, name) + getattr(row, name))
    ordered = sorted(sums.values(), key=lambda each: (-(each.cost + each.estimated), -(each.input + each.output)))
    return sorted(ordered, key=lambda each: each.key["day"], reverse=True) if "day" in by else ordered
