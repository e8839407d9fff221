"""Automations with several triggers, and runs for a time in the past."""

import hashlib
import hmac
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from portico.features.automations import commands as ac
from portico.features.automations import events as ae
from portico.features.automations.automations import Automations
from portico.features.automations.events import AutomationPlan, Schedule, Trigger
from portico.features.automations.listing import info_of
from portico.features.automations.state import AutomationState, fold
from portico.kernel.errors import BadRequest, Unauthenticated
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from tests.automation.playing import ME, made, opened, pass_time, settle, until_over


async def deliver(automations: Automations, name: str, payload: Any) -> str:
    body = json.dumps(payload).encode()
    secret = automations.secrets.of(automations.store.get(name))
    signature = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return (await automations.deliver(name, {"x-hub-signature-256": signature}, body)).run


async def test_each_trigger_starts_it(open_host: HostOpener, tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "in").mkdir()
    automations = await opened(await open_host(clock=clock), tmp_path)
    await made(automations, "other")
    on: list[dict[str, Any]] = [
        {"schedule": {"every": "10m"}},
        {"schedule": {"every": "15m"}},
        {"hook": {"filter": [{"pointer": "/action", "equals": "opened"}]}},
        {"hook": {"filter": [{"pointer": "/action", "equals": "edited"}]}},
        {"files": {"folder": str(tmp_path / "in"), "quiet": 0.05}},
        {"after": {"automation": "other", "outcomes": ["failed"]}},
        {"after": {"automation": "other", "outcomes": ["succeeded"]}},
    ]
    prompt = {"text": "[[say:done]] {{payload}} {{files}} {{after}}", "agent": "scripted"}
    await made(automations, "it", on=on, prompt=prompt)
    info = info_of(automations, automations.store.get("it"))
    assert (info.trigger, info.triggers) == ("schedule", ["schedule", "hook", "files", "after"])
    assert info.when.split("; or ")[0] == "every 10m"
    assert info.when.count("; or ") == 6
    minutes = [(time - info.created) / 60_000 for time in info.next]
    assert minutes == [10, 15, 20]
    for number, step in enumerate((600, 300, 300, 600), 1):  # at 10, 15, 20 and 30 minutes: both are due at 30
        await pass_time(clock, step)
        runs = await settle(automations, number)
    assert [run.cause for run in runs] == ["schedule"] * 4
    assert await deliver(automations, "it", {"action": "closed"}) == ""
    for action in ("opened", "edited"):
        await until_over(automations, await deliver(automations, "it", {"action": action}))
    await automations.files.ready("it")
    (tmp_path / "in/new").write_text("x")
    await settle(automations, 7)
    await automations.host.do(ac.RunAutomation(automation="other"), ME)
    runs = await settle(automations, 9)
    causes = [run.cause for run in runs if run.name == "it"]
    assert causes == ["schedule"] * 4 + ["hook", "hook", "files", "after"]


async def test_a_hook_of_a_list_has_a_secret(open_host: HostOpener, tmp_path: Path) -> None:
    automations = await opened(await open_host(), tmp_path)
    answer = await made(automations, "it", on=[{"schedule": {"every": "1h"}}, {"hook": {}}])
    assert answer.secret.startswith("whsec_")
    assert (await automations.host.do(ac.RotateSecret(automation="it"), ME)).secret != answer.secret
    await automations.host.do(ac.EditAutomation(automation="it", plan=_plan(Trigger(Schedule(every="1h")))), ME)
    with pytest.raises(Unauthenticated):
        await deliver(automations, "it", {})


def _plan(*on: Trigger) -> AutomationPlan:
    return AutomationPlan(on=list(on), prompt=ae.PromptAction("[[say:x]]", agent="scripted"))


@pytest.mark.parametrize("cause", ["hook", "files", "after"])
def test_what_comes_between_hides_no_due_time(cause: ae.Cause) -> None:
    """A delivery one moment after a time that is due must not count as that time."""
    plan = _plan(Trigger(Schedule(every="10m")), Trigger(hook=ae.Hook()), Trigger(after=ae.After(job="x")))
    state = AutomationState("a", "it", plan, "me", [], 0, 0, 0, considered=600_000)
    fold(state, ae.RunReserved(run="run-1", cause=cause, due=1_200_001), 0)
    assert (state.considered, state.followed) == (600_000, 1_200_001 if cause == "after" else 0)


async def test_due_times_of_all_schedules_are_made_up_for(
    open_host: HostOpener, tmp_path: Path, clock: FakeClock
) -> None:
    automations = await opened(await open_host(clock=clock), tmp_path)
    schedules = [{"schedule": {"every": every}} for every in ("20m", "30m")]
    answer = await made(automations, "often", on=schedules, missed="all")
    created = automations.store.get(answer.automation).since
    await automations.close()
    clock.advance(3600)
    automations = await opened(await open_host(clock=clock), tmp_path)
    await pass_time(clock, 0.01)
    runs = await settle(automations, 4)
    assert [(run.due - created) / 60_000 for run in runs] == [20, 30, 40, 60]


async def test_a_run_for_a_time_in_the_past(open_host: HostOpener, tmp_path: Path, clock: FakeClock) -> None:
    automations = await opened(await open_host(clock=clock), tmp_path)
    await made(automations, "daily", schedule={"cron": "0 7 * * *", "zone": "Europe/Berlin"})
    before = automations.store.get("daily").considered
    named = await automations.host.do(ac.RunAutomation(automation="daily", at="2020-01-31T07:00"), ME)
    run = await until_over(automations, named.run)
    assert datetime.fromtimestamp(run.due / 1000, UTC).isoformat() == "2020-01-31T06:00:00+00:00"
    assert (run.cause, run.late, run.status) == ("person", True, "succeeded")
    assert automations.store.get("daily").considered == before
    for text, words in (("tomorrow", "no time such as"), ("2999-01-01T00:00", "still to come")):
        with pytest.raises(BadRequest, match=words) as refused:
            await automations.host.do(ac.RunAutomation(automation="daily", at=text), ME)
        assert refused.value.field == "at"
