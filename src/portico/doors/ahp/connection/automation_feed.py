"""Updates for subscribers of automations and their runs. Derived from the log; each update contains the full state."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from portico.doors.ahp.view import automations as view
from portico.doors.ahp.view.targets import Target
from portico.doors.ahp.wire.envelope import Outgoing
from portico.doors.ahp.wire.record import Json
from portico.features.automations import events as ae
from portico.features.automations.listing import info_of
from portico.features.automations.state import AutomationState
from portico.kernel import events as e
from portico.kernel.errors import NotFound
from portico.kernel.events import Record

if TYPE_CHECKING:
    from portico.doors.ahp.connection.broker import Broker

CATALOGUE = Target("automations")
_GONE = 100
"""Removed automations that are remembered, so that reconnecting clients learn of the removal."""


class AutomationFeed:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._shown: dict[str, int] = {}
        """How many runs are shown, for automations where a client asked for more than the default."""
        self._gone: list[str] = []
        self._names: dict[str, str] = {}

    def hear(self, records: Sequence[Record]) -> None:
        """Runs after the store has folded the batch: its listener may be called after ours."""
        changed: dict[str, None] = {}
        for record in records:
            kind, _, ident = record.channel.partition("/")
            if kind == "automation":
                changed[ident] = None
                if isinstance(record.event, ae.AutomationCreated):
                    self._names[ident] = record.event.uri or view.AUTOMATION + ident
            elif kind == "run":
                run = self._broker.automations.store.runs.get(ident) if self._broker.automations is not None else None
                automation = record.event.automation if isinstance(record.event, ae.RunClaimed) else ""
                changed[automation or (run.automation if run is not None else "")] = None
                asyncio.get_running_loop().call_soon(self._tell_run, ident, record.event)
        for ident in changed:
            if ident:
                asyncio.get_running_loop().call_soon(self.tell, ident)

    def tell(self, ident: str) -> None:
        state = self._broker.automations.store.automations.get(ident) if self._broker.automations is not None else None
        if state is not None:
            self._names[ident] = view.uri_of(state)
            if self._broker.hearers(CATALOGUE):  # an entry has fifty runs, and hooks come in thousands
                self._say(CATALOGUE, Outgoing("set", {"automation": self.entry(state)}))
        elif ident in self._names:
            self._gone = [*self._gone[-_GONE:], self._names.pop(ident)]
            self._say(CATALOGUE, Outgoing("removed", {"resource": self._gone[-1]}))

    def _tell_run(self, ident: str, event: e.Event) -> None:
        run = self._broker.automations.store.runs.get(ident) if self._broker.automations is not None else None
        target = Target("run", ident)
        if run is None or not self._broker.hearers(target):
            return
        self._say(target, Outgoing("lifecycleChanged", {"lifecycle": view.lifecycle(run)}))
        session = view.session_of(self._broker.host, run)
        if isinstance(event, ae.RunStarted) and session:
            self._say(target, Outgoing("sessionSet", {"session": session}))
            self._say(target, Outgoing("primarySessionChanged", {"primarySession": session}))

    def _say(self, target: Target, said: Outgoing) -> None:
        for connection in list(self._broker.hearers(target)):
            connection.say(target, said)

    def entry(self, state: AutomationState) -> Json:
        automations = self._broker.automations
        assert automations is not None  # there is one of them
        times = info_of(automations, state).next
        runs = automations.store.runs_of(state.id)
        shown = self._shown.get(state.id, view.HISTORY)
        return view.entry(self._broker.host, state, runs, times[0] if times else None, shown)

    def origin(self, by: str) -> Json:
        """The origin of a session that a run has created, for its state and its catalogue entry."""
        automations = self._broker.automations
        run = automations.store.runs.get(by.removeprefix("run:")) if automations is not None else None
        if run is None or not by.startswith("run:") or automations is None:
            return {}
        known = automations.store.automations.get(run.automation)
        name = view.uri_of(known) if known is not None else view.AUTOMATION + run.automation
        return {"origin": {"kind": "automation", "automation": name, "run": view.RUN + run.id}}

    def widen(self, ident: str) -> None:
        self._shown[ident] = self._shown.get(ident, view.HISTORY) + view.HISTORY
        self.tell(ident)

    def state(self, target: Target) -> Json:
        """The snapshot of the catalogue, or of one run."""
        automations = self._broker.automations
        if automations is None:
            raise NotFound("channel", "automations")
        if target == CATALOGUE:
            for each in automations.store.automations.values():
                self._names[each.id] = view.uri_of(each)
            return {"entries": [self.entry(each) for each in automations.store.automations.values()]}
        run = automations.store.run(target.ident)
        return view.state(self._broker.host, automations.store.automations.get(run.automation), run)

    def now(self, target: Target, state: Json) -> list[Outgoing]:
        """For a reconnecting client: the full current state and what was removed."""
        if target == CATALOGUE:
            gone = [Outgoing("removed", {"resource": each}) for each in self._gone]
            return [*gone, *(Outgoing("set", {"automation": each}) for each in state["entries"])]
        said = [Outgoing("lifecycleChanged", {"lifecycle": state["lifecycle"]})]
        said += [Outgoing("sessionSet", {"session": each}) for each in state["sessions"]]
        return said + [Outgoing("primarySessionChanged", {"primarySession": each}) for each in state["sessions"][:1]]
