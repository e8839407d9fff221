"""The rules of runs, without a host: is a cause given a run, which run starts next, when does an automation stop?"""

from typing import Any

import pytest

from portico import limits
from portico.features.automations import events as ae
from portico.features.automations.decide import (
    Cause,
    claim,
    due_causes,
    next_runs,
    next_time,
    refusal,
    stop_reason,
    stop_time,
)
from portico.features.automations.state import AutomationState, RunSummary, begin, fold
from portico.kernel import events as e
from tests.automation.playing import plan

MINUTE = 60_000
START = 1_800_000_000_000
"""2027-01-15T08:00:00Z"""
EVERY = {"every": "1m"}


def made(at: int = START, **parts: Any) -> AutomationState:
    return begin(ae.AutomationCreated("automation-1", "often", plan(**parts), "token:t", ["drive"]), at)


def run(number: int, status: str = "running", cause: ae.Cause = "schedule") -> RunSummary:
    summary = RunSummary(f"run-{number}", "automation-1", "often", cause, START, START, "t")
    summary.status = status  # type: ignore[assignment]
    return summary


def by_hand(**more: Any) -> Cause:
    return Cause("person", START, "token:t", **more)


def by_schedule(**more: Any) -> Cause:
    return Cause("schedule", START, "automation:automation-1", **more)


# -- is it given a run? ----------------------------------------------------------------------------------------

QUEUED = [run(number) for number in range(limits.QUEUED_RUNS)]


@pytest.mark.parametrize(
    ("rules", "runs", "words"),
    [
        pytest.param({}, [], "", id="alone"),
        pytest.param({}, [run(1)], "run-1 was not over (overlap = 'skip').", id="skip, one runs"),
        pytest.param({}, [run(1, "pending")], "run-1 was not over (overlap = 'skip').", id="skip, one waits"),
        pytest.param({}, [run(1, "succeeded"), run(2, "skipped")], "", id="skip, those before are over"),
        pytest.param({}, [run(1, "failed"), run(2)], "run-2 was not over (overlap = 'skip').", id="names the open one"),
        pytest.param({"hook": {}}, [run(1)], "", id="a hook queues"),
        pytest.param({"after": {"job": "x"}}, [run(1)], "", id="what comes after another queues"),
        pytest.param(
            {"hook": {}, "overlap": "skip"}, [run(1)], "run-1 was not over (overlap = 'skip').", id="a hook that skips"
        ),
        pytest.param({"overlap": "parallel"}, [run(1)], "", id="parallel, one of two"),
        pytest.param(
            {"overlap": "parallel"}, [run(1), run(2)], "2 runs were not over (parallel = 2).", id="parallel, two of two"
        ),
        pytest.param({"overlap": "parallel", "parallel": 3}, [run(1), run(2)], "", id="parallel, two of three"),
        pytest.param({"overlap": "parallel"}, [run(1), run(2, "canceled")], "", id="parallel, over ones do not count"),
        pytest.param({"overlap": "queue"}, [run(1), run(2, "pending")], "", id="queue, one waits"),
        pytest.param({"overlap": "queue"}, QUEUED, "", id="queue, one place is left"),
        pytest.param(
            {"overlap": "queue"},
            [*QUEUED, run(999)],
            f"{limits.QUEUED_RUNS} runs were waiting already.",
            id="queue, full",
        ),
        pytest.param({"overlap": "cancel"}, [run(1), run(2)], "", id="cancel takes all"),
    ],
)
def test_a_run_beside_others(rules: dict[str, Any], runs: list[RunSummary], words: str) -> None:
    assert refusal(made(**rules), runs, by_schedule()) == words


@pytest.mark.parametrize(
    ("depth", "refused"), [(0, False), (limits.AUTOMATION_DEPTH, False), (limits.AUTOMATION_DEPTH + 1, True)]
)
def test_automations_that_start_one_another_end(depth: int, refused: bool) -> None:
    words = refusal(made(), [], by_schedule(depth=depth))
    assert ("this is a loop" in words) is refused


