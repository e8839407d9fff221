"""From a trigger to the end of a run: claims, overlap, missed times, life and history."""

import asyncio
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from portico.features.automations import commands as ac
from portico.features.automations import events as ae
from portico.features.automations.commands import RunNamed
from portico.features.automations.decide import Cause
from portico.features.automations.events import Schedule
from portico.features.automations.schedule import next_due
from portico.features.automations.state import RunSummary
from portico.features.usage.prices import source
from portico.kernel import commands as c
from portico.kernel import limits
from portico.kernel.errors import AlreadyExists, BadRequest, Conflict, Forbidden, HomeInUse
from portico.kernel.log.log import NotOwner
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from tests.automation.playing import ME, made, opened, pass_time, plan, settle, until, until_over
from tests.doors.standing import standing
from tests.jobs.playing import make, task
from tests.jobs.test_full_disk import Disk


async def test_a_run_by_hand_is_a_session_with_an_end(open_host: HostOpener, tmp_path: Path) -> None:
    automations = await opened(await open_host(), tmp_path)
    await made(automations, "hello")
    named = await automations.host.do(ac.RunAutomation(automation="hello"), ME)
    run = await until_over(automations, named.run)
    assert (run.status, run.cause, run.by, run.job) == ("succeeded", "person", "token:t", "")
    session = await automations.host.get(run.session)
    assert session.summary.by == f"run:{run.id}"
    assert [turn.message.text for turn in session.state.turns] == ["[[say:done]]"]
    records = await automations.host.log.read(f"run/{run.id}")
    assert [type(record.event) for record in records] == [ae.RunClaimed, ae.RunStarted, ae.RunEnded]


async def test_a_schedule_starts_at_its_time(open_host: HostOpener, tmp_path: Path, clock: FakeClock) -> None:
    automations = await opened(await open_host(clock=clock), tmp_path, jobs=True)
    await made(automations, "often", schedule={"every": "10m"}, job={"job": "main"})
    assert automations.store.runs == {}
    for number in range(1, 4):
        await pass_time(clock, 600)
        runs = await settle(automations, number)
        assert runs[-1].due == int(clock.time() * 1000)
    assert [(run.status, run.cause, bool(run.job)) for run in runs] == [("succeeded", "schedule", True)] * 3


@pytest.mark.parametrize(
    ("missed", "limit", "ran", "lost"), [("skip", 10, 0, 6), ("last", 10, 1, 5), ("all", 10, 6, 0), ("all", 2, 2, 4)]
)
async def test_what_was_missed(
    open_host: HostOpener, tmp_path: Path, clock: FakeClock, missed: str, limit: int, ran: int, lost: int
) -> None:
    automations = await opened(await open_host(clock=clock), tmp_path)
    rules: dict[str, Any] = {"missed": missed, "missed_limit": limit, "overlap": "queue"}
    answer = await made(automations, "often", schedule={"every": "10m"}, **rules)
    answer_considered = automations.store.get("often").considered
    await automations.close()
    clock.advance(6 * 600 + 120)
    automations = await opened(await open_host(clock=clock), tmp_path)
    await pass_time(clock, 0.01)
    await until(automations, lambda _: automations.store.get("often").considered > answer_considered)
    runs = await settle(automations, ran)
    assert [run.late for run in runs] == [True] * ran
    events = [record.event for record in await automations.host.log.read(f"automation/{answer.automation}")]
    assert sum(each.count for each in events if isinstance(each, ae.RunsMissed)) == lost
    assert sum(each.count for each in automations.store.get("often").missed) == lost


async def test_catch_up_runs_wait_for_each_other_oldest_first(
    open_host: HostOpener, tmp_path: Path, clock: FakeClock
) -> None:
    """With the default overlap all but the first were skipped, and so was the one that was due on time."""
    automations = await opened(await open_host(clock=clock), tmp_path)
    await made(automations, "often", schedule={"every": "10m"}, missed="all")
    await automations.close()
    clock.advance(4 * 600)
    automations = await opened(await open_host(clock=clock), tmp_path)
    await pass_time(clock, 0.01)
    runs = await settle(automations, 4)
    assert [(run.status, run.late) for run in runs] == [("succeeded", True)] * 3 + [("succeeded", False)]
    assert [run.due for run in runs] == sorted(run.due for run in runs)
    assert [run.started for run in runs] == sorted(run.started or 0 for run in runs)


