"""Projects and their conversations.

A project is a folder: from the settings and flags (which change while we run), or added over HTTP. Its id is a short
hash of the folder's real path, because absolute paths leak and are noisy; the path itself is accepted as an alias.
Each project has one conversation with an agent, an ordinary session that every other door sees; a message that names
another agent goes to the project's conversation with that one.
"""

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct

from portico import limits
from portico.features.people.view import View
from portico.features.projects.commands import AddProject, ClearProject, ForgetProject, OpenProject, Project
from portico.kernel import commands as c
from portico.kernel.cache import Cache
from portico.kernel.errors import AlreadyExists, BadRequest, Conflict, Forbidden, LogUnavailable, NotFound
from portico.kernel.events import HOST, Audited, Channel, Record, SessionRemoved, SessionStarted, number_of
from portico.kernel.feature import Feature, guard, handle, receive
from portico.kernel.folders import check_folder
from portico.kernel.host import Host
from portico.kernel.log.feed import Follower
from portico.kernel.session import Session
from portico.kernel.state import Summary
from portico.server.home import Home
from portico.workspace.git import repository
from portico.workspace.jail import Jail

BUILT_IN = "loop"
DEFAULT = "default"
AUDIT_CHARS = 500
"""What an audit record quotes of a path."""
PROJECTS_MAX = 1_000
"""Maximum number of projects added over HTTP; more indicates a runaway script."""
DELETED_MAX = 1_000
"""Deleted conversations whose last events may still be on the way to a reader."""
_ADDED, _FORGOTTEN, _HEARD = "project.added", "project.forgotten", "project.conversation"
_CONVERSATION = "anywhere"
_PROJECTS = "anywhere.projects"
_CHATS_AFTER = "anywhere.chats_after"


class ProjectConversation(Struct, omit_defaults=True):
    project: str
    agent: str
    cleared: bool = False
    """A new conversation has replaced it; it stays stored."""
    model: str | None = None
    """The model from the settings, if no client chose one. It changes with the settings."""


class _Kept(Struct):
    added: dict[str, int] = {}
    forgotten: list[str] = []
    isolated: list[str] = []


def _chat(of: Summary | SessionStarted) -> str:
    """The real folder of a session in which a person talks; empty: it is a sub-agent's, or a step of a job."""
    is_chat = of.parent is None and not of.by.startswith("task:")
    return os.path.realpath(of.cwd) if is_chat else ""