@pytest.mark.parametrize(
    ("most", "had", "before", "cause", "kinds"),
    [
        pytest.param(0, 50, 0, by_schedule(), ["reserved", "claimed"], id="no bound"),
        pytest.param(3, 0, 0, by_schedule(), ["reserved", "claimed"], id="the first of three"),
        pytest.param(3, 1, 0, by_schedule(), ["reserved", "claimed"], id="the second of three"),
        pytest.param(3, 2, 0, by_schedule(), ["reserved", "claimed", "paused"], id="the last of three pauses it"),
        pytest.param(3, 1, 1, by_schedule(), ["reserved", "claimed", "paused"], id="those being claimed count"),
        pytest.param(3, 3, 0, by_schedule(), ["reserved", "claimed", "skipped", "settled"], id="a fourth of three"),
        pytest.param(
            3, 2, 1, by_schedule(), ["reserved", "claimed", "skipped", "settled"], id="being claimed, too many"
        ),
        pytest.param(3, 3, 0, by_hand(), ["reserved", "claimed"], id="by hand it goes on"),
        pytest.param(3, 2, 0, by_hand(), ["reserved", "claimed"], id="by hand it does not pause"),
        pytest.param(
            0, 0, 0, by_schedule(refused="too long"), ["reserved", "claimed", "skipped", "settled"], id="refused"
        ),
        pytest.param(
            1,
            0,
            0,
            by_schedule(refused="too long"),
            ["reserved", "claimed", "skipped", "settled"],
            id="a refused one is not the last",
        ),
    ],
)
def test_what_a_claim_writes(most: int, had: int, before: int, cause: Cause, kinds: list[str]) -> None:
    state = made(stop_after_runs=most)
    state.runs = had
    names = {
        ae.RunReserved: "reserved",
        ae.RunClaimed: "claimed",
        ae.RunSkipped: "skipped",
        ae.RunSettled: "settled",
        ae.AutomationPaused: "paused",
    }
    written = claim(state, [], "run-7", cause, before)
    assert [names[type(event)] for _, event in written] == kinds
    for channel, event in written:
        own = isinstance(event, ae.RunClaimed | ae.RunSkipped)
        assert channel == ("run/run-7" if own else "automation/automation-1")


@pytest.mark.parametrize(
    ("parts", "given", "started"),
    [
        ({"prompt": {"text": "as written"}}, None, "as written"),
        ({"prompt": {"text": "as written"}}, "filled", "filled"),
        ({"prompt": {"text": "as written"}}, "", ""),
        ({"job": {"job": "main", "input": "as written"}}, None, "as written"),
        ({"job": {"job": "main", "input": "as written"}}, "filled", "filled"),
    ],
)
def test_a_claim_holds_what_it_starts_with(parts: dict[str, Any], given: str | None, started: str) -> None:
    state = made(**parts, budget={"tokens": 7})
    cause = Cause("hook", START + 5, "hook", given, late=True, depth=2, ref="job:job-3", delivery="d-1")
    claimed = next(event for _, event in claim(state, [], "run-7", cause) if isinstance(event, ae.RunClaimed))
    action = (
        claimed.job.input if claimed.job is not None else claimed.prompt.text if claimed.prompt is not None else None
    )
    assert action == started
    assert (claimed.job is None, claimed.prompt is None) == ("job" not in parts, "prompt" not in parts)
    assert claimed == ae.RunClaimed(
        run="run-7",
        automation="automation-1",
        name="often",
        cause="hook",
        due=START + 5,
        by="hook",
        job=claimed.job,
        prompt=claimed.prompt,
        scopes=["drive"],
        late=True,
        depth=2,
        ref="job:job-3",
        delivery="d-1",
        author="token:t",
        budget=e.Budget(tokens=7),
    )


@pytest.mark.parametrize(
    ("own", "title", "expected"),
    [("Mine", "Review what changed", "Mine"), ("", "Review what changed", "Review what changed"), ("", "", "")],
)
def test_a_session_of_a_run_has_the_title_of_the_automation(own: str, title: str, expected: str) -> None:
    """Lists showed the name ("morning-review")."""
    state = made(title=title, prompt=ae.PromptAction(text="x", title=own))
    claimed = next(event for _, event in claim(state, [], "run-7", by_hand()) if isinstance(event, ae.RunClaimed))
    assert claimed.prompt is not None
    assert claimed.prompt.title == expected


