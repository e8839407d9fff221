"""When a schedule is due: pure functions of the schedule and a time. All times are milliseconds since the epoch (UTC).

A claim is keyed by the UTC instant, so an hour that a clock change repeats cannot run a fixed time twice:

- A fixed time (`30 2 * * *`) in the hour that a zone leaves out runs at the end of the gap; in the hour that comes
  twice it runs once, the first time.
- With a star or a step in the minute or the hour (`*/15 * * * *`) it goes by the real time that passes: nothing in the
  gap (`*/15 2 * * *` has no run on that day), and every instant of the doubled hour.
- A time for once (`at`) in the gap is as much later as the gap is long; in the doubled hour it is the first time.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import TYPE_CHECKING

from portico import limits
from portico.features.automations.events import Schedule
from portico.kernel.errors import BadRequest, nearest

if TYPE_CHECKING:
    from cronsim import CronSim

_NAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_UNITS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_EVERY = re.compile(r"([1-9][0-9]{0,8})\s*([smhd])")
_FIELDS = 5


def check_schedule(schedule: Schedule, now: int, field: str = "schedule") -> None:
    """Raise for an invalid schedule, and for one that is never due."""
    if sum(map(bool, (schedule.cron, schedule.every, schedule.at))) != 1:
        raise BadRequest("A schedule has exactly one of 'cron', 'every' and 'at'.", field=field)
    zone_of(schedule.zone, f"{field}.zone")
    if schedule.cron:
        _check_cron(schedule.cron, f"{field}.cron")
    elif schedule.every:
        _interval(schedule.every, f"{field}.every")
    if next_due(schedule, now, now, field) is None:
        which = "at" if schedule.at else "cron"
        words = f"{schedule.at!r} is in the past." if schedule.at else f"{schedule.cron!r} never comes."
        raise BadRequest(f"{words} Choose a time to come.", field=f"{field}.{which}")


def _check_cron(text: str, field: str) -> None:
    if len(text) > limits.CRON_CHARS:
        raise BadRequest(f"A cron expression has at most {limits.CRON_CHARS} characters.", field=field)
    if text.startswith("@"):
        if text not in _NAMES:
            raise BadRequest(f"{text!r} is none of {', '.join(_NAMES)}.", field=field)
        return
    count = len(text.split())
    if count != _FIELDS:
        more = " Seconds are not taken." if count == _FIELDS + 1 else ""
        words = f"{text!r} has {count} fields; cron has five: minute, hour, day, month, weekday.{more}"
        raise BadRequest(words, field=field)
    from cronsim import CronSimError

    try:
        cron_times(text, datetime(2026, 1, 1, tzinfo=UTC))
    except (CronSimError, ValueError, OverflowError) as error:
        raise BadRequest(f"{text!r} is no cron expression: {error}.", field=field) from None


def zone_of(name: str, field: str = "zone") -> tzinfo:
    try:
        return _zone(name)
    except (ValueError, OSError, KeyError):
        from zoneinfo import available_timezones

        near = nearest(name[:100].title(), sorted(available_timezones()), 0.8)
        hint = f"Did you mean {near!r}?" if near else "Use an IANA name such as 'Europe/Berlin' or 'UTC'."
        raise BadRequest(f"{name!r} is no time zone. {hint}", field=field) from None


@lru_cache(maxsize=600)
def _zone(name: str) -> tzinfo:
    if not name or len(name) > 100:
        raise ValueError(name)
    from zoneinfo import ZoneInfo  # late: most hosts have no schedules

    return ZoneInfo(name)


def moment(text: str, zone: str, field: str) -> int:
    """Parse a time that a person wrote. It is in the zone unless it contains an offset."""
    try:
        found = datetime.fromisoformat(text)
        local = found if found.tzinfo is not None else found.replace(tzinfo=zone_of(zone))
        return int(local.timestamp() * 1000)
    except (ValueError, OverflowError):
        raise BadRequest(f"{text!r} is no time such as '2027-01-31T09:00'.", field=field) from None


def _interval(text: str, field: str) -> int:
    found = _EVERY.fullmatch(text.strip())
    length = int(found[1]) * _UNITS[found[2]] if found else 0
    if not limits.EVERY_SECONDS * 1000 <= length <= 3660 * _UNITS["d"]:
        words = f"{text!r} is not {limits.EVERY_SECONDS:g} seconds to ten years, such as '90s', '15m', '2h' or '1d'."
        raise BadRequest(words, field=field)
    return length


def next_due(schedule: Schedule, after: int, anchor: int, field: str = "schedule") -> int | None:
    """The first due time behind `after`, or None: it never comes. `every` counts from the anchor."""
    if schedule.at:
        at = moment(schedule.at, schedule.zone, f"{field}.at")
        return at if at > after else None
    if schedule.every:
        length = _interval(schedule.every, f"{field}.every")
        return anchor + ((after - anchor) // length + 1) * length
    return next(_cron_times(schedule, after), None)


def first_due(schedules: Iterable[Schedule], after: int, anchor: int) -> int | None:
    """The first due time of several schedules."""
    found = [next_due(each, after, anchor) for each in schedules]
    return min((due for due in found if due is not None), default=None)


def cron_of(schedule: Schedule) -> str:
    return _NAMES.get(schedule.cron, schedule.cron)


def cron_times(cron: str, start: datetime) -> "CronSim":
    """The times behind the start."""
    from cronsim import CronSim  # late: most hosts have no schedules

    return CronSim(cron, start)


def _cron_times(schedule: Schedule, after: int) -> Iterator[int]:
    zone = zone_of(schedule.zone)
    start = _local(after, zone)
    try:
        while True:
            for found in cron_times(cron_of(schedule), start):
                instant = int(found.timestamp() * 1000)
                if instant <= after:  # asked in the second of the doubled hours, it begins in the first
                    continue
                changed = found.utcoffset() != _local(after - _UNITS["h"], zone).utcoffset()
                if changed:
                    instant = min([instant, *_behind_change(schedule, after, instant)])
                yield instant
                start, after = found, instant
                if changed:
                    start = _local(instant, zone)
                    break
            else:
                return
    except (OverflowError, ValueError):
        return


def _behind_change(schedule: Schedule, after: int, until: int) -> list[int]:
    """Asked again from where the clock changes: where that is by half an hour, the library passes over the first time
    behind it."""
    zone = zone_of(schedule.zone)
    first = _local(after - _UNITS["h"], zone).utcoffset()
    low, high = after - _UNITS["h"], until
    while high - low > 1000:
        middle = (low + high) // 2
        same = _local(middle, zone).utcoffset() == first
        low, high = (middle, high) if same else (low, middle)
    change = high // 1000 * 1000
    hour = change + (60 - _local(change, zone).minute) % 60 * 60_000
    found = [next(cron_times(cron_of(schedule), _local(each - 1000, zone))) for each in (change, hour)]
    return [instant for each in found if (instant := int(each.timestamp() * 1000)) > after]


def _local(instant: int, zone: tzinfo) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC).astimezone(zone)


def missed_dues(schedules: Iterable[Schedule], after: int, until: int, anchor: int) -> tuple[list[int], bool]:
    """The due times behind `after` through `until`, in order: the last ones of them, and whether there were more.
    Schedules that are due at the same time have one run."""
    found = [_missed(each, after, until, anchor) for each in schedules]
    dues = sorted({due for each, _ in found for due in each})
    return dues[-limits.MISSED_RUNS :], any(more for _, more in found) or len(dues) > limits.MISSED_RUNS


def _missed(schedule: Schedule, after: int, until: int, anchor: int) -> tuple[list[int], bool]:
    for span in _SPANS:
        start = max(after, until - span)
        found = list(_between(schedule, start, until, anchor))
        if start == after or len(found) > limits.MISSED_RUNS:
            break
    return found[-limits.MISSED_RUNS :], start > after or len(found) > limits.MISSED_RUNS


_SPANS = (_UNITS["h"], _UNITS["d"], 30 * _UNITS["d"], 400 * _UNITS["d"])
"""How far back missed times are looked for: a yearly one is found, and the minutes of a year are not counted."""


def _between(schedule: Schedule, after: int, until: int, anchor: int) -> Iterator[int]:
    times = _cron_times(schedule, after) if schedule.cron else _steps(schedule, after, anchor)
    for due in times:
        if due > until:
            return
        yield due


def _steps(schedule: Schedule, after: int, anchor: int) -> Iterator[int]:
    due = next_due(schedule, after, anchor)
    while due is not None:
        yield due
        due = next_due(schedule, due, anchor)
