"""Encodes a record into the frames for the subscribers of one target.

An encoder is used for one batch or one replay. What cannot change during that time (the target's name, the states that
the records belong to) is looked up once for all records.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from portico.doors.ahp.view import catalogue, customizations, names, targets, terminals, translate
from portico.doors.ahp.view.targets import Target
from portico.doors.ahp.wire.envelope import Act, ActionTarget, Outgoing
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.versions import SUPPORTED
from portico.kernel import events as e
from portico.kernel.events import HOST, Channel, Record
from portico.kernel.state import SessionState

if TYPE_CHECKING:
    from portico.doors.ahp.connection.broker import Broker


class Encoder:
    """One target in one dialect."""

    __slots__ = ("_address", "_broker", "_said", "_seed", "_states", "_target")

    def __init__(self, broker: "Broker", target: Target, seed: bool) -> None:
        self._broker = broker
        self._target = target
        self._seed = seed
        self._said: Callable[[Record], list[Outgoing]] = {
            "seed": self._conversation,
            "chat": self._conversation,
            "session": self._catalogue,
            "terminal": terminals.actions,
            "annotations": catalogue.annotations,
        }.get(target.kind, _configured)
        self._address: ActionTarget | None = None
        self._states: dict[Channel, SessionState | None] = {}

    def acts(self, record: Record) -> list[Act]:
        """The actions that the subscribers of the target receive for this record."""
        said = self._said(record)
        if not said:
            return []
        if self._address is None:
            name = targets.uri_of(self._broker.host, self._target, self._seed)
            self._address = ActionTarget(self._target.kind, name, self._seed)
        return self._address.acts(record.seq, said)

    def _conversation(self, record: Record) -> list[Outgoing]:
        state = self._states.get(record.channel) or self._state(record.channel)
        if state is None:
            return []
        if self._seed and isinstance(event := record.event, e.ClientKept) and customizations.is_plugin(event):
            shown = customizations.seed(
                self._broker.agents.get(state.agent), state.client_data
            )  # sent in full, and only here
            return [Outgoing("customizationsChanged", {"customizations": shown})]
        return translate.conversation(record, state, self._seed)

    def _catalogue(self, record: Record) -> list[Outgoing]:
        if record.channel == HOST:
            return self._removed(record.event)
        state = self._state(record.channel)
        return catalogue.catalogue(record, state, self._line) if state is not None else []

    def _line(self, ident: str) -> Json | None:
        return self._broker.chat_line(ident, self._broker.dialect(SUPPORTED[0]))

    def _removed(self, event: e.Event) -> list[Outgoing]:
        gone = self._broker.host.find(event.session) if isinstance(event, e.SessionRemoved) else None
        return [Outgoing("chatRemoved", {"chat": names.chat_uri(gone.summary)})] if gone is not None else []

    def _state(self, channel: Channel) -> SessionState | None:
        if channel not in self._states:
            self._states[channel] = self._broker.state(channel.removeprefix("session/"))
        return self._states[channel]


def _configured(record: Record) -> list[Outgoing]:
    """The configuration that a client dispatched to the root."""
    event = record.event
    assert isinstance(event, e.ClientKept)
    fields = {key: value for key, value in event.action.items() if key != "type"}
    return [Outgoing("configChanged", fields, event.by)]