# -- which one starts next? ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "runs", "starting", "expected"),
    [
        pytest.param({}, [], (), ([], [], []), id="nothing is open"),
        pytest.param({}, [run(1, "pending")], (), (["run-1"], [], []), id="the only one starts"),
        pytest.param({}, [run(1, "pending")], ("run-1",), ([], [], []), id="it is being started"),
        pytest.param({"overlap": "queue"}, [run(1), run(2, "pending")], (), ([], [], []), id="queue waits"),
        pytest.param(
            {"overlap": "queue"},
            [run(1, "pending"), run(2, "pending")],
            (),
            (["run-1"], [], []),
            id="queue, the older first",
        ),
        pytest.param(
            {"overlap": "queue"},
            [run(1, "pending"), run(2, "pending")],
            ("run-1",),
            ([], [], []),
            id="queue, one begins",
        ),
        pytest.param(
            {"overlap": "queue"}, [run(1, "succeeded"), run(2, "pending")], (), (["run-2"], [], []), id="queue goes on"
        ),
        pytest.param(
            {"overlap": "parallel"},
            [run(1, "pending"), run(2, "pending"), run(3, "pending")],
            (),
            (["run-1", "run-2"], [], []),
            id="two at once",
        ),
        pytest.param(
            {"overlap": "parallel"},
            [run(1), run(2, "pending"), run(3, "pending")],
            (),
            (["run-2"], [], []),
            id="one more",
        ),
        pytest.param({"overlap": "parallel"}, [run(1), run(2), run(3, "pending")], (), ([], [], []), id="no place"),
        pytest.param(
            {"overlap": "parallel", "parallel": 1},
            [run(1), run(2), run(3, "pending")],
            (),
            ([], [], []),
            id="the bound was lowered",
        ),
        pytest.param({"overlap": "cancel"}, [run(1, "pending")], (), (["run-1"], [], []), id="cancel, alone"),
        pytest.param({"overlap": "cancel"}, [run(1)], (), ([], [], []), id="cancel, nothing new"),
        pytest.param(
            {"overlap": "cancel"}, [run(1), run(2, "pending")], (), ([], ["run-1"], []), id="cancel the old one first"
        ),
        pytest.param(
            {"overlap": "cancel"},
            [run(1), run(2, "pending"), run(3, "pending")],
            (),
            ([], ["run-1"], ["run-2"]),
            id="the last one counts",
        ),
        pytest.param(
            {"overlap": "cancel"},
            [run(2, "pending"), run(3, "pending")],
            (),
            (["run-3"], [], ["run-2"]),
            id="cancel, none runs",
        ),
    ],
)
def test_which_run_starts(
    rules: dict[str, Any], runs: list[RunSummary], starting: tuple[str, ...], expected: tuple[list[str], ...]
) -> None:
    found = next_runs(made(**rules), runs, frozenset(starting))
    assert (found.start, found.cancel, found.skip) == expected


@pytest.mark.parametrize(
    ("paused", "failures", "cause", "starts"),
    [
        pytest.param(None, 0, "schedule", True, id="it is on"),
        pytest.param("token:t", 0, "schedule", False, id="a person paused it"),
        pytest.param("token:t", 0, "person", True, id="paused, started by hand"),
        pytest.param("host", 0, "schedule", True, id="the last of its runs"),
        pytest.param("host", 5, "schedule", False, id="it failed too often"),
        pytest.param("host", 4, "schedule", True, id="not yet too often"),
        pytest.param("host", 5, "person", True, id="failed too often, by hand"),
    ],
)
def test_what_was_claimed_before_a_pause(paused: str | None, failures: int, cause: ae.Cause, starts: bool) -> None:
    state = made()
    state.failures = failures
    if paused is not None:
        fold(state, ae.AutomationPaused(paused), START)
    assert bool(next_runs(state, [run(1, "pending", cause)], frozenset()).start) is starts


# -- what is due? ----------------------------------------------------------------------------------------------

LATE = limits.LATE_SECONDS * 1000
HOUR = 60 * MINUTE