class Projects(Feature):
    name = "projects"
    commands = (AddProject, ForgetProject, OpenProject, ClearProject)

    needs = (Home,)

    def __init__(self, host: Host, home: Home) -> None:
        super().__init__(host)
        self._host = host
        self._home = home.path
        self.models: Sequence[str] = ()
        """The setting `models`."""
        self._conversations: dict[str, ProjectConversation] = {}
        self._deleted = Cache[str, str](DELETED_MAX)
        """The projects of deleted ones: their last events may still be on the way to readers."""
        self._kept = _Kept()
        self._changes = 0
        """Changes of the list by other hosts; what was read before the last one is read again."""
        self._read_at = -1
        self._loaded = False
        self._followers: WeakKeyDictionary[Follower, str | None] = WeakKeyDictionary()
        self._chats: dict[str, str] = {}
        """Sessions that are no conversations of projects, such as those of editors; see `_chat`."""
        self._chats_after = 0
        """The number of the last session before this home had chats in projects: what clients know of it stays."""
        self._folders: list[tuple[str, str]] = []
        self._folders_of: object = None
        self._since = host.now()

    @guard((AddProject, ForgetProject).__contains__)
    def _check_admin(self, command: c.Command, caller: c.Caller) -> None:
        """All people share the list: a folder that one adds or removes is where another one's next message starts."""
        caller.require_all("All people share the projects")

    async def ready(self) -> "Projects":
        """Read what is stored, for callers that hold no lock."""
        await self._host.members.hear()
        async with self.lock:
            await self._read()
        return self

    async def _read(self) -> None:
        """Read the list and the conversations, unless they are known. A read that fails leaves them unknown: the next
        caller reads again, and nothing is written from an empty list."""
        if self._read_at != self._changes:
            read_at = self._changes  # before the await: a change by another host during it is read again
            data = await self._host.log.get_kv(HOST, _PROJECTS)
            self._kept = msgspec.json.decode(data, type=_Kept) if data else _Kept()
            self._read_at = read_at
        if not self._loaded:
            await self._load()
            self._loaded = True

    async def _load(self) -> None:
        for channel, note in (await self._host.log.list_kv(_CONVERSATION)).items():
            session = channel.removeprefix("session/")
            if self._host.has(session) and session not in self._conversations:
                self._conversations[session] = msgspec.json.decode(note, type=ProjectConversation)
        await self._load_chats_after()
        await self._go_on([each.id for each in self._host.list() if each.queued])

    async def _load_chats_after(self) -> None:
        log = self._host.log
        if data := await log.get_kv(HOST, _CHATS_AFTER):
            self._chats_after = msgspec.json.decode(data, type=int)
            return
        # The sessions in `_chats` were started by this host, which has this rule.
        older = (number_of(each.id) for each in self._host.summaries() if each.id not in self._chats)
        self._chats_after = max(older, default=0)
        log.put_kv(HOST, _CHATS_AFTER, msgspec.json.encode(self._chats_after))

    @receive(Audited)
    def _follow(self, record: Record) -> None:
        """Follow what other hosts do to projects: it is in the audit record, in one commit with the stored value."""
        event = record.event
        if not self._host.members.several or not isinstance(event, Audited):
            return
        if event.action == _HEARD:
            self._begin(event.detail["session"], msgspec.convert(event.detail["conversation"], ProjectConversation))
        elif event.action in (_ADDED, _FORGOTTEN):
            self._changes += 1

    async def take_over(self, channels: Collection[Channel]) -> None:
        sessions = [each.removeprefix("session/") for each in channels if each.startswith("session/")]
        self._host.own(self._go_on(sessions, interrupted=True), "go on with projects")

    async def _go_on(self, sessions: Iterable[str], *, interrupted: bool = False) -> None:
        """Release held queues with messages from programs. After a crash a queue waits for a person, but no person
        watches these, and each of their messages must get a result."""
        for ident in [each for each in sessions if each in self._conversations]:
            session = await self._host.get(ident)
            if not self._host.members.owns(session.channel):
                continue
            if interrupted:
                await session.wait_until(lambda state: state.active is None)
            if session.state.queue_held and any(
                {"mode", "command"} & each.message.meta.keys() for each in session.state.queue
            ):
                await session.queue.release(by="host")

    @receive(SessionRemoved)
    def _removed(self, record: Record) -> None:
        assert isinstance(record.event, SessionRemoved)
        deleted = self._conversations.pop(record.event.session, None)
        if deleted is not None:
            self._deleted[record.event.session] = deleted.project
        self._chats.pop(record.event.session, None)

    @receive(SessionStarted)
    def _started(self, record: Record) -> None:
        session, event = record.channel.removeprefix("session/"), record.event
        assert isinstance(event, SessionStarted)
        if session not in self._conversations:
            self._chats[session] = _chat(event)
            self._notify_followers(session, self._located(session))

    # -- projects ----------------------------------------------------------------------------------------------

    def all(self) -> list[Project]:
        """The settings' own first, then what was added, then those of other hosts; `default` when there is none."""
        forgotten = set(self._kept.forgotten)
        found: dict[str, Project] = {}
        for path in self._host.workspaces:
            project = _project(str(path), self._since)
            if project.path not in forgotten and os.path.isdir(project.path):
                found[project.id] = project
        for folder, added in self._kept.added.items():
            project = _project(folder, added, folder in self._kept.isolated)
            found.setdefault(project.id, project)
        for folder in self._host.members.folders:  # another place: a conversation begins where the folder is
            project = _project(folder, self._since)
            if project.path not in forgotten:
                found.setdefault(project.id, project)
        return list(found.values()) or [self._default()]

    def _default(self) -> Project:
        folder = self._home / "projects" / DEFAULT
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Project(DEFAULT, DEFAULT, os.path.realpath(folder), self._since)

    def get(self, ident: str | None) -> Project:
        """Find a project by id or path; None: the first one."""
        projects = self.all()
        if ident is None:
            return projects[0]
        path = os.path.realpath(ident) if os.path.isabs(ident) and "\0" not in ident else None
        found = next((each for each in projects if each.id == ident or each.path == path), None)
        if found is None:
            raise NotFound("project", ident, f"There are: {', '.join(each.id for each in projects)}.")
        return found

    # Commands run under the lock: they declare it.

    async def _current(self) -> None:
        await self._host.members.hear()
        await self._read()

    @handle
    async def _add(self, command: AddProject, caller: c.Caller) -> Project:
        await self._current()
        folder, worktree = _folder(command.path), command.worktree
        if worktree:
            await repository(Path(folder))  # otherwise the first message would fail
        if any(each.path == folder for each in self.all()):
            raise AlreadyExists(f"There is a project {folder!r} already.")
        if len(self._kept.added) >= PROJECTS_MAX:
            raise Conflict(f"There are {PROJECTS_MAX} projects; forget some.")
        kept = self._kept
        await self._keep(
            _ADDED,
            caller.by,
            folder,
            _Kept(
                added={**kept.added, folder: self._host.now()},
                forgotten=[each for each in kept.forgotten if each != folder],
                isolated=[*kept.isolated, folder] if worktree else kept.isolated,
            ),
        )
        return _project(folder, self._kept.added[folder], worktree)

    @handle
    async def _forget(self, command: ForgetProject, caller: c.Caller) -> c.Done:
        """Forget a project; its folder and the stored conversations stay."""
        await self._current()
        project = self.get(command.project)
        if project.id == DEFAULT:
            raise Conflict("The default project stays until there is another.")
        kept, path = self._kept, project.path
        everywhere = (*map(str, self._host.workspaces), *self._host.members.folders)
        configured = any(_project(each, 0).path == path for each in everywhere)
        await self._keep(
            _FORGOTTEN,
            caller.by,
            path,
            _Kept(
                added={folder: at for folder, at in kept.added.items() if folder != path},
                forgotten=[*kept.forgotten, path] if configured else kept.forgotten,
                isolated=[each for each in kept.isolated if each != path],
            ),
        )
        return c.Done()

    async def _keep(self, action: str, by: str, path: str, kept: _Kept) -> None:
        """Store the list in one commit with its audit record. It takes effect when it is durable; a failed write is
        undone."""
        log = self._host.log
        log.put_kv(HOST, _PROJECTS, msgspec.json.encode(kept))
        try:
            await self._host.audit(action, by, path=path[:AUDIT_CHARS])
        except LogUnavailable:
            log.put_kv(HOST, _PROJECTS, msgspec.json.encode(self._kept))
            raise
        self._kept = kept

    def follower(self, project: str | None) -> Follower:
        """A follower of all current and future conversations of a project (None: of all projects). If there are too
        many to subscribe to each, it follows all channels and skips the others."""
        sessions = [each for each, found in self._conversations.items() if project in (None, found.project)]
        sessions += [each for each, found in self._located_chats() if project in (None, found)]
        many = len(sessions) > limits.SUBSCRIPTIONS
        follower = Follower(None if many else [f"session/{each}" for each in sessions])
        self._followers[follower] = project
        return follower

    # -- conversations -----------------------------------------------------------------------------------------

    def of_session(self, session: str) -> str | None:
        """The project that a session belongs to."""
        found = self._conversations.get(session)
        return found.project if found is not None else self._deleted.get(session) or self._located(session)

    def chats(self, project: str, is_theirs: Callable[[str], bool]) -> list[str]:
        """The ids of the sessions that other clients, such as editors, started in a project's folder, oldest first."""
        found = [session for session, located in self._located_chats() if located == project and is_theirs(session)]
        return sorted(found, key=number_of)

    def _located_chats(self) -> list[tuple[str, str]]:
        for each in self._host.summaries():
            if each.id not in self._chats and each.id not in self._conversations:
                self._chats[each.id] = _chat(each)
        located = [(session, self._located(session)) for session in self._chats]
        return [(session, project) for session, project in located if project is not None]

    def _located(self, session: str) -> str | None:
        """The project in whose folder, or below, a chat works; of several, the innermost."""
        cwd = self._chats.get(session)
        if not cwd or session in self._conversations or 0 < number_of(session) <= self._chats_after:
            return None
        known = (self._kept, tuple(self._host.workspaces), tuple(self._host.members.folders))
        if self._folders_of != known:
            projects = sorted(self.all(), key=lambda each: -len(each.path))
            self._folders, self._folders_of = [(each.path, each.id) for each in projects], known
        return next((ident for path, ident in self._folders if f"{cwd}/".startswith(f"{path.rstrip('/')}/")), None)

    def _notify_followers(self, session: str, project: str | None) -> None:
        for follower, wanted in self._followers.items() if project is not None else ():
            if wanted in (None, project):
                follower.add(f"session/{session}")

    def sessions(self, project: str, is_theirs: Callable[[str], bool], *, cleared: bool = False) -> list[str]:
        """The ids of those of a project's conversations that are for a caller, oldest first."""
        return [
            session
            for session, each in sorted(self._conversations.items(), key=lambda item: number_of(item[0]))
            if each.project == project and (cleared or not each.cleared) and is_theirs(session)
        ]

    @handle
    async def _open(self, command: OpenProject, caller: c.Caller) -> Summary:
        """Return the project's conversation with that agent (None: with the one it has); start it if there is none."""
        await self._current()
        project, agent = self.get(command.project), command.agent
        if command.clear:
            await self._clear_all(project, caller)
        for ident in self.sessions(project.id, View(self._host, caller).owns):
            if agent is None or self._conversations[ident].agent == agent:
                session = await self._host.get(ident)
                if not session.state.closed:
                    await self._follow_settings(session)
                    return session.summary
                self._conversations[ident].cleared = True  # it was closed through another door
                await self._note(ident)
        chosen = agent or await self._answering()
        start = c.StartSession(agent=chosen, cwd=project.path, title=project.name, worktree=project.worktree)
        started: Summary = await self._host.do(start, caller.step("start"))
        self._begin(started.id, ProjectConversation(project.id, chosen, model=started.model))
        await self._note(started.id)
        return started

    def _begin(self, session: str, conversation: ProjectConversation) -> None:
        new = session not in self._conversations
        self._conversations[session] = conversation
        if new:
            self._notify_followers(session, conversation.project)

    async def _follow_settings(self, session: Session) -> None:
        """Apply a changed `models` setting, unless a client chose a model for this conversation."""
        conversation, models = self._conversations[session.id], self.models
        if conversation.agent != BUILT_IN or not models or conversation.model != session.state.model != models[0]:
            return
        await session.do(c.SetModel(session=session.id, model=models[0]), "settings")
        conversation.model = models[0]
        await self._note(session.id)

    async def _answering(self) -> str:
        """The built-in agent when it has a model, else the first that is ready."""
        infos = sorted(await self._host.describe(), key=lambda info: (info.missing is not None, info.id != BUILT_IN))
        if not infos:
            raise Conflict("This host has no agent.")
        return infos[0].id

    @handle
    async def _clear(self, command: ClearProject, caller: c.Caller) -> c.Done:
        await self._current()
        await self._clear_all(self.get(command.project), caller)
        return c.Done()

    async def _clear_all(self, project: Project, caller: c.Caller) -> None:
        for session in self.sessions(project.id, View(self._host, caller).owns):
            self._conversations[session].cleared = True
            await self._note(session)

    async def _note(self, session: str) -> None:
        conversation = self._conversations[session]
        self._host.log.put_kv(f"session/{session}", _CONVERSATION, msgspec.json.encode(conversation))
        if self._host.members.several:
            await self._host.audit(_HEARD, "host", session=session, conversation=msgspec.to_builtins(conversation))
        await self._host.log.flush()


def _project(path: str, added: int, worktree: bool = False) -> Project:
    whole = os.path.realpath(path)
    ident = hashlib.sha256(os.fsencode(whole)).hexdigest()[:12]
    return Project(ident, Path(whole).name or whole, whole, added, worktree)


def _folder(path: str) -> str:
    """The real path of a folder that tools can work in."""
    try:
        return str(Jail([check_folder(path)]).root)
    except (BadRequest, Forbidden) as error:
        raise BadRequest(error.message, field="path") from None
