"""Catalogue notifications: sessions added, removed or changed. Never replayed; clients list the sessions again.

Version 1 notifies every client; later versions notify the subscribers of the root. Changes of one session are batched
for a short time and sent as the difference to the last notification: in version 1 for each session separately, later
for a session and its chats together.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from portico.doors.ahp.connection.broker import Broker
from portico.doors.ahp.view import names, snapshots
from portico.doors.ahp.view.targets import ROOT
from portico.doors.ahp.wire import rpc, uri
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.versions import Dialect
from portico.kernel.ownership import Access
from portico.kernel.state import Summary, is_subagent

if TYPE_CHECKING:
    from portico.doors.ahp.connection.connection import Connection

_GATHER_SECONDS = 0.1
"""The same as in other hosts: people do not notice updates faster than ten per second."""
_TOUCHED = 1_000
"""Changed sessions remembered while no client is connected. Above this limit, they are flushed without a receiver."""
_FIXED = ("resource", "provider", "createdAt")

_SEED = Dialect("1", lambda: 0)
_MODERN = Dialect("1.0.0", lambda: 0)


class CatalogueNotices:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._told = {each.id: each for each in broker.host.list()}
        self._changed: dict[str, Summary] = {}
        self._roots: dict[str, str] = {}
        """By chat: the session at the root."""
        self._chats: dict[str, dict[str, Summary]] = {}
        """The chats as they were last sent with their session's entry."""
        self._touched: dict[tuple[str, str], None] = {}
        """Changed sessions and chats, each with the session whose entry contains, or contained, it."""
        self._activities: dict[str, str] = {}
        """The activity last sent for each session."""
        self._metas: dict[str, Json] = {}
        """What was last sent for each session besides its summary: git status of its folder, the run that made it."""
        self._timer: asyncio.TimerHandle | None = None
        for each in self._told.values():
            if each.parent is not None:
                self._take_in(each.id, self._root(each.id, each))
        broker.host.watch(self._watch)
        broker.on_git = self._look_at

    def _touch(self, ident: str, root: str) -> None:
        self._touched[ident, root] = None
        if len(self._touched) > _TOUCHED:
            self._flush()
        elif self._timer is None and self._broker.connections:
            self._timer = asyncio.get_running_loop().call_later(_GATHER_SECONDS, self._flush)

    def _look_at(self, folder: str) -> None:
        for ident in [each.id for each in self._told.values() if each.parent is None and each.cwd == folder]:
            self._touch(ident, ident)

    def _watch(self, ident: str, summary: Summary | None) -> None:
        told = self._changed.get(ident, self._told.get(ident))
        if summary is not None and told is not None and told.parent != summary.parent:
            self._move(summary)
        self._touch(ident, self._root(ident, summary))
        if summary is None:
            self._changed.pop(ident, None)
            self._chats.pop(ident, None)
            self._activities.pop(ident, None)
            self._metas.pop(ident, None)
            told = self._told.pop(ident, None)
            if told is not None:
                self._tell_seed(told, "sessionRemoved", {})
                self._tell_modern(told, "sessionRemoved", {})
        elif ident not in self._told:
            if summary.agent and not summary.draft:
                self._told[ident] = summary
                self._tell_seed(summary, "sessionAdded", {"summary": snapshots.summary(summary, _SEED)})
                self._metas[ident] = self._broker.besides(summary)
                line = snapshots.summary(summary, _MODERN) | self._metas[ident]
                self._tell_modern(summary, "sessionAdded", {"summary": line})
        else:
            before = self._changed.get(ident, self._told[ident])
            self._changed[ident] = summary
            if before.shares != summary.shares:
                self._tell_shares(before, summary)

    def _move(self, summary: Summary) -> None:
        """The session, with its descendants, is now part of another entry or has become a separate entry."""
        below = self._broker.host.catalogue.descendants(summary.id)
        for each in (summary, *below):
            self._touch(each.id, self._roots.pop(each.id, each.id))
            self._touch(each.id, self._root(each.id, each))
        if summary.parent is None:
            self._told[summary.id] = summary
            self._chats[summary.id] = {each.id: each for each in below}
            self._tell_modern(summary, "sessionAdded", {"summary": self._line(summary.id)})

    def _tell_shares(self, before: Summary, now: Summary) -> None:
        """Send `sessionAdded` or `sessionRemoved` to the clients whose access changed with the shares."""
        may = self._broker.host.ownership.may
        was, has = Access(before.owner, before.shares), Access(now.owner, now.shares)
        for connection in list(self._broker.connections):
            had, has_now = may(connection.caller, was), may(connection.caller, has)
            if had != has_now and connection.ready:
                name = "sessionAdded" if has_now else "sessionRemoved"
                dialect = _SEED if connection.dialect.seed else _MODERN
                more = {"summary": snapshots.summary(now, dialect)} if has_now else {}
                tell = self._tell_seed if connection.dialect.seed else self._tell_modern
                tell(now, name, more, only=connection)

    def _root(self, ident: str, summary: Summary | None) -> str:
        """The session whose entry contains this one; cached for removed sessions."""
        if summary is None:
            return self._roots.pop(ident, ident)
        if summary.parent is not None and ident not in self._roots:
            session = self._broker.host.find(ident)
            if session is not None:
                self._roots[ident] = self._broker.host.catalogue.root(session).id
        return self._roots.get(ident, ident)

    def _take_in(self, ident: str, root: str) -> None:
        host, chats = self._broker.host, self._chats.setdefault(root, {})
        found = host.find(ident)
        if found is None or host.catalogue.root(found).id != root:
            chats.pop(ident, None)
        else:
            chats[ident] = found.summary

    def _line(self, root: str) -> Json:
        chats = list(self._chats.get(root, {}).values())
        line = snapshots.summary(self._told[root], _MODERN, chats, self._activities.get(root, ""))
        return line | self._metas.get(root, {})

    def _flush(self) -> None:
        self._timer = None
        changed, self._changed = self._changed, {}
        touched, self._touched = self._touched, {}
        before = {root: self._line(root) for _, root in touched if root in self._told}
        was = {ident: self._activities.get(ident, "") for ident in (*(each for each, _ in touched), *before)}
        for ident in was:
            if ident in self._told:
                self._activities[ident] = self._broker.activity(ident)
                self._metas[ident] = self._broker.besides(self._told[ident])
        for ident, root in touched:
            if ident != root and root in self._told:
                self._take_in(ident, root)
        for ident, summary in changed.items():
            if ident in self._told:
                old, self._told[ident] = self._told[ident], summary
                now = snapshots.summary(summary, _SEED, (), self._activities.get(ident, ""))
                difference = _difference(snapshots.summary(old, _SEED, (), was.get(ident, "")), now)
                if difference:
                    self._tell_seed(summary, "sessionSummaryChanged", {"changes": difference})
        for root, line in before.items():
            difference = _difference(line, self._line(root))
            if difference:
                self._tell_modern(self._told[root], "sessionSummaryChanged", {"changes": difference})

    def _tell_seed(self, of: Summary, name: str, more: Json, only: "Connection | None" = None) -> None:
        if not is_subagent(of):
            told = {"type": f"notify/{name}", **_session(of, name, seed=True), **more}
            frame = rpc.notification("notification", {"notification": told})
            for connection in self._broker.connections:
                if connection.ready and connection.dialect.seed and _is_for(connection, of, only):
                    connection.push(frame)

    def _tell_modern(self, of: Summary, name: str, more: Json, only: "Connection | None" = None) -> None:
        if of.parent is None:
            frame = rpc.notification(f"root/{name}", {"channel": uri.ROOT, **_session(of, name), **more})
            for connection in list(self._broker.hearers(ROOT)):
                if not connection.dialect.seed and _is_for(connection, of, only):
                    connection.push(frame)


def _is_for(connection: "Connection", of: Summary, only: "Connection | None") -> bool:
    return connection is only or (only is None and connection.view.sees(f"session/{of.id}"))


def _session(of: Summary, name: str, *, seed: bool = False) -> Json:
    return {} if name == "sessionAdded" else {"session": names.session_uri(of, seed=seed)}


def _difference(old: Json, new: Json) -> Json:
    changes: dict[str, Any] = {key: value for key, value in new.items() if old.get(key) != value}
    if "activity" in old and "activity" not in new:
        changes["activity"] = ""  # an absent field means "unchanged", and the schema allows no null
    return {key: value for key, value in changes.items() if key not in _FIXED}
