"""All automations and runs in memory, as the log has them: filled at the start, and from every commit after that."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from portico.features.automations import events as ae
from portico.features.automations.state import AutomationState, RunSummary, begin, begin_run, fold, fold_run
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.errors import NotFound, nearest
from portico.kernel.events import Channel, Record, number_of
from portico.kernel.log.log import Log

AUTOMATION, RUN = "automation", "run"
"""Also the keys stored with their channels: a channel without one was deleted."""

T = TypeVar("T", AutomationState, RunSummary)

Listener = Callable[[str, e.Event], None]
"""Called with an automation's id and what happened to it or one of its runs, after the fold."""


class AutomationStore:
    def __init__(self, log: Log, on_change: Listener) -> None:
        self._log = log
        self._on_change = on_change
        self.automations: dict[str, AutomationState] = {}
        self.runs: dict[str, RunSummary] = {}
        self._of: dict[str, dict[str, RunSummary]] = {}
        self._open: dict[str, dict[str, RunSummary]] = {}
        self._names: dict[str, str] = {}
        self._named: dict[str, list[str]] = {}
        lost = log.identity.lost
        self._next_automation = 1 + lost + max(map(number_of, log.channels("automation/")), default=0)
        self._next_run = 1 + lost + max(map(number_of, log.channels("run/")), default=0)

    async def open(self) -> None:
        for state in await self._stored(AUTOMATION, AutomationState, begin, fold):
            if not state.deleted:
                self.automations[state.id] = state
                self._name(state)
        for run in await self._stored(RUN, RunSummary, begin_run, fold_run):
            self._add(run)

    async def _stored(
        self, key: str, kind: type[T], begin: Callable[[Any, int], T], fold: Callable[[T, e.Event, int], None]
    ) -> list[T]:
        """Load from the notes and the events committed after them."""
        found: list[T] = []
        for channel, data in sorted((await self._log.list_kv(key)).items(), key=lambda each: number_of(each[0])):
            state = msgspec.json.decode(data, type=kind)
            if not (head := self._log.head(channel)):
                continue  # the events of its channel were not written (full disk)
            after = stored = state.pos if state.pos <= head else 0  # the log may have lost its last events
            while after < head and (records := await self._log.read(channel, after, limits.READ_EVENTS)):
                for record in records:
                    if record.pos == 1 and isinstance(record.event, ae.AutomationCreated | ae.RunClaimed):
                        state = begin(record.event, record.time)
                    else:
                        fold(state, record.event, record.time)
                    after = state.pos = record.pos
            if after > stored:  # what it was behind may be compacted
                self._log.put_kv(channel, key, msgspec.json.encode(state))
            found.append(state)
        return found

    # -- from every commit -------------------------------------------------------------------------------------

    def follow(self, record: Record) -> None:
        event, ident = record.event, record.channel.partition("/")[2]
        if isinstance(event, ae.AutomationCreated):
            self._next_automation = max(self._next_automation, number_of(record.channel) + 1)
            self.automations[ident] = begin(event, record.time)
        state = self.automations.get(ident)
        if state is None:
            return
        fold(state, event, record.time)
        state.pos = record.pos
        if isinstance(event, ae.AutomationCreated | ae.AutomationEdited | ae.AutomationDeleted):
            self._name(state)
        self._log.put_kv(record.channel, AUTOMATION, msgspec.json.encode(state), lazy=True)
        if state.deleted:
            del self.automations[ident]
        self._on_change(ident, event)

    def follow_run(self, record: Record) -> None:
        event, ident = record.event, record.channel.partition("/")[2]
        if isinstance(event, ae.RunClaimed):
            self._next_run = max(self._next_run, number_of(record.channel) + 1)
            self._add(begin_run(event, record.time))
        run = self.runs.get(ident)
        if run is None:
            return
        fold_run(run, event, record.time)
        run.pos = record.pos
        if not run.open:
            _discard(self._open, run)
        self._log.put_kv(record.channel, RUN, msgspec.json.encode(run), lazy=True)
        self._on_change(run.automation, event)

    def _add(self, run: RunSummary) -> None:
        self.runs[run.id] = run
        self._of.setdefault(run.automation, {})[run.id] = run
        if run.open:
            self._open.setdefault(run.automation, {})[run.id] = run

    def _name(self, state: AutomationState) -> None:
        for name in self._named.pop(state.id, ()):
            self._names.pop(name, None)
        if not state.deleted:
            self._named[state.id] = [name for name in (state.name, state.uri) if name]
            self._names |= dict.fromkeys(self._named[state.id], state.id)

    # -- ids, and what is there --------------------------------------------------------------------------------

    def note(self, *events: tuple[Channel, e.Event]) -> None:
        """Write the notes of channels that the next append creates: a channel is found by its note."""
        for channel, event in events:
            if isinstance(event, ae.AutomationCreated):
                self._log.put_kv(channel, AUTOMATION, msgspec.json.encode(begin(event, 0)))
            elif isinstance(event, ae.RunClaimed):
                self._log.put_kv(channel, RUN, msgspec.json.encode(begin_run(event, 0)))

    def new_automation(self) -> str:
        self._next_automation += 1
        return f"automation-{self._next_automation - 1}"

    def new_run(self) -> str:
        self._next_run += 1
        return f"run-{self._next_run - 1}"

    def find(self, name: str) -> AutomationState | None:
        """By its id, its name, or what its client calls it."""
        return self.automations.get(self._names.get(name, name))

    def get(self, name: str) -> AutomationState:
        state = self.find(name)
        if state is None:
            near = nearest(name, [each.name for each in self.automations.values()])
            raise NotFound("automation", name, f"Did you mean {near!r}?" if near else "")
        return state

    def run(self, ident: str) -> RunSummary:
        if ident not in self.runs:
            raise NotFound("run", ident)
        return self.runs[ident]

    def runs_of(self, automation: str) -> list[RunSummary]:
        """In the order of their claims."""
        return list(self._of.get(automation, {}).values())

    def history(self) -> list[tuple[str, list[RunSummary]]]:
        """The runs of every automation that has some, of deleted ones, too."""
        return [(automation, list(runs.values())) for automation, runs in self._of.items()]

    def open_runs(self, automation: str) -> list[RunSummary]:
        return list(self._open.get(automation, {}).values())

    async def forget(self, run: RunSummary) -> None:
        self.runs.pop(run.id, None)
        _discard(self._of, run)
        await self._log.delete(f"run/{run.id}")


def _discard(runs: dict[str, dict[str, RunSummary]], run: RunSummary) -> None:
    left = runs.get(run.automation, {})
    left.pop(run.id, None)
    if not left:
        runs.pop(run.automation, None)