@pytest.mark.parametrize(
    ("trigger", "input", "refused"),
    [
        ({"schedule": {"every": "10m"}}, "", True),
        ({"hook": {}}, "", True),
        ({"hook": {}}, "{{payload}}", False),
        ({"schedule": {"every": "10m"}}, "the sea", False),
        ({}, "", False),
    ],
)
async def test_a_job_without_its_input_is_refused(
    open_host: HostOpener, tmp_path: Path, trigger: dict[str, Any], input: str, refused: bool
) -> None:
    """It was accepted, and each of its runs failed. Who starts it by hand gives the input then."""
    automations = await opened(await open_host(), tmp_path, jobs=True)
    assert automations.jobs is not None
    await automations.jobs.install(make({"it": task("[[say:ok]] $user-input")}))
    action = {"job": "main", "cwd": str(tmp_path), **({"input": input} if input else {})}
    if refused:
        with pytest.raises(BadRequest, match="needs input from its user"):
            await made(automations, "it", job=action, **trigger)
    else:
        await made(automations, "it", job=action, **trigger)


def _resting(runs: list[RunSummary], overlap: str, count: int = 0) -> bool:
    """Nothing is about to start."""
    running = sum(run.status == "running" for run in runs)
    pending = sum(run.status == "pending" for run in runs)
    return len(runs) >= count and (not pending or (overlap == "queue" and running == 1))


@pytest.mark.parametrize(
    ("overlap", "statuses"),
    [
        ("skip", ["canceled", "skipped", "skipped"]),
        ("queue", ["canceled", "canceled", "canceled"]),
        ("cancel", ["canceled", "canceled", "canceled"]),
        ("parallel", ["canceled", "canceled", "skipped"]),
    ],
)
async def test_overlap(
    open_host: HostOpener, tmp_path: Path, clock: FakeClock, overlap: str, statuses: list[str]
) -> None:
    automations = await opened(await open_host(clock=clock), tmp_path)
    prompt = {"text": "[[hang]]", "agent": "scripted"}
    await made(automations, "slow", schedule={"every": "10m"}, prompt=prompt, overlap=overlap)
    for number in range(1, 4):
        await pass_time(clock, 600)
        await until(automations, partial(_resting, overlap=overlap, count=number))
    for _ in range(3):
        for run in [run for run in automations.store.runs.values() if run.status == "running"]:
            await automations.host.do(ac.CancelRun(run=run.id), ME)
            await until_over(automations, run.id)
        await until(automations, lambda runs: _resting(runs, overlap))
    assert [run.status for run in automations.store.runs.values()] == statuses
    assert all(run.reason for run in automations.store.runs.values() if run.status == "skipped")


async def test_it_stops_itself(open_host: HostOpener, tmp_path: Path, clock: FakeClock) -> None:
    automations = await opened(await open_host(clock=clock), tmp_path)
    prompt = {"text": "[[crash]]", "agent": "scripted"}
    await made(automations, "bad", schedule={"every": "1h"}, prompt=prompt, stop_after_failures=2)
    await made(automations, "twice", schedule={"every": "1h"}, stop_after_runs=2)
    await made(automations, "soon", schedule={"every": "1h"}, stop_at="2023-11-14T23:30:00+00:00")
    for hours in range(1, 5):
        await pass_time(clock, 3600)
        await settle(automations, min(2 * hours + (hours > 0), 5))
    found = {state.name: (state.enabled, state.reason) for state in automations.store.automations.values()}
    assert {name: enabled for name, (enabled, _) in found.items()} == dict.fromkeys(("bad", "twice", "soon"), False)
    assert "stop_after_failures" in found["bad"][1]
    assert "stop_after_runs" in found["twice"][1]
    assert "stop_at" in found["soon"][1]
    counts = [run.name for run in automations.store.runs.values()]
    assert (counts.count("bad"), counts.count("twice"), counts.count("soon")) == (2, 2, 1)


