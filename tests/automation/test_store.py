"""What a start finds: the notes, with what was committed behind them."""

import copy
from pathlib import Path

import msgspec
import pytest

from portico import commands as c
from portico import events as e
from portico.automation.state import AutomationState, RunSummary, begin, begin_run, fold, fold_run
from portico.automation.store import AUTOMATION, RUN, AutomationStore
from portico.log.log import Log
from portico.testing.fixtures import HostOpener
from tests.automation.playing import ME, made, opened, settle


@pytest.mark.parametrize("behind", ["not at all", "two events", "from its beginning", "the log has lost its end"])
async def test_a_note_that_is_behind_catches_up(open_host: HostOpener, tmp_path: Path, behind: str) -> None:
    """Notes are written lazily, so a kill leaves old ones; a log that has lost its end leaves newer ones."""
    automations = await opened(await open_host(), tmp_path)
    await made(automations, "it")
    for _ in range(3):
        await automations.host.do(c.RunAutomation(automation="it"), ME)
        await settle(automations, len(automations.store.runs))
    await automations.host.do(c.PauseAutomation(automation="it"), ME)
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


async def _as_of(log: Log, channel: str, pos: int) -> AutomationState | RunSummary:
    """What the note said at that position."""
    first, *rest = await log.read(channel, 0, max(1, pos))
    state: AutomationState | RunSummary
    if isinstance(first.event, e.AutomationCreated):
        state = begin(first.event, first.time)
        for record in rest:
            fold(state, record.event, record.time)
    else:
        assert isinstance(first.event, e.RunClaimed)
        state = begin_run(first.event, first.time)
        for record in rest:
            fold_run(state, record.event, record.time)
    state.pos = max(1, pos)
    return state
