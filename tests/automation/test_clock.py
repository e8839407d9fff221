"""Clocks that are set: a due time never has two runs, and time that comes again is not lost for what is due in it."""

from collections.abc import Iterator

import pytest

from portico.features.automations import events as ae
from portico.features.automations.decide import due_causes, next_time
from portico.features.automations.state import AutomationState, begin, fold
from tests.automation.playing import plan

MINUTE, DAY, YEAR = 60_000, 86_400_000, 365 * 86_400_000
START = 1_700_000_000_000


def made(schedule: dict[str, str], missed: str, at: int) -> AutomationState:
    created = ae.AutomationCreated("automation-1", "often", plan(schedule=schedule, missed=missed), "t", [])
    return begin(created, at)


def run_through(state: AutomationState, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The clock shows each span, minute by minute, one after the other: (now, due) of every claim."""
    for first, count in spans:
        due = next_time(state, first)
        for now in range(first, first + count * MINUTE, MINUTE):
            if due is None or now < due:
                continue
            causes, missed = due_causes(state, due, now)
            for _, event in missed:
                fold(state, event, now)
            for cause in causes:
                fold(state, ae.RunReserved("run-1", "schedule", cause.due), now)
                yield now, cause.due
            due = next_time(state, now)


@pytest.mark.parametrize("missed", ["skip", "last", "all"])
@pytest.mark.parametrize("schedule", [{"every": "1m"}, {"cron": "* * * * *"}])
@pytest.mark.parametrize(
    ("made_at", "spans", "least"),
    [
        pytest.param(0, [(0, 600), (300 * MINUTE, 600)], 890, id="back by five hours"),
        pytest.param(0, [(0, 600), (0, 1200)], 1190, id="back to where it began"),
        pytest.param(0, [(0, 10), (YEAR, 10), (10 * MINUTE, 300)], 310, id="a year ahead for a while"),
        pytest.param(YEAR, [(YEAR, 10), (0, 300)], 305, id="made while it was a year ahead"),
        pytest.param(0, [(0, 10), (DAY, 10), (20 * MINUTE, 10), (DAY, 20)], 35, id="ahead, back, and there in the end"),
    ],
)
def test_a_clock_that_is_set(
    schedule: dict[str, str], missed: str, made_at: int, spans: list[tuple[int, int]], least: int
) -> None:
    """A clock that was a year ahead by mistake kept an automation from its runs for that year; one that was set back by
    more than 200 due times gave them a second run."""
    state = made(schedule, missed, START + made_at)
    claims = list(run_through(state, [(START + first, count) for first, count in spans]))
    dues = [due for _, due in claims]
    assert len(dues) == len(set(dues))
    assert len([now for now, due in claims if now - due < MINUTE]) >= least
    assert len(state.spans) <= 12


def test_what_is_remembered_is_bounded() -> None:
    state = made({"every": "1m"}, "last", START)
    list(run_through(state, [(START + number * DAY, 3) for number in range(1, 500)]))
    assert len(state.spans) == 200
