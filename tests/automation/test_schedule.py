"""When schedules are due: a year in three zones with both changes of the clock, and what is refused."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from portico import limits
from portico.features.automations.events import Schedule
from portico.features.automations.schedule import check_schedule, first_due, missed_dues, next_due
from portico.kernel.errors import BadRequest

YEAR = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
NEXT = int(datetime(2027, 1, 1, tzinfo=UTC).timestamp() * 1000)


def times(schedule: Schedule, start: int = YEAR, end: int = NEXT) -> list[int]:
    found: list[int] = []
    due = next_due(schedule, start, start)
    while due is not None and due < end:
        found.append(due)
        due = next_due(schedule, due, start)
    return found


def local(instants: list[int], zone: str, day: str) -> list[str]:
    """Those of one day, as a clock on the wall shows them, with the offset."""
    shown = [datetime.fromtimestamp(each / 1000, ZoneInfo(zone)).strftime("%Y-%m-%d %H:%M%z") for each in instants]
    return [each[11:] for each in shown if each.startswith(day)]


SPRING = {"Europe/Berlin": "2026-03-29", "America/New_York": "2026-03-08", "Australia/Lord_Howe": "2026-10-04"}
SIX = ["00:00+1100", "06:00+1030", "12:00+1030", "18:00+1030"]
AUTUMN = {"Europe/Berlin": "2026-10-25", "America/New_York": "2026-11-01", "Australia/Lord_Howe": "2026-04-05"}


@pytest.mark.parametrize("zone", SPRING)
def test_a_daily_time_comes_once_on_each_day_of_a_year(zone: str) -> None:
    """Also on the days on which its hour is missing or comes twice."""
    for cron in ("30 2 * * *", "15 1 * * *"):
        found = times(Schedule(cron=cron, zone=zone))
        days = [datetime.fromtimestamp(each / 1000, ZoneInfo(zone)).date() for each in found]
        assert all(second - first == timedelta(days=1) for first, second in pairwise(days)), cron
        assert len(found) in (364, 365, 366)
        assert found == sorted(set(found))


@pytest.mark.parametrize(
    ("zone", "cron", "spring", "autumn"),
    [
        ("Europe/Berlin", "30 2 * * *", ["03:00+0200"], ["02:30+0200"]),
        ("America/New_York", "30 2 * * *", ["03:00-0400"], ["02:30-0500"]),
        ("America/New_York", "30 1 * * *", ["01:30-0500"], ["01:30-0400"]),
        ("Australia/Lord_Howe", "15 2 * * *", ["02:30+1100"], ["02:15+1030"]),
        ("Europe/Berlin", "*/30 2 * * *", [], ["02:00+0100", "02:00+0200", "02:30+0100", "02:30+0200"]),
        ("Australia/Lord_Howe", "0 */6 * * *", ["00:00+1030", "06:00+1100", "12:00+1100", "18:00+1100"], SIX),
        ("Europe/Berlin", "0 1-3 * * *", ["01:00+0100", "03:00+0200"], ["01:00+0200", "02:00+0200", "03:00+0100"]),
    ],
)
def test_the_days_on_which_the_clock_changes(zone: str, cron: str, spring: list[str], autumn: list[str]) -> None:
    found = times(Schedule(cron=cron, zone=zone))
    assert local(found, zone, SPRING[zone]) == spring
    assert sorted(set(local(found, zone, AUTUMN[zone]))) == autumn
    assert len(local(found, zone, AUTUMN[zone])) == len(autumn)


@pytest.mark.parametrize("zone", SPRING)
def test_a_step_goes_by_the_time_that_passes(zone: str) -> None:
    for day in (SPRING[zone], AUTUMN[zone]):
        start = int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000) - 86_400_000
        found = times(Schedule(cron="*/30 * * * *", zone=zone), start, start + 3 * 86_400_000)
        assert {second - first for first, second in pairwise(found)} == {1_800_000}


@pytest.mark.parametrize("zone", SPRING)
@pytest.mark.parametrize("cron", ["30 2 * * *", "*/30 * * * *", "30 1 * * *", "0 */6 * * *"])
def test_asked_at_any_moment_it_is_the_same(zone: str, cron: str) -> None:
    """Asked in the second of the doubled hours, the library answers with a time in the past."""
    schedule = Schedule(cron=cron, zone=zone)
    for day in (SPRING[zone], AUTUMN[zone]):
        start = int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000) - 86_400_000
        end = start + 3 * 86_400_000
        whole = times(schedule, start, end)
        for moment in range(start, end, 1_800_000):
            due = next_due(schedule, moment, start)
            later = [each for each in whole if each > moment]
            assert due is not None
            assert due > moment
            if later:
                assert due == later[0], datetime.fromtimestamp(moment / 1000, UTC)


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        ({}, "schedule"),
        ({"cron": "@daily", "every": "1h"}, "schedule"),
        ({"cron": "* * *"}, "schedule.cron"),
        ({"cron": "* * * * * *"}, "schedule.cron"),
        ({"cron": "61 * * * *"}, "schedule.cron"),
        ({"cron": "@often"}, "schedule.cron"),
        ({"cron": "0 0 31 2 *"}, "schedule.cron"),
        ({"cron": "* * * * *" + ",*" * 200}, "schedule.cron"),
        ({"cron": "@daily", "zone": "Mars/Base"}, "schedule.zone"),
        ({"cron": "@daily", "zone": "../../etc/passwd"}, "schedule.zone"),
        ({"cron": "@daily", "zone": ""}, "schedule.zone"),
        ({"every": "soon"}, "schedule.every"),
        ({"every": "1s"}, "schedule.every"),
        ({"every": "0m"}, "schedule.every"),
        ({"every": "999999999d"}, "schedule.every"),
        ({"at": "tomorrow"}, "schedule.at"),
        ({"at": "2020-01-01T00:00"}, "schedule.at"),
        ({"at": "99999-01-01"}, "schedule.at"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(schedule: dict[str, str], field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        check_schedule(msgspec.convert(schedule, Schedule), YEAR)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("zone", "hint"), [("europe/berlin", "'Europe/Berlin'"), ("Europe/Berln", "'Europe/Berlin'"), ("x" * 200, "IANA")]
)
def test_a_zone_that_is_nearly_right_is_named(zone: str, hint: str) -> None:
    with pytest.raises(BadRequest, match=hint):
        check_schedule(Schedule(cron="@daily", zone=zone), YEAR)


@pytest.mark.parametrize(
    ("given", "first"),
    [
        ({"cron": "@daily"}, "2026-01-02T00:00:00+00:00"),
        ({"cron": "0 7 * * MON-FRI", "zone": "Europe/Berlin"}, "2026-01-01T06:00:00+00:00"),
        ({"every": "90m"}, "2026-01-01T01:30:00+00:00"),
        ({"at": "2026-06-01T09:00", "zone": "Asia/Tokyo"}, "2026-06-01T00:00:00+00:00"),
        ({"at": "2026-06-01T09:00+02:00"}, "2026-06-01T07:00:00+00:00"),
        ({"cron": "0 0 29 2 *"}, "2028-02-29T00:00:00+00:00"),
        ({"at": "2026-03-29T02:30", "zone": "Europe/Berlin"}, "2026-03-29T01:30:00+00:00"),
        ({"at": "2026-10-25T02:30", "zone": "Europe/Berlin"}, "2026-10-25T00:30:00+00:00"),
        ({"at": "2026-03-08T02:30", "zone": "America/New_York"}, "2026-03-08T07:30:00+00:00"),
        ({"at": "2026-10-04T02:10", "zone": "Australia/Lord_Howe"}, "2026-10-03T15:40:00+00:00"),
    ],
)
def test_the_first_time(given: dict[str, str], first: str) -> None:
    schedule = msgspec.convert(given, Schedule)
    check_schedule(schedule, YEAR)
    due = next_due(schedule, YEAR, YEAR)
    assert due is not None
    assert datetime.fromtimestamp(due / 1000, UTC).isoformat() == first


@pytest.mark.parametrize(
    ("given", "days", "count", "more"),
    [
        ({"every": "10m"}, 0.05, 7, False),
        ({"every": "10m"}, 400, limits.MISSED_RUNS, True),
        ({"cron": "* * * * *"}, 3000, limits.MISSED_RUNS, True),
        ({"cron": "@daily"}, 30, 30, False),
        ({"cron": "@yearly"}, 365, 1, False),
        ({"at": "2026-01-05"}, 30, 1, False),
    ],
)
def test_what_was_missed_is_found_and_bounded(given: dict[str, Any], days: float, count: int, more: bool) -> None:
    until = YEAR + int(days * 86_400_000)
    found, cut = missed_dues([msgspec.convert(given, Schedule)], YEAR, until, YEAR)
    assert (len(found), cut) == (count, more)
    assert found == sorted(set(found))
    assert found[0] > YEAR
    assert found[-1] <= until


def test_several_schedules_have_one_run_at_the_same_time() -> None:
    hour = 3_600_000
    daily, often = Schedule(cron="@daily"), Schedule(cron="0 */6 * * *")
    found, more = missed_dues([daily, often], YEAR, YEAR + 24 * hour, YEAR)
    assert ([(due - YEAR) // hour for due in found], more) == ([6, 12, 18, 24], False)
    assert first_due([daily, often], YEAR, YEAR) == YEAR + 6 * hour
    assert first_due([Schedule(at="2020-01-01T00:00"), daily], YEAR, YEAR) == YEAR + 24 * hour
    assert first_due([], YEAR, YEAR) is None
    assert missed_dues([often, Schedule(every="10s")], YEAR, YEAR + hour * 7, YEAR)[1]
