"""Creates and deletes sessions: start, fork, spawn by an agent, delete."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import fallback, limits
from portico.kernel.autonomy import Answering, Loosened, audited, loosened
from portico.kernel.autonomy import check as check_loosened
from portico.kernel.config import check as check_config
from portico.kernel.do import note_started
from portico.kernel.errors import BadRequest, NotFound, PorticoError
from portico.kernel.events import HOST, Channel, Json, Message, Origin
from portico.kernel.folder_access import check_folders
from portico.kernel.folders import check_folder
from portico.kernel.session import Session
from portico.kernel.state import TurnState
from portico.kernel.turn import Turn

if TYPE_CHECKING:
    from portico.kernel.host import Host


class Lifecycle:
    """The methods `start`, `fork`, `spawn` and `delete` of a host."""

    def __init__(self, host: "Host") -> None:
        self._host = host

    async def start(
        self,
        *,
        by: str,
        agent: str | None = None,
        model: str | None = None,
        cwd: str | None = None,
        title: str = "",
        uri: str | None = None,
        parent: str | None = None,
        origin: Origin | None = None,
        config: Json | None = None,
        history: list[TurnState] | None = None,
        worktree: c.Isolation | Json | None = None,
        folders: Iterable[str] = (),
        model_config: Json | None = None,
        may_approve: bool = True,
        draft: bool = False,
        owner: str = "",
        events: Iterable[e.Event] = (),
    ) -> Session:
        """Start a new session. Defaults: the default agent, the first model of the agent, the first workspace.
        With `worktree` it works in a new worktree, or shares that of another session (as JSON); `folders` are the
        additional folders. An unknown agent is not an error if the settings have a fallback for it. Settings that
        loosen approval are refused without `may_approve`, and audited. `events` are in the same commit."""
        check_config(config or {})
        if fallback.check(config or {}) and agent is not None and agent not in self._host.agents:
            model = model or ""
        else:
            info = await self._host.described(agent) if agent else await self._host.readiness.default()
            agent = info.id
            if model is None:
                model = info.models[0].id if info.models else ""
            else:
                info.check_model(model)
        folder = check_folder(cwd if cwd is not None else str(self._host.default_folder()))
        more = await check_folders(self._host, agent, folder, folders)
        if parent is not None:
            await self._host.get(parent)  # load it, because it records its child
        source = await self._source(parent, origin)
        found = loosened(self._host.agents, source, Answering(agent, config or {}))
        if not may_approve:
            check_loosened(found)
        ident = self._host.catalogue.new_id()
        if parent is not None and uri is None:
            uri = self._child_uri(parent, ident, origin)
        tree: Json = {}
        if isinstance(worktree, c.Isolation):
            folder, tree = await self._host.worktrees.isolate(folder, ident, worktree)
        elif worktree:
            tree = worktree
        started = e.SessionStarted(
            session=ident,
            agent=agent,
            model=model,
            cwd=folder,
            by=by,
            title=title[: limits.TITLE_CHARS],
            uri=uri,
            parent=parent,
            origin=origin,
            config=config or {},
            worktree=tree,
            folders=more,
            model_config=model_config or {},
            draft=draft,
            owner=owner if parent is None else "",
        )
        try:
            session = await self._host.catalogue.reserve(ident, uri)
            beginning = self._begin(session, started, found, *copied(history or []), *events)
            await asyncio.shield(self._host.own(beginning, f"start {ident}"))
        except PorticoError:
            if isinstance(worktree, c.Isolation):
                await self._host.worktrees.release(tree)
            raise
        return session

    def _child_uri(self, parent: str, ident: str, origin: Origin | None) -> str | None:
        """Return the URI of a child; None if it is already used (an agent may use the id of a call twice)."""
        above = self._host.find(parent)
        if self._host.name_child is None or above is None:
            return None
        uri = self._host.name_child(self._host.catalogue.root(above).summary, ident, origin)
        return None if self._host.has(uri) else uri

    async def _source(self, parent: str | None, origin: Origin | None) -> Answering | None:
        """The session whose settings a new one takes over: to have what that one has loosens nothing."""
        ident = origin.session if origin is not None and origin.kind != "agent" else parent
        state = (await self._host.get(ident)).state if ident is not None and self._host.has(ident) else None
        return Answering(state.agent, state.config) if state is not None else None

    async def _begin(
        self, session: Session, started: e.SessionStarted, found: Sequence[Loosened], *copied: e.Event
    ) -> None:
        listed = e.SessionListed(session=session.id, agent=started.agent, cwd=started.cwd, parent=started.parent)
        # In one commit: a session that exists is also listed, and its parent knows it.
        events: list[tuple[Channel, e.Event]] = [(session.channel, event) for event in (started, *copied)]
        events += [(HOST, event) for event in (listed, *audited(session.id, found, started.by))]
        if started.parent is not None:
            origin = started.origin or Origin("side", started.parent)
            child = e.ChildStarted(session=session.id, kind=origin.kind, turn=origin.turn, call=origin.call)
            events.append((f"session/{started.parent}", child))
        note_started(session.id)
        try:
            await self._host.log.append_all(*events)
        except PorticoError:  # the log cannot write, or the settings or the history are too large
            self._host.catalogue.forget(session)
            raise

    async def fork(self, ident: str, *, by: str, turn: str | None = None, uri: str | None = None) -> Session:
        """Start a session with the turns of another, up to and including `turn` (None: all finished turns)."""
        source = await self._host.get(ident)
        turns = source.finished_turns(turn)
        state = source.state
        return await self.start(
            by=by,
            agent=state.agent,
            model=state.model or None,
            cwd=state.cwd,
            title=f"Copy of {state.title}" if state.title else "",
            uri=uri,
            parent=source.id,
            origin=Origin("fork", source.id, turns[-1].id if turns else None),
            config=state.config,
            history=turns,
            worktree=state.worktree,
            folders=state.folders,
            model_config=state.model_config,
        )

    async def spawn(self, turn: Turn, prompt: str, title: str, call: str | None, agent: str) -> Turn:
        """Start a sub-agent of a running turn: a child session with one turn that the parent's agent reports into."""
        parent = turn.session
        depth, above = 1, parent.state.parent
        while above is not None and (found := self._host.catalogue.summary(above)) is not None:
            depth, above = depth + 1, found.parent
        if depth > limits.CHILD_DEPTH:
            raise BadRequest(f"Sub-agents are nested at most {limits.CHILD_DEPTH} deep.")
        state = parent.state
        child = await self.start(
            by="agent",
            agent=state.agent,
            model=state.model or None,
            cwd=state.cwd,
            title=title or agent,
            parent=parent.id,
            origin=Origin("agent", parent.id, turn.id, call),
        )
        message = Message(prompt, origin="agent")
        ident = child.new_id("t")
        await child.append(e.TurnStarted(turn=ident, message=message, by="agent"))
        return child.adopt(ident, message)

    async def delete(self, ident: str, *, by: str) -> str:
        """Close the session and its terminals and delete its history and that of its children. Return what is kept of
        its worktree, and why."""
        session = await self._host.get(ident)
        for child in self._host.catalogue.children(session.id):
            await self.delete(child.id, by=by)
        await session.close(by=by)
        for pending in list(session.state.queue):
            await session.queue.remove(pending.id, by=by)
        for part in self._host.parts:
            await part.forget(session, by)
        stays = await self._release(session, by)
        async with session.lock:
            if self._host.catalogue.get(session.id) is None:
                raise NotFound("session", ident)  # it was deleted concurrently
            await self._host.catalogue.remove(session, by)
        await self._host.catalogue.erase(session.channel)
        self._host.deleted(session)
        return stays

    async def _release(self, session: Session, by: str) -> str:
        """Remove the worktree together with the last session that uses it."""
        tree = session.state.worktree
        if not tree or any(
            other.cwd == session.summary.cwd for other in self._host.summaries() if other.id != session.id
        ):
            return ""
        stays = await self._host.worktrees.release(tree)
        if stays:
            await self._host.audit("worktree.kept", by, session=session.id, reason=stays)
        return stays


def copied(history: list[TurnState]) -> list[e.Event]:
    """Pack the turns into as few events as possible."""
    events: list[e.Event] = []
    turns: list[Json] = []
    size = 0
    for turn in history:
        length = len(msgspec.json.encode(turn))
        if turns and size + length > limits.EVENT_BYTES // 2:
            events.append(e.HistoryCopied(turns=turns))
            turns, size = [], 0
        turns.append(msgspec.to_builtins(turn))
        size += length
    return [*events, e.HistoryCopied(turns=turns)] if turns else events
