"""Automations in a test's own host: made in one line, and waited for by their events."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from portico.features.automations import commands as ac
from portico.features.automations.automations import Automations
from portico.features.automations.commands import AutomationMade
from portico.features.automations.events import AutomationPlan
from portico.features.automations.state import RunSummary
from portico.features.jobs import Jobs
from portico.kernel import commands as c
from portico.kernel.host import Host
from portico.testing.clock import FakeClock
from tests.jobs.playing import make, ok

ME = c.Caller("t", "t", frozenset(c.SCOPES))


def plan(**parts: Any) -> AutomationPlan:
    """With something to start, unless it is said."""
    if "job" not in parts and "prompt" not in parts:
        parts["prompt"] = {"text": "[[say:done]]", "agent": "scripted"}
    return msgspec.convert(parts, AutomationPlan)


async def opened(host: Host, folder: Path, *, jobs: bool = False, start: bool = True, **more: Any) -> Automations:
    found = await Jobs.open(host)
    host.workspaces[:] = [folder]
    if jobs:
        await found.install(make({"main": ok()}))
    automations = await Automations.open(host, found, folder, **more)
    if start:
        await automations.start()
    return automations


async def made(automations: Automations, name: str, caller: c.Caller = ME, **parts: Any) -> AutomationMade:
    answer: AutomationMade = await automations.host.do(ac.CreateAutomation(name=name, plan=plan(**parts)), caller)
    return answer


async def until(automations: Automations, condition: Callable[[list[RunSummary]], bool]) -> list[RunSummary]:
    """Returns all runs, in order, when the condition holds for them."""
    async with asyncio.timeout(60):
        async for _ in automations.host.log.follow(after=0):
            runs = list(automations.store.runs.values())
            if condition(runs):
                return runs
    raise AssertionError


async def until_over(automations: Automations, run: str) -> RunSummary:
    await until(automations, lambda _: not automations.store.run(run).open)
    return automations.store.run(run)


async def settle(automations: Automations, count: int) -> list[RunSummary]:
    """When so many runs are there and none is open."""
    return await until(automations, lambda runs: len(runs) >= count and not any(run.open for run in runs))


async def pass_time(clock: FakeClock, seconds: float) -> None:
    clock.advance(seconds)
    for _ in range(5):
        await asyncio.sleep(0)