async def test_pause_resume_edit_and_delete(open_host: HostOpener, tmp_path: Path, clock: FakeClock) -> None:
    automations = await opened(await open_host(clock=clock), tmp_path)
    do = automations.host.do
    await made(automations, "often", schedule={"every": "1h"})
    with pytest.raises(AlreadyExists):
        await made(automations, "often")
    await do(ac.PauseAutomation(automation="often"), ME)
    await pass_time(clock, 7200)
    assert automations.store.runs == {}
    await do(ac.ResumeAutomation(automation="often"), ME)
    assert automations.store.runs == {}, "what was due meanwhile is not made up for"
    await pass_time(clock, 3600)
    await settle(automations, 1)
    await do(ac.EditAutomation(automation="often", name="seldom"), ME)
    assert automations.store.get("seldom").name == "seldom"
    await do(ac.DeleteAutomation(automation="seldom"), ME)
    assert (automations.store.automations, automations.store.runs) == ({}, {})
    await pass_time(clock, 7200)
    automations = await opened(await open_host(clock=clock), tmp_path)
    assert (automations.store.automations, automations.store.runs) == ({}, {})


async def test_after_another_one(open_host: HostOpener, tmp_path: Path) -> None:
    automations = await opened(await open_host(), tmp_path, jobs=True)
    await made(automations, "first", job={"job": "main"})
    await made(automations, "second", after={"automation": "first", "outcomes": ["succeeded"]})
    await made(automations, "never", after={"automation": "first", "outcomes": ["failed"]})
    await made(automations, "third", after={"job": "main"})
    await automations.host.do(ac.RunAutomation(automation="first"), ME)
    runs = await settle(automations, 3)
    assert sorted((run.name, run.depth) for run in runs) == [("first", 0), ("second", 1), ("third", 1)]


