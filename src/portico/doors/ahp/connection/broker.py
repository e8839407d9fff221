"""Routes committed records to the connections that subscribed to them. One broker for the whole host.

`_hear` receives every committed batch after the host has folded it into its state and before any other observer. Each
subscribed target is translated and encoded once and sent to all its subscribers. Nothing here awaits, so no record can
be missed between a snapshot and its subscription.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from portico import limits
from portico.doors.ahp.act import changes, sign_in, terminal_commands
from portico.doors.ahp.act.documents import DOCUMENT_TOOLS
from portico.doors.ahp.act.drafts import Drafts
from portico.doors.ahp.connection.automation_feed import AutomationFeed
from portico.doors.ahp.connection.background import CHANGING, BackgroundWork
from portico.doors.ahp.connection.folder_watches import FolderWatches
from portico.doors.ahp.connection.replay_buffer import ReplayBuffers
from portico.doors.ahp.connection.subscription import Subscription
from portico.doors.ahp.view import card, config, customizations, git_meta, names, snapshots, terminals
from portico.doors.ahp.view.targets import ROOT, Target
from portico.doors.ahp.wire import origin
from portico.doors.ahp.wire.envelope import Outgoing
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.versions import SEED, SUPPORTED, Dialect
from portico.features.automations.automations import Automations
from portico.features.chats.move import ordered
from portico.features.people.view import View
from portico.features.sandboxes.offer import properties_in
from portico.features.terminals import events as te
from portico.features.terminals.state import TerminalState
from portico.features.terminals.terminals import Terminals
from portico.kernel import events as e
from portico.kernel.agent import AgentInfo
from portico.kernel.cache import Cache
from portico.kernel.errors import NotFound, PorticoError, SignInRequired
from portico.kernel.events import HOST, Channel, Record
from portico.kernel.session import Session
from portico.kernel.state import CallPart, SessionState, Summary, client_of
from portico.server.app import App
from portico.tasks import failed
from portico.workspace.git import in_work_tree

if TYPE_CHECKING:
    from portico.doors.ahp.act.watches import Watch
    from portico.doors.ahp.connection.connection import Connection

logger = logging.getLogger("portico.ahp")

_TURNS = frozenset({e.TurnStarted, e.TurnResumed, e.TurnEnded})
_REMOVALS = frozenset({e.SessionRemoved, te.TerminalRemoved})
_STREAMED = ("seed", "chat", "session")
_PROXIES = (e.ClientJoined, e.ApprovalAsked)
"""Events that contain the data of a client as one part; the client is named in `meta`."""

_FOLDERS = 10_000
"""Cache size: folders known to be inside a git work tree or not. Others are checked again."""
_KNOWN = 10_000
"""Clients remembered in memory; the log remembers them all."""


class ClientRecord(Struct):
    """What the host remembers of a client so that it can reconnect: its owner and its protocol version."""

    caller: str
    version: str = ""
    """Empty: it has never connected as an editor."""
    span: int = 1024
    """The `SPAN` of its numbers. They are invalid on a host with a different `SPAN`."""
    epoch: str = ""
    """The epoch of the log that its numbers refer to; 0.1.0 did not record it."""
    shows_apps: bool = False
    expects_drafts: bool = False
    locale: str = ""


class Broker:
    def __init__(self, app: App) -> None:
        self.app = app
        self.host = app.host
        self.terminals = app.features[Terminals]
        self.agents: dict[str, AgentInfo] = {}
        self.refreshing: dict[Target, object] = {}
        """The latest unfinished refresh of each changeset."""
        self.git_folders = Cache[str, bool](_FOLDERS)
        self._git_meta = Cache[str, Json](_FOLDERS)
        self.changeset_slots = asyncio.Semaphore(limits.CHANGESETS)
        self.on_git: Callable[[str], None] = lambda folder: None
        """Called when the git status of a folder changes."""
        self.connections: set[Connection] = set()
        self.clients: dict[str, Connection] = {}
        self.known = Cache[str, ClientRecord](_KNOWN)
        self.away: dict[str, Connection] = {}
        """Disconnected clients that may be running calls, during their grace period."""
        self._past = Cache[str, TerminalState](limits.SUBSCRIPTIONS)
        """Closed terminals, between reading their history and taking the snapshot."""
        self.watches: dict[str, Watch] = {}
        self.loading: dict[str, set[asyncio.Task[None]]] = {}
        """Plugins that are being read, by session."""
        self._dialects = {version: Dialect(version, self.host.now) for version in (SEED, *SUPPORTED)}
        self._hearers: dict[Target, set[Connection]] = {}
        self.replay = ReplayBuffers()
        self.drafts = Drafts(self)
        self.folder_watches = FolderWatches(self)
        self.background = BackgroundWork(self)
        self.automation_feed = AutomationFeed(self)
        self.passed = 0
        """The last record that was sent to all its subscribers."""
        self._active: set[str] = set()
        self._opened: asyncio.Future[None] | None = None
        self.host.connected = self.clients
        self.host.commits.on_batch("ahp", self._hear)
        self.host.members.watch(self._watched)
        self.terminals.watch(self._terminals_changed)
        self.terminals.paces.append(self._pace)

    async def open(self) -> None:
        """Before the first client is served: what has to be read. No client gets an empty catalogue. Concurrent clients
        share one attempt; after a failed one, the next client tries again."""
        if self._opened is None or failed(self._opened):
            self._opened = asyncio.ensure_future(self._open())
        await asyncio.shield(self._opened)

    async def _open(self) -> None:
        self._active = {each.id for each in self.host.list() if each.status in ("running", "waiting")}
        await self.describe_agents()
        self.drafts.check()

    @property
    def automations(self) -> Automations | None:
        """None: this host has no automations."""
        return getattr(self.app, "automations", None)

    @property
    def root_values(self) -> Json:
        return self.host.shared.settings

    async def describe_agents(self) -> None:
        described = {each.id: each for each in await self.host.describe()}
        if described != self.agents:
            self.agents = described
            self.tell_root(Outgoing("agentsChanged", {"agents": self._agents()}))

    async def _ask_for_sign_in(self, agent: str, client: str) -> None:
        """A turn failed without a token: notify the client whose token is used there, or else all clients."""
        await self.describe_agents()
        info = self.agents.get(agent)
        if info is None:
            return
        for connection in [self.clients[client]] if client in self.clients else list(self.connections):
            if connection.ready and (connection.dialect.seed or connection in self.hearers(ROOT)):
                sign_in.tell(connection, info)

    def remember(self, client_id: str, known: ClientRecord) -> None:
        """Remember the client immediately: it may reconnect before the log has written its record."""
        self.known[client_id] = known

    def dialect(self, version: str) -> Dialect:
        """The dialect of a version, shared by all its clients."""
        return self._dialects.get(version) or Dialect(version, self.host.now)

    # -- subscribers -------------------------------------------------------------------------------------------

    def add(self, target: Target, connection: "Connection") -> None:
        self._hearers.setdefault(target, set()).add(connection)
        self.folder_watches.check()
        self.replay.keep(target, connection.dialect.seed, self.host.log.seq)

    def remove(self, target: Target, connection: "Connection") -> None:
        hearers, seed = self._hearers.get(target), connection.dialect.seed
        if hearers is not None:
            hearers.discard(connection)
            if self.replay.buffer(target, seed) and not any(each.dialect.seed == seed for each in hearers):
                self.replay.retain(target, seed)
            if not hearers:
                del self._hearers[target]
                self.drafts.left(target.ident)
                self.folder_watches.check()

    def _watched(self) -> set[Channel]:
        """The sessions whose deltas are sent to clients or kept for them."""
        return {
            f"session/{target.ident}" for target in (*self._hearers, *self.replay.targets()) if target.kind in _STREAMED
        }

    def heard(self, kind: str) -> list[Target]:
        return [target for target in self._hearers if target.kind == kind]

    def hearers(self, target: Target) -> Iterable["Connection"]:
        return self._hearers.get(target, ())

    async def _pace(self, terminal: str) -> None:
        """The fastest subscriber of a terminal sets its pace; a client that does not keep up is closed as usual."""
        waiting = [asyncio.ensure_future(each.room()) for each in self.hearers(Target("terminal", terminal))]
        if waiting:
            _, slower = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for each in slower:
                each.cancel()

    # -- publishing --------------------------------------------------------------------------------------------

    def _hear(self, records: Sequence[Record]) -> None:
        subscriptions: dict[Channel, list[Subscription]] = {}
        for record in records:
            try:
                self._pass_on(record, subscriptions)
            except Exception:  # a bug in this door must never stop the log
                self.replay.clear()
                logger.exception("the record %d was not passed on", record.seq)
            self.passed = record.seq
        if self.connections:
            self.automation_feed.hear(records)

    def _pass_on(self, record: Record, subscriptions: dict[Channel, list[Subscription]]) -> None:
        event = record.event
        kind = type(event)
        if kind in _TURNS:
            self._count(record, event)
        elif isinstance(event, e.ToolEnded):
            terminal_commands.narrow(self.host, record.channel.removeprefix("session/"), event)
        if not self.connections and not self.replay:
            return
        if kind in CHANGING:
            self.background.hear(record)
        concerned = subscriptions.get(record.channel)
        if concerned is None:
            concerned = [
                Subscription(self, target, self._hearers.get(target, ())) for target in self._concerned(record)
            ]
            if record.channel != HOST:  # there it depends on the event
                subscriptions[record.channel] = concerned
        author, kinds = self._author(event)
        for subscription in concerned:
            own = author if subscription.target.kind in kinds else None
            if own is not None or not subscription.silent:
                subscription.pass_on(record, own)
        if kind in _REMOVALS:
            self.replay.drop(event.session if isinstance(event, e.SessionRemoved) else record.channel.partition("/")[2])

    def _concerned(self, record: Record) -> list[Target]:
        kind, _, ident = record.channel.partition("/")
        if kind == "terminal":
            return [Target("terminal", ident)]
        if kind == "session":
            session = self.host.find(ident)
            if session is None or not session.loaded:
                self.replay.clear()  # it cannot be published now, so no buffer is complete
                return []
            root = self.host.catalogue.root(session).id
            return [
                Target("seed", ident),
                Target("chat", ident),
                Target("session", root),
                Target("annotations", ident),
            ]
        if isinstance(record.event, e.SessionRemoved):
            gone = self.host.find(record.event.session)
            if gone is not None and gone.summary.parent is not None:
                return [Target("session", self.host.catalogue.root(gone).id)]
        return [ROOT] if isinstance(record.event, e.ClientKept) else []

    def _author(self, event: e.Event) -> "tuple[Connection | None, tuple[str, ...]]":
        """The client that caused the event, and the kind of target where it gets the echo without a subscription."""
        by = getattr(event, "by", "") or (event.meta.get("by", "") if isinstance(event, _PROXIES) else "")
        client, kind = origin.speaker(by)
        author = self.clients.get(client) if client else None
        if author is None or author.behind:
            return None, ()
        return author, ("seed",) if author.dialect.seed and kind == "session" else (kind,)

    def state(self, ident: str) -> SessionState | None:
        session = self.host.catalogue.in_use(ident)
        return session.state if session is not None and session.loaded else None

    def activity(self, ident: str) -> str:
        """The activity of a session. Empty if the session is not in memory."""
        state = self.state(ident)
        return card.activity(state) if state is not None else ""

    # -- the root ----------------------------------------------------------------------------------------------

    def _count(self, record: Record, event: e.Event) -> None:
        ident = record.channel.removeprefix("session/")
        before = len(self._active)
        if isinstance(event, e.TurnEnded):
            self._active.discard(ident)
            session = self.host.find(ident)
            if session is not None and self.connections and _worked(session, event.turn):
                self.host.own(self._changed(session), f"ahp changes {ident}")
            if event.error is not None and event.error.code == SignInRequired.code and session is not None:
                asked = client_of(session.state, event.turn) if session.loaded else ""
                self.host.own(self._ask_for_sign_in(session.summary.agent, asked), f"ahp sign-in {ident}")
        else:
            self._active.add(ident)
        if len(self._active) != before:
            self.tell_root(self._activity_news)

    async def _changed(self, session: Session) -> None:
        try:
            if await self._look_for_git(session.summary.cwd):
                changes.announce(self, session)
            await self._ask_git(session.summary.cwd)
            await changes.changed(self, session)
        except PorticoError as error:  # a broken repository or a full disk must not fail a turn
            logger.info("the changes of %s are not known: %s", session.id, error.message)

    async def folder_changed(self, folder: str, *, files: bool) -> None:
        """Called when a person, an editor or a program has changed a folder with subscribers: its `files`, or only
        its git status."""
        try:
            await self._ask_git(folder)
            for target in self.heard("changeset") if files else ():
                if changes.shows_folder(self, target, folder):
                    await changes.refresh(self, target)
        except PorticoError as error:
            logger.info("the changes of %s are not known: %s", folder, error.message)

    def _terminals_changed(self) -> None:
        self.tell_root(self._terminal_news)

    def tell_root(self, said: Outgoing | Callable[[View], Outgoing]) -> None:
        """Send facts about the whole host, as each client sees it. They replace the previous values, so a reconnect
        needs only the latest."""
        for connection in list(self.hearers(ROOT)):
            connection.say(ROOT, said if isinstance(said, Outgoing) else said(connection.view))

    def root_now(self, view: View) -> list[Outgoing]:
        """For a reconnecting client: the current values of the same facts."""
        return [
            Outgoing("agentsChanged", {"agents": self._agents()}),
            self._activity_news(view),
            self._terminal_news(view),
            Outgoing("configChanged", {"config": self.root_values, "replace": True}),
        ]

    def _agents(self) -> list[Json]:
        return [snapshots.agent(each) | customizations.offered(each) for each in self.agents.values()]

    def _activity_news(self, view: View) -> Outgoing:
        return Outgoing("activeSessionsChanged", {"activeSessions": self._active_of(view)})

    def _active_of(self, view: View) -> int:
        return len(self._active) if view.whole else sum(view.sees(f"session/{each}") for each in self._active)

    def _terminal_news(self, view: View) -> Outgoing:
        return Outgoing("terminalsChanged", {"terminals": self._terminals(view)})

    def _terminals(self, view: View) -> list[Json]:
        return [terminals.info(self.host, each) for each in view.terminals()]

    # -- whole states ------------------------------------------------------------------------------------------

    def snapshot(self, target: Target, dialect: Dialect, view: View, last: int | None = None) -> Json:
        """The state of a target whose session is loaded."""
        match target.kind:
            case "root":
                return {
                    "agents": self._agents(),
                    "activeSessions": self._active_of(view),
                    "terminals": self._terminals(view),
                    "config": {"schema": config.ROOT_SCHEMA, "values": self.root_values},
                }
            case "terminal":
                found = self.terminals.find(target.ident) or self._past[target.ident]
                return terminals.state(self.host, found)
        state = self.state(target.ident)
        assert state is not None
        match target.kind:
            case "seed":
                listed = customizations.seed(self.agents.get(state.agent), state.client_data)
                extra = {"customizations": listed} if listed else {}
                shown = snapshots.seed_session(state, self._tools(state), self.config_of(state), dialect)
                return shown | extra | self.meta(state)
            case "chat":
                work = self.background.of(state) if dialect.since("1.0.0") else []
                chat = snapshots.chat(state, dialect, self.source(state), last, self.changesets(state, of_chat=True))
                return chat | ({"backgroundWork": work} if work else {})
            case "annotations":
                return snapshots.annotations(state)
        return self._session(state, dialect)

    def _session(self, state: SessionState, dialect: Dialect) -> Json:
        below = self.host.catalogue.descendants(state.id)
        states = [state, *(found for each in below if (found := self.state(each.id)) is not None)]
        root = snapshots.chat_head(state, self.source(state), dialect)
        shown = snapshots.session(
            state,
            ordered(
                [root, *(line for each in below if (line := self.chat_line(each.id, dialect)) is not None)],
                [names.chat_uri(each.summary) for ident in state.chat_order if (each := self.host.find(ident))],
                itemgetter("resource"),
            ),
            [each for chat in states for each in snapshots.input_needed(chat)],
            self._tools(state),
            self.config_of(state),
            self.changesets(state),
            dialect,
        )
        offered = self.customizations(state)
        extra = {"customizations": offered} if offered else {}
        made_by = self.automation_feed.origin(state.by) if dialect.since("0.9.0") else {}
        return shown | extra | self.meta(state) | made_by

    def chat_line(self, ident: str, dialect: Dialect) -> Json | None:
        session = self.host.find(ident)
        if session is None:
            return None
        if session.loaded:
            return snapshots.chat_head(session.state, self.source(session.state), dialect)
        return snapshots.chat_line(session.summary, self.source(session.summary), dialect)

    def source(self, of: Summary | SessionState) -> str:
        """The chat that this one was made from."""
        above = self.host.find(of.origin.session) if of.origin is not None else None
        return snapshots.source(of, above.summary if above is not None else None)

    def config_of(self, state: SessionState) -> Json:
        is_git, isolation = self.git_folders.get(state.cwd, False), state.config.get("isolation")
        sandbox = properties_in(self.host, state.cwd, state.agent)
        schema = config.session_schema(self.agents.get(state.agent), sandbox, is_git=is_git, isolation=isolation)
        return {"schema": schema, "values": state.config}

    def customizations(self, state: SessionState) -> list[Json]:
        return customizations.modern(self.agents.get(state.agent), state.client_data)

    def changesets(self, state: SessionState, *, of_chat: bool = False) -> list[Json]:
        is_git = self.git_folders.get(state.cwd, False)
        return changes.of_chat(state, is_git=is_git) if of_chat else changes.catalogue(state, is_git=is_git)

    def _tools(self, state: SessionState) -> list[e.ToolSpec]:
        """Omits the tools that editors add and remove: clients are not notified when this list changes."""
        return [spec for spec in self.host.tools_of(state) if spec.name not in DOCUMENT_TOOLS]

    async def prepare(self, target: Target) -> Session | None:
        """Loads what a snapshot of the target needs."""
        if target.kind == "terminal" and self.terminals.find(target.ident) is None:
            await self._recall(target.ident)
        if target.kind not in ("seed", "chat", "session", "annotations"):
            return None
        session = await self.host.get(target.ident)
        await self._look_for_git(session.state.cwd)
        if target.kind in ("session", "seed"):
            asking = self._ask_git(session.summary.cwd)  # only the first subscriber waits for git
            if session.summary.cwd in self._git_meta:
                self.host.own(asking, f"ahp git {session.id}")
            else:
                await asking
        return session

    async def _recall(self, ident: str) -> None:
        """Load a closed terminal for the following snapshot."""
        past = await self.terminals.past(ident)
        if past is None:
            raise NotFound("terminal", ident)
        self._past[ident] = past

    async def _ask_git(self, folder: str) -> None:
        """Read the git status of a folder, and notify the clients of sessions there when it has changed."""
        if not self.git_folders.get(folder, False):
            return
        before, found = self._git_meta.get(folder, {}), await git_meta.of_folder(Path(folder))
        self._git_meta[folder] = found
        if found == before:
            return
        self.on_git(folder)
        if not before:
            return
        for target in (*self.heard("session"), *self.heard("seed")):
            if (state := self.state(target.ident)) is not None and state.cwd == folder:
                for connection in list(self.hearers(target)):
                    connection.say(target, self.meta_changed(state))

    def besides(self, of: Summary) -> Json:
        """What a catalogue entry contains in addition to the session's summary."""
        return self.meta(of) | self.automation_feed.origin(of.by)

    def meta(self, of: SessionState | Summary) -> Json:
        """Empty for a folder that has not been checked yet."""
        found = self._git_meta.get(of.cwd, {})
        return {"_meta": {"git": found}} if found else {}

    def meta_changed(self, state: SessionState) -> Outgoing:
        return Outgoing("metaChanged", self.meta(state))

    async def _look_for_git(self, folder: str) -> bool:
        """Return True when the folder has become a repository since the last check."""
        if self.git_folders.get(folder):
            return False
        self.git_folders[folder] = in_work_tree(Path(folder)) and await config.is_git(Path(folder))
        return self.git_folders[folder]


def _worked(session: Session, turn: str) -> bool:
    """Whether the turn has tool calls. Text alone changes no files."""
    found = session.state.turn(turn) if session.loaded else None
    return found is not None and any(isinstance(part, CallPart) for part in found.parts)