@pytest.mark.parametrize(
    ("missed", "limit", "after", "on_time", "late", "lost"),
    [
        pytest.param("last", 10, 1 * HOUR, [1], [], 0, id="at its hour"),
        pytest.param("skip", 10, 1 * HOUR, [1], [], 0, id="skip, at its hour"),
        pytest.param("last", 10, 1 * HOUR + LATE, [1], [], 0, id="just in time"),
        pytest.param("skip", 10, 1 * HOUR + LATE + 1, [], [], 1, id="skip, a moment too late"),
        pytest.param("last", 10, 1 * HOUR + LATE + 1, [], [1], 0, id="last, a moment too late"),
        pytest.param("last", 10, 5 * HOUR, [5], [], 4, id="last: the one on time is it"),
        pytest.param("all", 10, 5 * HOUR, [5], [1, 2, 3, 4], 0, id="all"),
        pytest.param("all", 2, 5 * HOUR, [5], [3, 4], 2, id="all, the last two of them"),
        pytest.param("skip", 10, 5 * HOUR, [5], [], 4, id="skip"),
    ],
)
def test_what_is_due_after_a_while(
    missed: str, limit: int, after: int, on_time: list[int], late: list[int], lost: int
) -> None:
    state = made(schedule={"every": "1h"}, missed=missed, missed_limit=limit)
    causes, events = due_causes(state, START + HOUR, START + after)
    assert [(each.due - START) // HOUR for each in causes if not each.late] == on_time
    assert [(each.due - START) // HOUR for each in causes if each.late] == late
    assert {(each.kind, each.by) for each in causes} <= {("schedule", "automation:automation-1")}
    assert sum(event.count for _, event in events if isinstance(event, ae.RunsMissed)) == lost
    for channel, event in events:
        assert isinstance(event, ae.RunsMissed)
        assert (channel, event.first) == ("automation/automation-1", START + HOUR)
        assert event.last == START + lost * HOUR
        assert repr(missed) in event.reason


def test_a_due_time_has_one_run_also_when_it_comes_again() -> None:
    state = made(schedule=EVERY)
    fold(state, ae.RunReserved("run-1", "schedule", START + MINUTE), START + MINUTE)
    assert due_causes(state, START + MINUTE, START + MINUTE + 1) == ([], [])
    assert next_time(state, START) == START + 2 * MINUTE


@pytest.mark.parametrize(
    ("parts", "off", "due"),
    [
        pytest.param({"schedule": EVERY}, False, START + MINUTE, id="a schedule"),
        pytest.param({"schedule": EVERY}, True, None, id="paused"),
        pytest.param({}, False, None, id="by hand"),
        pytest.param({"stop_at": "2027-01-15T08:00:30"}, False, START + MINUTE // 2, id="by hand, with an end"),
        pytest.param(
            {"schedule": EVERY, "stop_at": "2027-01-15T08:00:30"}, False, START + MINUTE // 2, id="the end is first"
        ),
        pytest.param({"schedule": EVERY, "stop_at": "2027-01-15T08:01"}, False, START + MINUTE, id="both at once"),
        pytest.param({"schedule": EVERY, "stop_at": "2027-01-15T08:02"}, False, START + MINUTE, id="the end is later"),
        pytest.param({"schedule": {"at": "2027-01-15T07:00"}}, False, None, id="it was once"),
        pytest.param(
            {"schedule": {"at": "2027-01-15T09:00", "zone": "Europe/Berlin"}}, False, None, id="now, in Berlin"
        ),
        pytest.param(
            {"schedule": {"at": "2027-01-15T09:01", "zone": "Europe/Berlin"}}, False, START + MINUTE, id="in Berlin"
        ),
    ],
)
def test_when_it_is_looked_at_next(parts: dict[str, Any], off: bool, due: int | None) -> None:
    state = made(**parts)
    state.enabled = not off
    assert next_time(state, START) == due


# -- when does it stop? ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "now", "failures", "more", "words"),
    [
        pytest.param({}, START, 4, 0, "", id="four failures"),
        pytest.param({}, START, 4, 1, "5 runs failed in a row", id="the fifth, not yet written"),
        pytest.param({}, START, 5, 0, "5 runs failed in a row", id="five failures"),
        pytest.param(
            {"stop_after_failures": 1},
            START,
            1,
            0,
            "The last run failed (stop_after_failures). Check it, then turn it back on.",
            id="one failure",
        ),
        pytest.param({"stop_after_failures": 0}, START, 500, 1, "", id="never by failures"),
        pytest.param({"stop_at": "2027-01-15T08:00"}, START - 1, 0, 0, "", id="before its end"),
        pytest.param({"stop_at": "2027-01-15T08:00"}, START, 0, 0, "It ends at 2027-01-15T08:00", id="at its end"),
        pytest.param({"stop_at": "2027-01-15T08:00"}, START, 9, 0, "It ends at", id="the end is told first"),
    ],
)
def test_why_it_pauses_itself(parts: dict[str, Any], now: int, failures: int, more: int, words: str) -> None:
    state = made(**parts)
    state.failures = failures
    found = stop_reason(state, now, more)
    assert found.startswith(words)
    assert bool(found) is bool(words)


@pytest.mark.parametrize(
    ("zone", "stop"),
    [("UTC", START), ("Europe/Berlin", START - 60 * MINUTE), ("America/New_York", START + 300 * MINUTE)],
)
def test_its_end_is_in_the_zone_of_its_schedule(zone: str, stop: int) -> None:
    assert stop_time(made(stop_at="2027-01-15T08:00", schedule={"every": "1m", "zone": zone})) == stop
    assert stop_time(made()) is None


# -- what its events leave -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outcomes", "failures"),
    [
        ([], 0),
        (["failed"], 1),
        (["failed", "failed"], 2),
        (["failed", "succeeded"], 0),
        (["failed", "canceled"], 1),
        (["failed", "interrupted", "failed"], 2),
        (["failed", "skipped", "failed"], 2),
    ],
)
def test_failures_in_a_row(outcomes: list[ae.RunOutcome], failures: int) -> None:
    state = made()
    for outcome in outcomes:
        fold(state, ae.RunSettled("run-1", outcome), START)
    assert state.failures == failures


@pytest.mark.parametrize(
    ("events", "runs"),
    [
        ([ae.RunReserved("run-1", "schedule", START)], 1),
        ([ae.RunReserved("run-1", "person", START)], 0),
        ([ae.RunReserved("run-1", "hook", START), ae.RunSettled("run-1", "skipped")], 0),
        ([ae.RunReserved("run-1", "hook", START), ae.RunSettled("run-1", "failed")], 1),
        ([ae.RunSettled("run-1", "skipped")], 0),
        ([ae.RunReserved("run-1", "files", START), ae.AutomationResumed("t")], 0),
    ],
)
def test_which_runs_count_towards_their_number(events: list[e.Event], runs: int) -> None:
    state = made()
    for event in events:
        fold(state, event, START)
    assert state.runs == runs


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        pytest.param({"schedule": EVERY}, {"schedule": EVERY, "title": "x"}, True, id="its title"),
        pytest.param({"schedule": EVERY}, {"schedule": {"every": "2m"}}, False, id="its schedule"),
        pytest.param({"schedule": EVERY}, {}, False, id="no trigger any more"),
        pytest.param({"schedule": EVERY}, {"hook": {}}, False, id="a hook in its place"),
        pytest.param({"hook": {}}, {"hook": {"per_minute": 2}}, False, id="its hook"),
        pytest.param({"after": {"job": "a"}}, {"after": {"job": "b"}}, False, id="what it comes after"),
    ],
)
def test_an_edit_of_the_trigger_begins_anew(before: dict[str, Any], after: dict[str, Any], kept: bool) -> None:
    state = made(**before)
    fold(state, ae.RunReserved("run-1", "schedule", START + MINUTE), START + MINUTE)
    later = START + 5 * MINUTE
    fold(state, ae.AutomationEdited("other", plan(**after), "token:u", ["jobs"], {"a": 1}), later)
    assert (state.name, state.by, state.scopes, state.meta, state.modified) == (
        "other",
        "token:u",
        ["jobs"],
        {"a": 1},
        later,
    )
    assert (state.since, state.considered) == ((START, START + MINUTE) if kept else (later, later))
    assert bool(state.spans) is kept


def test_ends_that_were_followed_are_remembered_and_bounded() -> None:
    state = made(after={"job": "main"})
    for number in range(500):
        fold(state, ae.RunReserved("run-1", "after", START, f"job:job-{number}"), START)
    assert state.refs[-1] == "job:job-499"
    assert 200 <= len(state.refs) <= 201
