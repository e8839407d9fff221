"""Projects and their conversations.

A project is a folder: from the settings and flags (which change while we run), or added over HTTP. Its id is a short
hash of the folder's real path, because absolute paths leak and are noisy; the path itself is accepted as an alias.
Each project has one conversation with an agent, an ordinary session that every other door sees; a message that names
another agent goes to the project's conversation with that one.
"""

import asyncio
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from portico.cache import Cache
from portico.commands import Caller, StartSession
from portico.doors.app import App
from portico.errors import AlreadyExists, BadRequest, Conflict, Forbidden, LogUnavailable, NotFound
from portico.events import HOST, number_of
from portico.host.folders import check_folder
from portico.host.session import Session
from portico.host.state import Summary
from portico.workspace.git import repository
from portico.workspace.jail import Jail

BUILT_IN = "loop"
DEFAULT = "default"
AUDIT_CHARS = 500
"""What an audit record quotes of a path."""
PROJECTS_MAX = 1_000
"""Projects added over HTTP; more is a script gone wild."""
DELETED_MAX = 1_000
"""Deleted conversations whose last events may still be on the way to a reader."""
_CONVERSATION = "anywhere"
_PROJECTS = "anywhere.projects"


class Project(Struct, frozen=True):
    id: str
    name: str
    path: str
    added: int = 0
    worktree: bool = False
    """Each conversation works in a git worktree of its own."""


class Conversation(Struct, omit_defaults=True):
    project: str
    agent: str
    cleared: bool = False
    """A fresh one has taken its place; it stays stored."""
    model: str | None = None
    """The model that was nobody's choice but the settings': it changes with them."""


class _Kept(Struct):
    added: dict[str, int] = {}
    forgotten: list[str] = []
    isolated: list[str] = []


