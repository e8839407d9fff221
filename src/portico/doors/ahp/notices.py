"""News of the catalogue: sessions that come, go or change. Never replayed; clients list the sessions again.

Version 1 tells every client; later versions those who have subscribed to the root. Changes of one session are gathered
for a moment and told as the difference to what was told before.
"""

import asyncio
from typing import Any

from portico.doors.ahp import names, snapshots, uri, wire
from portico.doors.ahp.exchange import Exchange
from portico.doors.ahp.record import Json
from portico.doors.ahp.targets import ROOT
from portico.doors.ahp.versions import Dialect
from portico.host.state import Summary

_GATHER_SECONDS = 0.1
"""As other hosts do: a list that changes ten times a second is as live as anybody sees."""
_FIXED = ("resource", "provider", "createdAt")

_SEED = Dialect("1", lambda: 0)
_MODERN = Dialect("1.0.0", lambda: 0)


class Notices:
    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._told = {each.id: each for each in exchange.host.list()}
        self._changed: dict[str, Summary] = {}
        self._timer: asyncio.TimerHandle | None = None
        exchange.host.watch(self._watch)

    def _watch(self, ident: str, summary: Summary | None) -> None:
        if summary is None:
            self._changed.pop(ident, None)
            told = self._told.pop(ident, None)
            if told is not None:
                self._tell(told, "sessionRemoved", {}, {})
        elif ident not in self._told:
            if summary.agent:
                self._told[ident] = summary
                self._tell(summary, "sessionAdded", self._shown(summary, _SEED), self._shown(summary, _MODERN))
        else:
            self._changed[ident] = summary
            if self._timer is None and self._exchange.connections:
                self._timer = asyncio.get_running_loop().call_later(_GATHER_SECONDS, self._flush)

    def _flush(self) -> None:
        self._timer = None
        changed, self._changed = self._changed, {}
        for ident, summary in changed.items():
            before = self._told.get(ident)
            if before is None:
                continue
            self._told[ident] = summary
            differences = [_difference(before, summary, dialect) for dialect in (_SEED, _MODERN)]
            if any(differences):
                self._tell(summary, "sessionSummaryChanged", *({"changes": each} for each in differences))

    def _tell(self, of: Summary, name: str, seed: Json, modern: Json) -> None:
        session: Json = {} if name == "sessionAdded" else {"session": names.session_uri(of)}
        if of.origin is None or of.origin.kind != "agent":
            old = wire.notification("notification", {"notification": {"type": f"notify/{name}", **session, **seed}})
            for connection in self._exchange.connections:
                if connection.ready and connection.dialect.seed:
                    connection.push(old)
        if of.parent is None:
            new = wire.notification(f"root/{name}", {"channel": uri.ROOT, **session, **modern})
            for connection in list(self._exchange.hearers(ROOT)):
                if not connection.dialect.seed:
                    connection.push(new)

    @staticmethod
    def _shown(summary: Summary, dialect: Dialect) -> Json:
        return {"summary": snapshots.summary(summary, dialect)}


def _difference(before: Summary, after: Summary, dialect: Dialect) -> Json:
    old, new = snapshots.summary(before, dialect), snapshots.summary(after, dialect)
    changes: dict[str, Any] = {key: value for key, value in new.items() if old.get(key) != value}
    return {key: value for key, value in changes.items() if key not in _FIXED}
