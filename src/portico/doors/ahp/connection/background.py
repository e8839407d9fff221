"""Background work of chats (1.0): commands of an agent that continue after the call that started them has ended.

It is not in the log; it is derived from the running terminals. Reconnecting clients receive what is running now and
what finished while they were away.
"""

from typing import TYPE_CHECKING

from portico.doors.ahp.view import names
from portico.doors.ahp.view.targets import Target
from portico.doors.ahp.wire.envelope import Outgoing
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.versions import iso
from portico.features.terminals import events as te
from portico.features.terminals.state import TerminalState
from portico.kernel import events as e
from portico.kernel.cache import Cache
from portico.kernel.events import Record
from portico.kernel.state import CallPart, SessionState

if TYPE_CHECKING:
    from portico.doors.ahp.connection.broker import Broker

_CHATS = 1_000
"""Chats whose background work is remembered, so that reconnecting clients learn what finished."""
_ENDINGS = 50
CHANGING = frozenset({e.ToolContent, e.ToolEnded, e.TurnEnded, te.TerminalExited, te.TerminalRemoved})
"""Events that may start or end background work."""


class BackgroundWork:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._told = Cache[str, dict[str, Json | None]](_CHATS)
        """By session and terminal; None: it has ended."""

    def hear(self, record: Record) -> None:
        kind, _, ident = record.channel.partition("/")
        if kind == "terminal":
            terminal = self._broker.terminals.find(ident)
            ident = (terminal.session or "") if terminal is not None and terminal.command else ""
        state = self._broker.state(ident) if ident else None
        if state is not None:
            self._compare(state)

    def _compare(self, state: SessionState) -> None:
        now, told = {each["id"]: each for each in self.of(state)}, self._told.get(state.id, {})
        said = [_set(work) for ident, work in now.items() if told.get(ident) is None]
        said += [_removed(ident) for ident, work in told.items() if work is not None and ident not in now]
        if not said:
            return
        ended = [ident for ident in told if ident not in now][-_ENDINGS:]
        self._told[state.id] = {**dict.fromkeys(ended), **now}
        for connection in list(self._broker.hearers(Target("chat", state.id))):
            for each in said:
                connection.say(Target("chat", state.id), each)

    def of(self, state: SessionState) -> list[Json]:
        """What runs now."""
        shown = _in_calls(state)
        terminals = self._broker.terminals.list()
        mine = [each for each in terminals if each.session == state.id and each.command and not each.exited]
        return [_work(each) for each in mine if each.id not in shown]

    def now(self, ident: str) -> list[Outgoing]:
        """For a reconnecting client: the current background work."""
        told = self._told.get(ident, {})
        return [_removed(each) if work is None else _set(work) for each, work in told.items()]


def _in_calls(state: SessionState) -> set[str]:
    """Terminals of running calls, which are not background work."""
    parts = state.active.parts if state.active is not None else []
    calls = [part for part in parts if isinstance(part, CallPart) and not part.done]
    return {str(item["terminal"]) for call in calls for item in call.content if "terminal" in item}


def _work(of: TerminalState) -> Json:
    shown = {"id": of.id, "label": of.title, "startedAt": iso(of.started), "kind": "shell"}
    return {**shown, "command": of.title, "terminal": names.terminal_uri(of)}


def _set(work: Json) -> Outgoing:
    return Outgoing("backgroundWorkSet", {"work": work})


def _removed(ident: str) -> Outgoing:
    return Outgoing("backgroundWorkRemoved", {"id": ident})