async def test_what_is_too_long_with_its_data_is_in_the_history(open_host: HostOpener, tmp_path: Path) -> None:
    """The run before it got no end: nothing of that automation ran any more."""
    automations = await opened(await open_host(), tmp_path)
    await made(automations, "first")
    text = "{{after}}" + "x" * (limits.MESSAGE_BYTES // 2)
    await made(automations, "second", after={"automation": "first"}, prompt={"text": text, "agent": "scripted"})
    await automations.host.do(ac.RunAutomation(automation="first"), ME)
    runs = await settle(automations, 2)
    assert [(run.name, run.status) for run in runs] == [("first", "succeeded"), ("second", "skipped")]
    assert "more than" in runs[-1].reason


async def test_a_loop_ends(open_host: HostOpener, tmp_path: Path) -> None:
    """Two automations that start each other."""
    automations = await opened(await open_host(), tmp_path)
    await made(automations, "ping", after={"automation": "pong"})
    await made(automations, "pong", after={"automation": "ping"})
    await automations.host.do(ac.RunAutomation(automation="ping"), ME)
    runs = await settle(automations, 10)
    assert [run.depth for run in runs] == list(range(10))
    assert [run.status for run in runs] == ["succeeded"] * 9 + ["skipped"]
    assert "loop" in runs[-1].reason


async def test_the_clock_is_set(open_host: HostOpener, tmp_path: Path, clock: FakeClock) -> None:
    """Ahead by an hour: the time that was passed over is made up for once. Back again: nothing runs twice."""
    automations = await opened(await open_host(clock=clock), tmp_path)
    await made(automations, "often", schedule={"every": "10m"}, missed="all", overlap="queue")
    clock.set_ahead = 1800 + 120
    await pass_time(clock, 11)
    runs = await settle(automations, 3)
    clock.set_ahead = 0
    await pass_time(clock, 11)
    for _ in range(6):
        await pass_time(clock, 600)
        await asyncio.sleep(0.02)
    runs = await settle(automations, 6)
    dues = [run.due for run in runs]
    assert len(dues) == len(set(dues)) == 6


class Handed:
    """A lease that another host may hold."""

    def __init__(self) -> None:
        self.here = True

    def held(self) -> bool:
        return self.here


async def test_the_host_with_the_lease_claims_and_starts(
    open_host: HostOpener, tmp_path: Path, clock: FakeClock
) -> None:
    lease = Handed()
    automations = await opened(await open_host(clock=clock), tmp_path, lease=lease)
    await made(automations, "often", schedule={"every": "10m"}, missed="all", overlap="queue")
    lease.here = False
    await pass_time(clock, 1260)
    assert automations.store.runs == {}
    with pytest.raises(NotOwner):
        await made(automations, "late", schedule={"every": "10m"})
    lease.here = True
    automations.begin()
    await pass_time(clock, 1)
    runs = await settle(automations, 2)
    assert [run.due for run in runs] == [int((1_700_000_000 + 600 * n) * 1000) for n in (1, 2)]


async def test_a_second_host_on_one_log_does_not_start(tmp_path: Path) -> None:
    async with standing(tmp_path):
        with pytest.raises(HomeInUse):
            async with standing(tmp_path):
                pass


@pytest.mark.parametrize(
    ("scopes", "parts", "allowed"),
    [
        ({"jobs"}, {"job": {"job": "main"}}, True),
        ({"jobs"}, {"job": {"job": "main", "cwd": "/"}}, False),
        ({"jobs", "terminal"}, {"job": {"job": "main", "cwd": "/"}}, True),
        ({"jobs"}, {}, False),
        ({"jobs", "drive"}, {}, True),
        ({"jobs", "drive"}, {"prompt": {"text": "x", "agent": "scripted", "config": {"approvals": "allow"}}}, False),
        ({"jobs", "drive"}, {"prompt": {"text": "x", "cwd": "/"}}, False),
        (
            {"jobs", "drive", "approve"},
            {"prompt": {"text": "x", "agent": "scripted", "config": {"approvals": "allow"}}},
            True,
        ),
    ],
)
async def test_no_token_gains_by_an_automation(
    open_host: HostOpener, tmp_path: Path, scopes: set[str], parts: dict[str, Any], allowed: bool
) -> None:
    automations = await opened(await open_host(), tmp_path, jobs=True)
    caller = c.Caller("x", "x", frozenset(scopes))
    if allowed:
        await made(automations, "mine", caller, **parts)
    else:
        with pytest.raises(Forbidden):
            await made(automations, "mine", caller, **parts)
        await made(automations, "mine", **parts)
        for command in (ac.RunAutomation(automation="mine"), ac.EditAutomation(automation="mine", name="x")):
            with pytest.raises(Forbidden):
                await automations.host.do(command, caller)


async def test_a_folder_elsewhere_is_not_watched_for_everybody(open_host: HostOpener, tmp_path: Path) -> None:
    """A prompt is told the names of the files that changed."""
    automations = await opened(await open_host(), tmp_path)
    elsewhere = tmp_path.with_name(f"{tmp_path.name}-elsewhere")
    elsewhere.mkdir()
    plan: dict[str, Any] = {"files": {"folder": str(elsewhere)}, "prompt": {"text": "{{files}}", "agent": "scripted"}}
    driver = c.Caller("x", "x", frozenset({"jobs", "drive"}))
    with pytest.raises(Forbidden) as refused:
        await made(automations, "mine", driver, **plan)
    assert refused.value.field == "files.folder"
    await made(automations, "mine", c.Caller("y", "y", frozenset({"jobs", "drive", "approve"})), **plan)
    with pytest.raises(Forbidden):
        await automations.host.do(ac.EditAutomation(automation="mine", name="x"), driver)


async def test_history_is_kept_as_long_as_it_says(open_host: HostOpener, tmp_path: Path, clock: FakeClock) -> None:
    automations = await opened(await open_host(clock=clock), tmp_path)
    await made(automations, "often", schedule={"every": "1h"}, keep_runs=2, keep_days=1)
    for number in range(1, 5):
        await pass_time(clock, 3600)
        runs = await settle(automations, number)
    assert await automations.delete_old() == 2
    assert list(automations.store.runs.values()) == runs[-2:]
    assert await automations.host.log.read(f"run/{runs[0].id}") == []
    await automations.host.do(ac.PauseAutomation(automation="often"), ME)
    clock.advance(86400 * 2)
    assert await automations.delete_old() == 2
    automations = await opened(await open_host(clock=clock), tmp_path)
    assert automations.store.runs == {}


async def test_a_run_by_hand_is_refused_while_one_is_open(open_host: HostOpener, tmp_path: Path) -> None:
    automations = await opened(await open_host(), tmp_path)
    await made(automations, "slow", prompt={"text": "[[hang]]", "agent": "scripted"})
    await automations.host.do(ac.RunAutomation(automation="slow"), ME)
    with pytest.raises(Conflict, match="overlap"):
        await automations.host.do(ac.RunAutomation(automation="slow"), ME)


async def test_changed_files_start_one_run(open_host: HostOpener, tmp_path: Path) -> None:
    watched = tmp_path / "in"
    watched.mkdir()
    automations = await opened(await open_host(), tmp_path)
    prompt = {"text": "[[say:x]] look at {{files}}", "agent": "scripted"}
    await made(automations, "inbox", files={"folder": str(watched), "globs": ["*.txt"], "quiet": 1.0}, prompt=prompt)
    await automations.files.ready("inbox")
    for name in ("a.txt", "b.txt", "c.log"):
        (watched / name).write_text("x")
    (run,) = await settle(automations, 1)
    session = await automations.host.get(run.session)
    text = session.state.turns[0].message.text
    assert '"a.txt"' in text
    assert '"b.txt"' in text
    assert "c.log" not in text


async def test_a_full_disk_loses_no_start(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that changed while nothing could be written: their run was never claimed."""
    host = await open_host()
    automations, disk = await opened(host, tmp_path), Disk(host, monkeypatch)
    await made(automations, "it", files={"folder": str(tmp_path), "globs": ["*.txt"], "quiet": 0.05})
    await automations.files.ready("it")
    asked, claim = asyncio.Event(), automations.claim

    async def heard(*arguments: Any) -> str:
        asked.set()
        return await claim(*arguments)

    monkeypatch.setattr(automations, "claim", heard)
    async with disk.full():
        (tmp_path / "a.txt").write_text("x")
        await asyncio.wait_for(asked.wait(), 30)
    (run,) = await settle(automations, 1)
    assert (run.status, run.cause) == ("succeeded", "files")


async def test_a_run_does_not_follow_from_its_own_changes(open_host: HostOpener, tmp_path: Path) -> None:
    """An automation that writes where it watches started itself again, six times a minute and for ever."""
    rules = (
        "rules: [{match: '', steps: [{do: write, path: out.txt, text: '{prompt}', ask: false}, {do: say, text: x}]}]"
    )
    automations = await opened(await open_host(rules=rules), tmp_path)
    watched = tmp_path / "in"
    watched.mkdir()
    files = {"folder": str(watched), "globs": ["*.txt"], "quiet": 0.5}
    prompt = {"text": "look at {{files}}", "agent": "scripted", "cwd": str(watched)}
    await made(automations, "tidy", files=files, prompt=prompt)
    await automations.files.ready("tidy")
    (watched / "a.txt").write_text("x")
    runs = await settle(automations, 2)
    assert [(run.status, run.cause) for run in runs] == [("succeeded", "files"), ("skipped", "files")]
    assert runs[1].reason.startswith(f"{runs[0].id} was not over when they changed")


ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")


async def test_a_year_of_sundays(open_host: HostOpener, tmp_path: Path) -> None:
    """The clock changes on Sundays. Each of them has exactly one run in each zone, with a restart every month."""
    clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
    automations = await opened(await open_host(clock=clock), tmp_path)
    for zone in ZONES:
        schedule = {"cron": "30 2 * * SUN", "zone": zone}
        await made(automations, zone.lower().replace("/", "-").replace("_", "-"), schedule=schedule, keep_runs=100)
    expected = 0
    for day in range(365):
        await pass_time(clock, 86_400)
        before = int(clock.time() * 1000)
        expected += sum(
            due < before <= due + 86_400_000
            for zone in ZONES
            if (due := next_due(Schedule(cron="30 2 * * SUN", zone=zone), before - 86_400_000 - 1, 0)) is not None
        )
        await settle(automations, expected)
        if day % 30 == 29:
            await automations.close()
            automations = await opened(await open_host(clock=clock), tmp_path)
    runs = await settle(automations, 156)
    assert Counter(run.name for run in runs) == Counter(
        {"europe-berlin": 52, "america-new-york": 52, "australia-lord-howe": 52}
    )
    assert {run.status for run in runs} == {"succeeded"}
    assert len({(run.name, run.due) for run in runs}) == 156


async def test_a_run_tells_what_it_used(open_host: HostOpener, tmp_path: Path) -> None:
    """What nobody tells the price of is unknown, never nothing."""
    rules = """
rules:
  - {match: priced, steps: [{do: usage, input: 5, output: 7, cost: 0.25}, {do: say, text: x}]}
  - {match: plain, steps: [{do: usage, input: 5, output: 7}, {do: say, text: x}]}
  - {match: nothing, steps: [{do: say, text: x}]}
"""
    automations = await opened(await open_host(rules=rules), tmp_path)
    found = {}
    for text in ("priced", "plain", "nothing"):
        prompt = {"text": text, "agent": "scripted", "model": "gpt-5-mini" if text == "priced" else "claude-haiku-4.5"}
        await made(automations, text, prompt=prompt)
        named = await automations.host.do(ac.RunAutomation(automation=text), ME)
        run = await until_over(automations, named.run)
        found[text] = (run.input, run.output, run.cost is not None, run.estimated)
    estimated = bool(source())
    assert found == {
        "priced": (5, 7, True, False),
        "plain": (5, 7, estimated, estimated),
        "nothing": (0, 0, False, False),
    }


async def test_a_run_outlives_its_automation(open_host: HostOpener, tmp_path: Path, clock: FakeClock) -> None:
    """Deleted while a run goes on: the run ends, also over a restart, and goes with the rest of the history."""
    automations = await opened(await open_host(clock=clock), tmp_path)
    await made(automations, "slow", prompt={"text": "[[hang]]", "agent": "scripted"})
    named = await automations.host.do(ac.RunAutomation(automation="slow"), ME)
    await until(automations, lambda runs: runs[0].status == "running")
    await automations.host.do(ac.DeleteAutomation(automation="slow"), ME)
    assert automations.store.run(named.run).open
    await automations.close()
    automations = await opened(await open_host(clock=clock), tmp_path)
    await until_over(automations, named.run)
    assert await automations.delete_old() == 0, "whoever reads it sees how it ended"
    ends = [record.event for record in await automations.host.log.read(f"run/{named.run}")][-1:]
    assert [event.outcome for event in ends if isinstance(event, ae.RunEnded)] == ["interrupted"]
    clock.advance(61)
    assert await automations.delete_old() == 1
    assert automations.store.runs == {}
    assert await automations.host.log.read(f"run/{named.run}") == []


@pytest.mark.parametrize("restart", [False, True])
async def test_what_is_being_started_when_its_automation_is_deleted_is_a_run_like_any_other(
    open_host: HostOpener, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, restart: bool
) -> None:
    """It was skipped and forgotten, and started its session all the same; a claim on its way was open for ever."""
    automations = await opened(await open_host(clock=clock), tmp_path)
    named = await made(automations, "late", overlap="parallel", parallel=1)
    state = automations.store.get("late")
    starting, go = asyncio.Event(), asyncio.Event()
    start = automations.host.do

    async def slow(command: c.Command, caller: c.Caller) -> Any:
        if isinstance(command, c.StartSession):
            starting.set()
            await go.wait()
        return await start(command, caller)

    monkeypatch.setattr(automations.host, "do", slow)
    first: RunNamed = await start(ac.RunAutomation(automation="late"), ME)
    await starting.wait()
    await start(ac.EditAutomation(automation="late", plan=plan(overlap="queue")), ME)
    second: RunNamed = await start(ac.RunAutomation(automation="late"), ME)
    claims = [automations.claim(state, Cause("person", 0, "me")) for _ in range(2)]
    third = asyncio.create_task(claims[0])
    await asyncio.sleep(0)
    deleting = asyncio.create_task(start(ac.DeleteAutomation(automation="late"), ME))
    await asyncio.sleep(0)
    fourth = await claims[1]
    await deleting
    if restart:
        await automations.close()
        monkeypatch.undo()
        automations = await opened(await open_host(clock=clock), tmp_path)
    go.set()
    assert (await until_over(automations, first.run)).status == "succeeded"
    assert len(automations.host.list()) == 1
    found = {run.id: (run.status, run.reason) for run in automations.store.runs.values() if run.id != first.run}
    told = ("skipped", "The automation was deleted.")
    assert found in ({}, {fourth: told}), (second, await third)
    for run in (first.run, second.run, await third, fourth):
        kinds = [type(record.event).__name__ for record in await automations.host.log.read(f"run/{run}")]
        assert kinds in ([], ["RunClaimed", "RunSkipped"], ["RunClaimed", "RunStarted", "RunEnded"])
    assert named.automation not in automations.store.automations


async def test_stop_after_runs_counts_what_is_made_up_for(
    open_host: HostOpener, tmp_path: Path, clock: FakeClock
) -> None:
    automations = await opened(await open_host(clock=clock), tmp_path)
    rules: dict[str, Any] = {"missed": "all", "overlap": "queue", "stop_after_runs": 2}
    await made(automations, "often", schedule={"every": "10m"}, **rules)
    await automations.close()
    clock.advance(6 * 600 + 120)
    automations = await opened(await open_host(clock=clock), tmp_path)
    runs = await settle(automations, 6)
    assert [run.status for run in runs] == ["succeeded"] * 2 + ["skipped"] * 4
    state = automations.store.get("often")
    assert (state.enabled, state.runs) == (False, 2)
