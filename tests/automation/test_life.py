"""How an automation ends, waits and says why: whatever its trigger is, and however much is queued."""

import hashlib
import hmac
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from portico.features.automations import commands as ac
from portico.features.automations.commands import RunNamed
from portico.features.automations.listing import info_of
from portico.kernel.errors import Conflict
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from tests.automation.playing import ME, made, opened, pass_time, settle, until, until_over
from tests.jobs.playing import failing, make

TRIGGERS: list[dict[str, Any]] = [
    {"schedule": {"every": "2h"}},
    {"hook": {}},
    {"files": {"folder": "."}},
    {"after": {"automation": "other"}},
    {},
]


@pytest.mark.parametrize("trigger", TRIGGERS, ids=lambda each: next(iter(each), "none"))
async def test_every_kind_ends_at_its_date(
    open_host: HostOpener, tmp_path: Path, clock: FakeClock, trigger: dict[str, Any]
) -> None:
    """`stop_at` ended schedules only: a hook went on for ever."""
    if "files" in trigger:
        trigger = {"files": {"folder": str(tmp_path)}}
    automations = await opened(await open_host(clock=clock), tmp_path)
    await made(automations, "soon", **trigger, stop_at="2023-11-14T23:30:00+00:00")
    state = automations.store.get("soon")
    assert info_of(automations, state).next == [], "its end is no time at which it starts"
    assert state.enabled
    await pass_time(clock, 3 * 3600)
    await until(automations, lambda _: not state.enabled)
    assert (state.stopped, automations.store.runs) == (True, {})
    assert "stop_at" in state.reason
    await automations.host.do(ac.ResumeAutomation(automation="soon"), ME)
    await until(automations, lambda _: not state.enabled)


def github(secret: str, body: bytes) -> dict[str, str]:
    return {"x-hub-signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}


async def test_what_is_queued_waits_when_it_has_failed_too_often(open_host: HostOpener, tmp_path: Path) -> None:
    """All of the queue failed, one after the other, in an automation that had stopped itself."""
    automations = await opened(await open_host(), tmp_path)
    made_hook = await made(
        automations,
        "bad",
        hook={},
        prompt={"text": "[[crash]]", "agent": "scripted"},
        overlap="queue",
        stop_after_failures=2,
    )
    for number in range(5):
        body = b'{"n": %d}' % number
        await automations.deliver("bad", github(made_hook.secret, body), body)
    state = automations.store.get("bad")
    await until(automations, lambda _: not state.enabled)
    await until(automations, lambda runs: [run.status for run in runs].count("failed") == 2)
    assert [run.status for run in automations.store.runs.values()] == ["failed"] * 2 + ["pending"] * 3
    by_hand: RunNamed = await automations.host.do(ac.RunAutomation(automation="bad"), ME)
    await until_over(automations, by_hand.run)
    assert [run.status for run in automations.store.runs.values()].count("pending") == 3, "a person needs no resume"
    await automations.close()
    automations = await opened(await open_host(), tmp_path)
    assert [run.status for run in automations.store.runs.values()].count("pending") == 3
    plan = replace(automations.store.get("bad").plan, stop_after_failures=0)
    await automations.host.do(ac.EditAutomation(automation="bad", plan=plan), ME)
    await automations.host.do(ac.ResumeAutomation(automation="bad"), ME)
    assert [run.status for run in await settle(automations, 6)] == ["failed"] * 6


async def test_a_paused_queue_goes_on_at_the_resume(open_host: HostOpener, tmp_path: Path) -> None:
    automations = await opened(await open_host(), tmp_path)
    hook = await made(automations, "slow", hook={}, prompt={"text": "[[hang]]", "agent": "scripted"}, overlap="queue")
    for number in range(3):
        body = b'{"n": %d}' % number
        await automations.deliver("slow", github(hook.secret, body), body)
    runs = await until(automations, lambda runs: [run.status for run in runs] == ["running", "pending", "pending"])
    do = automations.host.do
    await do(ac.PauseAutomation(automation="slow"), ME)
    await do(ac.CancelRun(run=runs[0].id), ME)
    await until_over(automations, runs[0].id)
    assert [run.status for run in runs] == ["canceled", "pending", "pending"]
    await do(ac.CancelRun(run=runs[1].id), ME)
    assert runs[1].status == "skipped", "what waits can be canceled"
    await do(ac.ResumeAutomation(automation="slow"), ME)
    await until(automations, lambda _: runs[2].status == "running")


async def test_the_last_of_a_number_of_runs_is_not_held(open_host: HostOpener, tmp_path: Path) -> None:
    automations = await opened(await open_host(), tmp_path)
    hook = await made(automations, "thrice", hook={}, overlap="queue", stop_after_runs=3)
    for number in range(3):
        body = b'{"n": %d}' % number
        await automations.deliver("thrice", github(hook.secret, body), body)
    assert [run.status for run in await settle(automations, 3)] == ["succeeded"] * 3
    with pytest.raises(Conflict, match="stop_after_runs"):
        await automations.deliver("thrice", github(hook.secret, b"[]"), b"[]")


async def test_a_number_of_runs_counts_from_when_it_is_set(
    open_host: HostOpener, tmp_path: Path, clock: FakeClock
) -> None:
    """AHP says so of `afterRuns`; an automation with a past was over at once."""
    automations = await opened(await open_host(clock=clock), tmp_path)
    await made(automations, "often", schedule={"every": "1h"})
    for hour in range(1, 4):
        await pass_time(clock, 3600)
        await settle(automations, hour)
    state = automations.store.get("often")
    plan = state.plan
    await automations.host.do(ac.EditAutomation(automation="often", plan=replace(plan, stop_after_runs=2)), ME)
    for hour in range(4, 6):
        await pass_time(clock, 3600)
        await settle(automations, hour)
    assert (state.enabled, state.runs) == (False, 2)


async def test_a_failed_job_says_which_check_failed(open_host: HostOpener, tmp_path: Path) -> None:
    """The history, the notice and the page said `failed` and nothing else."""
    automations = await opened(await open_host(), tmp_path, jobs=True)
    assert automations.jobs is not None
    checked = {"prompt": ["[[say:x]]"], "model": {"category": "driving"}, "requireUserInput": False}
    checked |= {
        "criteria": {"checks": [{"command": "echo two of three >&2; exit 3"}], "failureAction": {"retryTimes": 1}}
    }
    await automations.jobs.install(make({"main": failing() | checked}))
    await made(automations, "job", job={"job": "main"})
    named: RunNamed = await automations.host.do(ac.RunAutomation(automation="job"), ME)
    run = await until_over(automations, named.run)
    assert run.status == "failed"
    assert run.reason == "main: Command failed with exit code 3: echo two of three >&2; exit 3 two of three"