class Projects:
    def __init__(self, app: App) -> None:
        self._app = app
        self._host = app.host
        self._conversations: dict[str, Conversation] = {}
        self._deleted = Cache[str, str](DELETED_MAX)
        """The projects of deleted ones: their last events may still be on the way to readers."""
        self._kept = _Kept()
        self._ready = False
        self._lock = asyncio.Lock()
        self._since = app.host.now()
        app.host.watch(self._changed)

    async def ready(self) -> "Projects":
        """What a host before this one knew. Sessions and projects are named beside their channels in the log."""
        async with self._lock:
            if not self._ready:
                log = self._host.log
                data = await log.get_kv(HOST, _PROJECTS)
                self._kept = msgspec.json.decode(data, type=_Kept) if data else _Kept()
                for channel, note in (await log.list_kv(_CONVERSATION)).items():
                    session = channel.removeprefix("session/")
                    if self._host.has(session):
                        self._conversations[session] = msgspec.json.decode(note, type=Conversation)
                await self._go_on()
                self._ready = True
        return self

    async def _go_on(self) -> None:
        """After a crash a queue waits for a person. Nobody looks at what programs have sent here, and each of their
        messages was promised an end: so these go on."""
        for ident in [each.id for each in self._host.list() if each.queued and each.id in self._conversations]:
            session = await self._host.get(ident)
            if session.state.queue_held and any(
                {"mode", "command"} & each.message.meta.keys() for each in session.state.queue
            ):
                await session.queue.release(by="host")

    def _changed(self, session: str, summary: Summary | None) -> None:
        deleted = self._conversations.pop(session, None) if summary is None else None
        if deleted is not None:
            self._deleted[session] = deleted.project

    # -- projects ----------------------------------------------------------------------------------------------

    def all(self) -> list[Project]:
        """The settings' own first, then what was added; `default` when there is none."""
        forgotten = set(self._kept.forgotten)
        found: dict[str, Project] = {}
        for path in self._app.workspaces:
            project = _project(str(path), self._since)
            if project.path not in forgotten and os.path.isdir(project.path):
                found[project.id] = project
        for folder, added in self._kept.added.items():
            project = _project(folder, added, folder in self._kept.isolated)
            found.setdefault(project.id, project)
        return list(found.values()) or [self._default()]

    def _default(self) -> Project:
        folder = self._app.home.path / "projects" / DEFAULT
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Project(DEFAULT, DEFAULT, os.path.realpath(folder), self._since)

    def get(self, ident: str | None) -> Project:
        """By id or path; the first one when nothing is said."""
        projects = self.all()
        if ident is None:
            return projects[0]
        path = os.path.realpath(ident) if os.path.isabs(ident) and "\0" not in ident else None
        found = next((each for each in projects if each.id == ident or each.path == path), None)
        if found is None:
            raise NotFound("project", ident, f"There are: {', '.join(each.id for each in projects)}.")
        return found

    async def add(self, path: str, by: str, worktree: bool = False) -> Project:
        folder = _folder(path)
        if worktree:
            await repository(Path(folder))  # or the first message would be the one to fail
        async with self._lock:
            if any(each.path == folder for each in self.all()):
                raise AlreadyExists(f"There is a project {folder!r} already.")
            if len(self._kept.added) >= PROJECTS_MAX:
                raise Conflict(f"There are {PROJECTS_MAX} projects; forget some.")
            kept = self._kept
            await self._keep(
                _Kept(
                    added={**kept.added, folder: self._host.now()},
                    forgotten=[each for each in kept.forgotten if each != folder],
                    isolated=[*kept.isolated, folder] if worktree else kept.isolated,
                )
            )
        await self._host.audit("project.added", by, path=folder[:AUDIT_CHARS])
        return _project(folder, self._kept.added[folder], worktree)

    async def forget(self, ident: str, by: str) -> None:
        """The folder and the stored conversations stay."""
        project = self.get(ident)
        if project.id == DEFAULT:
            raise Conflict("The default project stays until there is another.")
        async with self._lock:
            kept, path = self._kept, project.path
            configured = any(_project(str(each), 0).path == path for each in self._app.workspaces)
            await self._keep(
                _Kept(
                    added={folder: at for folder, at in kept.added.items() if folder != path},
                    forgotten=[*kept.forgotten, path] if configured else kept.forgotten,
                    isolated=[each for each in kept.isolated if each != path],
                )
            )
        await self._host.audit("project.forgotten", by, path=project.path[:AUDIT_CHARS])

    async def _keep(self, kept: _Kept) -> None:
        """Holds from when it is durable; what the disk refuses was never there."""
        log = self._host.log
        log.put_kv(HOST, _PROJECTS, msgspec.json.encode(kept))
        try:
            await log.flush()
        except LogUnavailable:
            log.put_kv(HOST, _PROJECTS, msgspec.json.encode(self._kept))
            raise
        self._kept = kept

    # -- conversations -----------------------------------------------------------------------------------------

    def of_session(self, session: str) -> str | None:
        """The project that a session belongs to."""
        found = self._conversations.get(session)
        return found.project if found is not None else self._deleted.get(session)

    def sessions(self, project: str, is_theirs: Callable[[str], bool], *, cleared: bool = False) -> list[str]:
        """The ids of those of a project's conversations that are for a caller, oldest first."""
        return [
            session
            for session, each in sorted(self._conversations.items(), key=lambda item: number_of(item[0]))
            if each.project == project and (cleared or not each.cleared) and is_theirs(session)
        ]

    async def conversation(self, project: Project, agent: str | None, who: Caller) -> Session:
        """The project's conversation with that agent (with the one it has, when None); begun if need be."""
        async with self._lock:
            for ident in self.sessions(project.id, self._app.view(who).owns):
                if agent is None or self._conversations[ident].agent == agent:
                    session = await self._host.get(ident)
                    if not session.state.closed:
                        await self._follow_settings(session)
                        return session
                    self._conversations[ident].cleared = True  # somebody closed it at another door
                    await self._note(ident)
            chosen = agent or await self._answering()
            command = StartSession(agent=chosen, cwd=project.path, title=project.name, worktree=project.worktree)
            started: Summary = await self._host.do(command, who)
            self._conversations[started.id] = Conversation(project.id, chosen, model=started.model)
            await self._note(started.id)
            return await self._host.get(started.id)

    async def _follow_settings(self, session: Session) -> None:
        """`models` has changed since, and nobody has chosen another one for this conversation."""
        conversation, models = self._conversations[session.id], self._app.settings.models
        if conversation.agent != BUILT_IN or not models or conversation.model != session.state.model != models[0]:
            return
        await session.set_model(models[0], by="settings")
        conversation.model = models[0]
        await self._note(session.id)

    async def _answering(self) -> str:
        """The built-in agent when it has a model, else the first that is ready."""
        infos = sorted(await self._host.describe(), key=lambda info: (info.missing is not None, info.id != BUILT_IN))
        if not infos:
            raise Conflict("This host has no agent.")
        return infos[0].id

    async def clear(self, project: Project, who: Caller) -> None:
        async with self._lock:
            for session in self.sessions(project.id, self._app.view(who).owns):
                self._conversations[session].cleared = True
                await self._note(session)

    async def _note(self, session: str) -> None:
        self._host.log.put_kv(f"session/{session}", _CONVERSATION, msgspec.json.encode(self._conversations[session]))
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
