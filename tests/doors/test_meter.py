"""The figures for Prometheus: each committed event counts once, in the right place."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from portico.doors.ops import render
from portico.kernel import events as e
from portico.kernel.commits import BUCKETS, Commits
from portico.kernel.events import ErrorInfo, Event, Record
from portico.server.meter import Meter

CHANNEL = "session/s1"


def new_meter() -> Meter:
    """One that is told what was committed by the test."""
    log: Any = SimpleNamespace(on_commit=lambda listener: None)
    host: Any = SimpleNamespace(commits=Commits(log))
    return Meter(host)


def metering(*events: Event, channel: str = CHANNEL) -> dict[str, dict[str, float]]:
    meter = new_meter()
    count(meter, *events, channel=channel)
    return {name: values for name, _, _, values in meter.metrics()}


def count(meter: Meter, *events: Event, channel: str = CHANNEL) -> None:
    now = int(time.time() * 1000)
    for number, event in enumerate(events, 1):
        meter._event(Record(number, channel, number, now, b"", event))


def usage(turn: str, input: int, output: int, cached: int = 0, cost: float = 0.0, *, total: bool = False) -> Event:
    return e.UsageReported(turn=turn, input=input, output=output, cached=cached, cost=cost, total=total)


@pytest.mark.parametrize(
    ("events", "name", "values"),
    [
        ([], "portico_turns_total", {}),
        ([e.TurnEnded(turn="t1", outcome="completed")], "portico_turns_total", {'outcome="completed"': 1}),
        (
            [
                e.TurnEnded(turn="t1", outcome="completed"),
                e.TurnEnded(turn="t2", outcome="failed", error=ErrorInfo("agent_failed", "no")),
                e.TurnEnded(turn="t3", outcome="completed"),
            ],
            "portico_turns_total",
            {'outcome="completed"': 2, 'outcome="failed"': 1},
        ),
        (
            [
                e.ToolEnded(turn="t1", call="c1", ok=True),
                e.ToolEnded(turn="t1", call="c2", ok=False),
                e.ToolEnded(turn="t1", call="c3", ok=True),
            ],
            "portico_tool_calls_total",
            {'ok="false"': 1, 'ok="true"': 2},
        ),
        ([usage("t1", 10, 5, 2)], "portico_tokens_total", {'kind="cached"': 2, 'kind="input"': 10, 'kind="output"': 5}),
        ([usage("t1", 10, 5), usage("t1", 3, 1)], "portico_tokens_total", {'kind="input"': 13, 'kind="output"': 6}),
        (
            [usage("t1", 10, 5, total=True), usage("t1", 13, 6, total=True)],
            "portico_tokens_total",
            {'kind="input"': 13, 'kind="output"': 6},
        ),
        (
            [usage("t1", 10, 5, total=True), usage("t1", 4, 9, total=True)],
            "portico_tokens_total",
            {'kind="input"': 10, 'kind="output"': 9},
        ),
        (
            [usage("t1", 10, 5, total=True), usage("t2", 10, 5, total=True)],
            "portico_tokens_total",
            {'kind="input"': 20, 'kind="output"': 10},
        ),
        ([usage("t1", 1, 1, cost=0.5), usage("t1", 1, 1, cost=0.25)], "portico_cost_total", {"": 0.75}),
        (
            [usage("t1", 1, 1, cost=0.5, total=True), usage("t1", 1, 1, cost=0.75, total=True)],
            "portico_cost_total",
            {"": 0.75},
        ),
    ],
    ids=[
        "nothing",
        "a turn",
        "turns by outcome",
        "calls",
        "tokens",
        "tokens are added",
        "a total counts once",
        "a total that shrinks takes nothing back",
        "totals of two turns",
        "cost is added",
        "a total cost counts once",
    ],
)
def test_what_is_counted(events: list[Event], name: str, values: dict[str, float]) -> None:
    found = metering(*events)[name]
    assert {label: count for label, count in found.items() if count or not label} == values


ASKED = e.ApprovalAsked(
    turn="t1", call="c1", approval="a1", tool="shell", title="", kind="shell", input="", expires=0, options=[]
)


def said(allowed: bool, by: str, option: str | None = "once") -> Event:
    return e.ApprovalAnswered(turn="t1", approval="a1", allowed=allowed, by=by, option=option)


@pytest.mark.parametrize(
    ("events", "waiting", "answers"),
    [
        ([ASKED], 1, {}),
        ([ASKED, said(True, "me")], 0, {'answer="allowed"': 1}),
        ([ASKED, said(False, "me")], 0, {'answer="denied"': 1}),
        (
            [ASKED, said(False, "timeout")],
            0,
            {'answer="timeout"': 1},
        ),
        ([ASKED, e.TurnEnded(turn="t1", outcome="cancelled")], 0, {}),
        ([ASKED, said(False, "token:me", None)], 0, {}),
        ([ASKED, e.TurnEnded(turn="t2", outcome="cancelled")], 1, {}),
    ],
    ids=[
        "asked",
        "allowed",
        "denied",
        "nobody came",
        "its turn ended",
        "cancelled with its turn",
        "another turn ended",
    ],
)
def test_approvals_wait_until_they_are_answered(events: list[Event], waiting: int, answers: dict[str, float]) -> None:
    found = metering(*events)
    assert found["portico_approvals_waiting"] == {"": waiting}
    assert found["portico_approvals_total"] == answers


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [
        (0.0, "0.001"),
        (0.001, "0.001"),
        (0.0011, "0.0025"),
        (0.2, "0.25"),
        (2.5, "2.5"),
        (60.0, "+Inf"),
        (-5.0, "0.001"),
    ],
)
def test_a_commit_falls_into_the_bucket_of_its_time(seconds: float, bucket: str) -> None:
    meter = new_meter()
    meter._commits.observe(seconds)
    found = {name: values for name, _, _, values in meter.metrics()}
    counted = found["portico_commit_seconds_bucket"]
    assert next(label for label, count in counted.items() if count) == f'le="{bucket}"'
    assert list(counted) == [f'le="{bound}"' for bound in (*BUCKETS, "+Inf")]
    assert counted['le="+Inf"'] == 1, "each bucket holds those before it"
    assert found["portico_commit_seconds_count"] == {"": 1}
    assert found["portico_commit_seconds_sum"] == {"": max(0.0, seconds)}


def test_a_failed_turn_is_a_line_of_the_log_without_the_agents_words(caplog: pytest.LogCaptureFixture) -> None:
    metering(e.TurnEnded(turn="t1", outcome="failed", error=ErrorInfo("agent_failed", "what people wrote")))
    assert "agent_failed" in caplog.text
    assert "what people wrote" not in caplog.text


ABOUT_B = ("# HELP b W.", "# TYPE b gauge")


@pytest.mark.parametrize(
    ("metric", "lines"),
    [
        (("a_total", "counter", "Words.", {"": 3}), ["# HELP a_total Words.", "# TYPE a_total counter", "a_total 3"]),
        (
            ("b", "gauge", "W.", {'x="1"': 1.5, 'x="2"': 0}),
            ["# HELP b W.", "# TYPE b gauge", 'b{x="1"} 1.5', 'b{x="2"} 0'],
        ),
        (("c", "gauge", "W.", {}), ["# HELP c W.", "# TYPE c gauge"]),
        (("d", "gauge", "W.", {"": 0.1234567}), ["# HELP d W.", "# TYPE d gauge", "d 0.123457"]),
    ],
    ids=["plain", "by label", "empty", "rounded"],
)
def test_a_figure_as_prometheus_reads_it(metric: Any, lines: list[str]) -> None:
    assert render([metric]) == "\n".join(lines) + "\n"
