"""What a start finds: the notes, with what was committed behind them."""

import copy
from pathlib import Path

import msgspec
import pytest

from portico.features.automations import commands as ac
from portico.features.automations import events as ae
from portico.features.automations.state import AutomationState, RunSummary, begin, begin_run, fold, fold_run
from portico.features.automations.store import AUTOMATION, RUN, AutomationStore
from portico.kernel.log.log import Log
from portico.testing.clock import FakeClock
from portico.testing.fixtures import HostOpener
from tests.automation.playing import ME, made, opened, pass_time, settle


@pytest.mark.parametrize("behind", ["not at all", "two events", "from its beginning", "the log has lost its end"])
async def test_a_note_that_is_behind_catches_up(open_host: HostOpener, tmp_path: Path, behind: str) -> None:
    """Notes are written lazily, so a kill leaves old ones; a log that has lost its end leaves newer ones."""
    automations = await opened(await open_host(), tmp_path)
    await made(automations, "it")
    for _ in range(3):
        await automations.host.do(ac.RunAutomation(automation="it"), ME)
        await settle(automations, len(automations.store.runs))
    await automations.host.do(ac.PauseAutomation(automation="it"), ME)
    states: dict[str, AutomationState | RunSummary] = {**automations.store.automations, **automations.store.runs}
    log = automations.host.log
    await automations.close()
    for ident, state in states.items():
        key = AUTOMATION if isinstance(state, AutomationState) else RUN
        channel, note = f"{key}/{ident}", copy.copy(state)
        if behind == "two events":
            note = await _as_of(log, channel, state.pos - 2)
        elif behind != "not at all":
            note.pos = 0 if behind == "from its beginning" else state.pos + 7
        log.put_kv(channel, key, msgspec.json.encode(note))
    await log.flush()
    store = AutomationStore(log, lambda *_: None)
    await store.open()
    assert {**store.automations, **store.runs} == states


async def test_old_runs_leave_the_channel_of_their_automation(
    open_host: HostOpener, tmp_path: Path, clock: FakeClock
) -> None:
    """Two events for each run stayed for ever: one every ten seconds is three megabytes a day."""
    automations = await opened(await open_host(clock=clock), tmp_path)
    host = automations.host
    await made(automations, "often", schedule={"every": "1h"})
    for number in range(1, 4):
        await pass_time(clock, 3600)
        await settle(automations, number)
    await host.do(ac.PauseAutomation(automation="often"), ME)
    [state] = automations.store.automations.values()
    clock.advance(host.retention_hours * 3600 + 1)
    await host.sweep()
    left = [type(record.event) for record in await host.log.read(f"automation/{state.id}")]
    assert left == [ae.AutomationCreated, ae.AutomationPaused]
    store = AutomationStore(host.log, lambda *_: None)
    await store.open()
    assert (list(store.automations.values()), len(store.runs), state.runs) == ([state], 3, 3)


@pytest.mark.parametrize("starts", [1, 2])
async def test_what_a_note_was_behind_is_not_lost(
    open_host: HostOpener, tmp_path: Path, clock: FakeClock, starts: int
) -> None:
    """A kill left an old note, the events behind it are compacted, and a second start reads the note alone."""
    automations = await opened(await open_host(clock=clock), tmp_path)
    log = automations.host.log
    await made(automations, "it", stop_after_failures=9)
    [state] = automations.store.automations.values()
    old = msgspec.json.encode(state)
    await automations.host.do(ac.RunAutomation(automation="it"), ME)
    await settle(automations, 1)
    log.put_kv(f"automation/{state.id}", AUTOMATION, old)
    for _ in range(starts):
        store = AutomationStore(log, lambda *_: None)
        await store.open()
        await log.flush()
        await log.compact(automations.host.now() + 1)
    assert store.automations[state.id] == state


async def _as_of(log: Log, channel: str, pos: int) -> AutomationState | RunSummary:
    """What the note said at that position."""
    first, *rest = await log.read(channel, 0, max(1, pos))
    state: AutomationState | RunSummary
    if isinstance(first.event, ae.AutomationCreated):
        state = begin(first.event, first.time)
        for record in rest:
            fold(state, record.event, record.time)
    else:
        assert isinstance(first.event, ae.RunClaimed)
        state = begin_run(first.event, first.time)
        for record in rest:
            fold_run(state, record.event, record.time)
    state.pos = max(1, pos)
    return state
