"""The server process: combines home, log, host, gate and doors, and starts and stops them in a fixed order.

Start: lock the home, open the log, open the host (which ends work that a crash interrupted), open the doors, listen,
announce. Stop: refuse new work, end the running turns, retract the announcement, end the open streams, stop listening,
close the doors and the log, unlock. `tests/doors/test_server.py` checks both orders.
"""

import asyncio
import contextlib
import importlib
import logging
import os
import resource
import signal
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from portico import __version__, limits
from portico.agents import acp
from portico.agents.agent import AgentContext
from portico.agents.registry import discover
from portico.agents.scripted import seed
from portico.features.automations.automations import Automations
from portico.features.configuration.feature import Configuration
from portico.features.jobs import Jobs
from portico.features.jobs.source import EntrySource
from portico.features.notices.notices import Notices
from portico.features.pairing.pairing import Pairing, PhoneAddress
from portico.features.people.token_audit import TokenAudit
from portico.features.projects.projects import Projects
from portico.features.secrets.feature import HostSecrets
from portico.kernel.component import Component
from portico.kernel.errors import BadRequest, LogTooNew, LogUnavailable, PorticoError
from portico.kernel.host import Host
from portico.kernel.log.log import Log
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.log.sqlite.error_text import AGAIN, GOES_ON
from portico.server.app import App
from portico.server.compose import Provided, build_host, configure, installed_features
from portico.server.gate import Gate
from portico.server.home import Home, HostEndpoint, secret_key, stamp
from portico.server.identity import Tokens
from portico.server.notify import Notify
from portico.server.origin import LOOPBACK_NAMES, is_loopback, origin_of
from portico.server.phone_address import phone_address
from portico.server.proxy import BehindProxy, Proxies, check_root_path
from portico.server.read_forward import answer_inside
from portico.server.registry import Doors
from portico.server.serve_options import (
    ServeOptions,
    check_settings,
    entry_source,
    proxy_login,
)
from portico.server.settings import SHARED, ServerSettings
from portico.server.settings_load import Loaded, load
from portico.server.socket_server import SocketServer
from portico.server.sockets import open_sockets
from portico.server.tls import Certificate
from portico.tasks import end_tasks
from portico.workspace.jail import closed
from portico.workspace.orphans import end_orphans

logger = logging.getLogger("portico.server")

_WATCH_SECONDS = 1.0
"""Poll interval of the settings file and the tokens: fast enough for a person, with negligible cost."""


class Server:
    """`async with Server(options) as server:` runs a host; `await server.stopped()` waits until it is stopped."""

    def __init__(self, options: ServeOptions) -> None:
        self.options = options
        self.home = options.home
        self._stamp = self._settings_stamp()  # before the first load, so that no edit is missed
        self.loaded: Loaded = load(self.home.settings_path, flags=options.flags)
        self._stop = asyncio.Event()
        self._stack = contextlib.AsyncExitStack()
        self._sockets: list[socket.socket] = []
        self._watcher: asyncio.Task[None] | None = None
        self._shared: Callable[[], Awaitable[None]] | None = None
        self._look_now = asyncio.Event()
        """Set to poll immediately, when a watched file has certainly changed."""
        self.port = 0
        self.socket_path: str | None = None
        self.notify = Notify.from_environment()
        self.certificate: Certificate | None = None
        self.failure: LogTooNew | None = None
        """Why the server stopped without a request: a newer host has migrated the log."""

    # -- start -------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> "Server":
        try:
            await self._start()
        except LogUnavailable as error:
            await self._stack.aclose()
            raise type(error)(error.message.replace(GOES_ON, AGAIN)) from error
        except OSError as error:
            await self._stack.aclose()
            raise _refused(error, self.home) from error
        except BaseException:  # also Ctrl-C: close everything opened so far, in order
            await self._stack.aclose()
            raise
        return self

    async def _start(self) -> None:
        settings, stack = self.loaded.settings, self._stack
        check_settings(settings, self.options)
        self.certificate = Certificate(settings.server) if settings.server.tls_cert else None
        self._take_home()
        await asyncio.to_thread(end_orphans)  # before any work is started again
        self._open_sockets()
        log = await self._open_log()
        stack.push_async_callback(log.close)
        log.on_failure(self._log_failed)
        await self._open_host(log)
        await self._open_gate(log)
        self._apply_settings()
        self._measure()
        self.doors = await Doors.open(self.app)
        stack.push_async_callback(self.doors.close)
        await self.jobs.recover()
        self.features[Notices].is_token = lambda ident: self.tokens.by_id(ident) is not None
        for part in self.host.parts:
            await part.on_serving()
        await self._listen()
        self.host.members.listening(self.public_url, self.jobs.recover)
        self.host.members.on_held(self.automations.begin)
        self._announce()
        self._watcher = asyncio.get_running_loop().create_task(self._watch(), name="watch settings")
        stack.push_async_callback(_cancel, self._watcher)

    def _take_home(self) -> None:
        self.home.make()
        self.home.lock()
        self._stack.callback(self.home.unlock)
        self._stack.enter_context(closed(self.home.path))

    async def _open_host(self, log: Log) -> None:
        settings, options, stack = self.loaded.settings, self.options, self._stack
        self._agents = AgentContext(self.home.path, settings.agents, options.script, options.script_delay)
        rooms = [self._cluster(log)] if settings.log.url else []
        self.features = Provided(self.home)
        agents = discover(self._agents, options.agents)
        self.host = await build_host(log, agents, before=rooms, after=installed_features(), provided=self.features)
        if not self.host.members.several:
            self.host.commands.receipt_key = secret_key(self.home.path / "cookie-key")
        self.secrets = self.features[HostSecrets]
        self.host.parts.append(Configuration(self.host, self.home, self._read_settings))
        self.host.members.labels = settings.cluster.labels
        stack.push_async_callback(self.host.members.close_link)  # closed after the doors: they still forward commands
        stack.push_async_callback(self.host.close)
        await seed(self.host, str(self._workspaces()[0]))
        self.jobs = await self._open_jobs(entry_source(options))
        stack.push_async_callback(self.jobs.close)
        self.home.token()
        self.automations = await Automations.open(self.host, self.jobs, self.home.path, self.host.members)
        if settings.log.url:
            self.automations.secrets.make()
            await self._share_files(log)

    async def _open_gate(self, log: Log) -> None:
        settings, options = self.loaded.settings, self.options
        self.tokens = Tokens(self.home, options.with_token)
        self.host.ownership.team = self._has_people
        self.pairing = Pairing(self.host, self.home, self._phone_address)
        self._token_audit = await TokenAudit.open(self.host, self.tokens)
        # All hosts of one log use the same cookie name, so that another host can serve the page.
        cookie = f"portico-{log.epoch if settings.log.url else self.port}"
        origins = frozenset(settings.security.allow_origins)
        self.gate = Gate(self.tokens, hosts=self._hosts(), origins=origins, cookie=cookie, audit=self._audit)
        self.gate.public_origin = origin_of(settings.server.public_url)
        if self.host.members.several:
            self.gate.catch_up, self.gate.share = self.host.members.hear, self._shared
            self.host.members.answering(partial(answer_inside, self.gate))  # type: ignore[attr-defined]
        level, folder = options.api_level, options.test_folder
        self.app = App(self.host, self.home, self.loaded, self._stop.set, options.test, level, folder)
        self.app.gate, self.app.jobs, self.app.automations = self.gate, self.jobs, self.automations
        self.app.secrets = self.secrets
        self.app.find_agents = self._find_agents
        self.app.pairing = self.pairing

    def _announce(self) -> None:
        self._stack.callback(self.home.retract)
        self.home.announce(
            HostEndpoint(
                self.url,
                os.getpid(),
                str(self.home.token_path) if self.options.with_token else None,
                __version__,
                None if self.port else self.socket_path,
                str(self.certificate.path) if self.certificate is not None else None,
                self.host.members.name,
                self.host.members.place,
            )
        )

    async def _open_log(self) -> Log:
        settings = self.loaded.settings
        if not settings.log.url:
            return await SqliteLog.open(self.home.log_path, durability=settings.log.durability)
        try:
            from portico.cluster.open import open_log
        except ImportError as error:
            words = f"A log in PostgreSQL needs more packages: pip install 'portico[cluster]' ({error})."
            raise BadRequest(words, field="log.url") from error
        return await open_log(settings, self.home.path)

    async def _open_jobs(self, source: EntrySource | None) -> Jobs:
        settings = self.loaded.settings.jobs
        if settings.engine == "local":
            return await Jobs.open(self.host, source)
        try:  # the import takes a second; on a busy machine, as long as a lease
            await asyncio.to_thread(importlib.import_module, "portico.features.jobs.temporal")
            from portico.features.jobs.temporal import TemporalJobs
        except ImportError as error:
            words = f"Jobs on Temporal need more packages: pip install 'portico[temporal]' ({error})."
            raise BadRequest(words, field="jobs.engine") from error
        return await TemporalJobs.connect(self.host, source, settings)

    def _log_failed(self, error: LogUnavailable) -> None:
        if isinstance(error, LogTooNew):
            self.failure = error
            self.stop()

    def _cluster(self, log: Any) -> Callable[[Host], Component]:
        from portico.cluster.open import Cluster

        return Cluster.room(log, self.loaded.settings.cluster)

    async def _share_files(self, log: Log) -> None:
        from portico.cluster.open import SharedFiles

        shared = SharedFiles(log, self.home.path, self._look_now.set)  # type: ignore[arg-type]
        await shared.begin()
        self._stamp = self._settings_stamp()
        self.loaded = load(self.home.settings_path, flags=self.options.flags)
        check_settings(self.loaded.settings, self.options)
        self._shared = shared.share
        watching = asyncio.get_running_loop().create_task(shared.watch(), name="watch shared files")
        self._stack.push_async_callback(_cancel, watching)

    def _settings_stamp(self) -> object:
        path = self.home.settings_path
        return stamp(path), stamp(path.with_name(SHARED))

    def _open_sockets(self) -> None:
        self._sockets = open_sockets(self.loaded.settings.server)
        for each in self._sockets:
            self._stack.callback(each.close)
            if each.family == socket.AF_UNIX:
                self.socket_path = str(each.getsockname())
                if self.loaded.settings.server.unix_socket:
                    self._stack.callback(Path(self.socket_path).unlink, missing_ok=True)
        ports = [each.getsockname()[1] for each in self._sockets if each.family != socket.AF_UNIX]
        self.port = ports[0] if ports else 0

    def _measure(self) -> None:
        settings = self.loaded.settings.telemetry
        if not settings.endpoint:
            return
        try:
            from portico.server.telemetry import Telemetry
        except ImportError as error:
            words = f"Telemetry needs more packages: pip install 'portico[otel]' ({error})."
            raise BadRequest(words, field="telemetry.endpoint") from error
        self._stack.push_async_callback(Telemetry(self.host, settings).close)

    async def _listen(self) -> None:
        tls = self.certificate.context if self.certificate is not None else None
        self._serving = SocketServer(self._front(), self._sockets, tls)
        self._stack.push_async_callback(self._unlisten)
        await self._serving.started()

    async def _unlisten(self) -> None:
        self._serving.refuse()
        self.gate.close_all()
        await self._serving.close()

    # -- stop --------------------------------------------------------------------------------------------------

    async def stopped(self) -> None:
        await self._stop.wait()

    def stop(self) -> None:
        self._stop.set()

    async def __aexit__(self, *_: object) -> None:
        """Unwind the stack in the reverse order of the start, except that the host is closed first: connected clients
        still receive the end of their turns."""
        await self.automations.stop()
        await self.jobs.close()
        await self.host.close()
        await self._stack.aclose()

    # -- while it runs -----------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The URL for clients on this machine."""
        if not self.port:
            return "http://localhost"  # over the Unix socket
        host = self.loaded.settings.server.host
        shown = "127.0.0.1" if host in ("0.0.0.0", "::") else host
        scheme = "https" if self.certificate is not None else "http"
        return f"{scheme}://{f'[{shown}]' if ':' in shown else shown}:{self.port}"

    async def _phone_address(self) -> PhoneAddress:
        settings = self.loaded.settings.server
        publish = self._publish if self.options.with_token else None
        return await phone_address(settings, self.port, check_root_path(settings.root_path), publish)

    async def _publish(self, url: str) -> ServerSettings:
        from portico.server.settings_edit import set_value  # late import: the parser is not needed at start

        await asyncio.to_thread(set_value, self.home.settings_path, "server.public_url", url, load)
        return (await self._read_settings()).settings.server

    @property
    def public_url(self) -> str:
        """The URL for people."""
        settings = self.loaded.settings.server
        return settings.public_url.rstrip("/") or self.url + check_root_path(settings.root_path)

    @property
    def login_url(self) -> str:
        return f"{self.public_url}/login?tkn={self.home.token()}" if self.options.with_token else self.public_url

    @property
    def opening_url(self) -> str:
        """The URL for a browser that we start. It works once and contains no token."""
        code = self.tokens.code(self.tokens.owner())
        return f"{self.url}/login?code={code}" if self.options.with_token else self.url

    async def _watch(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._look_now.wait(), _WATCH_SECONDS)
            self._look_now.clear()
            self.notify.alive()  # sent from the loop that serves all requests: if it hangs, this stops
            own = (self._token_audit.look, self._look_at_settings, self._look_at_certificate)
            for poll in (*own, *(part.poll for part in self.host.parts)):
                try:
                    self.gate.close_revoked()
                    await poll()
                except LogUnavailable as error:
                    logger.warning("watching settings and tokens: %s", error.message)
                except Exception:  # the sockets of tokens revoked later must still be closed
                    logger.exception("watching settings and tokens failed; the next poll comes in a second")

    async def _read_settings(self) -> Loaded:
        await self._look_at_settings()
        return self.loaded

    async def _look_at_settings(self) -> None:
        now = self._settings_stamp()
        if now != self._stamp:
            self._stamp = now
            await self._reload()

    async def _look_at_certificate(self) -> None:
        if self.certificate is not None:
            self.certificate.reload()

    def _has_people(self) -> bool:
        login = self.loaded.settings.login
        return bool(login.oidc.issuer or login.proxy.header or self.tokens.people.all())

    async def _reload(self) -> None:
        try:
            loaded = load(self.home.settings_path, flags=self.options.flags)
            check_settings(loaded.settings, self.options)
        except BadRequest as error:
            logger.error("the settings are not taken over: %s", error.message)
            return
        changed = [key for key, source in loaded.sources.items() if source != self.loaded.sources.get(key)]
        self.loaded = self.app.loaded = loaded
        self._apply_settings()
        try:
            self._find_agents()
        except PorticoError as error:
            logger.error("the agents of the settings are not taken over: %s", error.message)
        logger.info("settings changed: %s", ", ".join(changed) or "nothing")
        await self._audit("settings.changed", "host", keys=changed)

    def _find_agents(self) -> list[str]:
        """Add the agents that were installed or configured since the start. Existing agents are kept."""
        if self.options.agents or self.options.script is not None:
            return []  # the command line lists all agents
        # Read the file: the watcher may not have noticed the change yet.
        context = AgentContext(self.home.path, load(self.home.settings_path, flags=self.options.flags).settings.agents)
        vars(context)["pool"] = self._agents.pool  # one limit for all processes
        fresh = acp.find(context, self.host.agents)
        self.host.agents.update((agent.id, agent) for agent in fresh)
        return [agent.id for agent in fresh]

    def _apply_settings(self) -> None:
        settings = self.loaded.settings
        logging.getLogger("portico").setLevel(settings.log.level.upper())
        self.host.default_agent = settings.default_agent
        self.host.approval_timeout = settings.agent.approval_timeout
        self.host.turn_idle_timeout = settings.agent.turn_idle_timeout
        self.app.jobs.services.allow_private = settings.notices.allow_private
        self.host.public_url = self.public_url
        configure(self.host, settings)
        self.host.retention_hours = settings.log.retention_hours
        self.host.disk.share = settings.log.disk_share
        self.features[Projects].models = settings.models
        self.tokens.people.appoint(settings.people.admins)
        self.gate.hosts = self._hosts()
        self.gate.origins = frozenset(settings.security.allow_origins)
        self.gate.public_origin = origin_of(settings.server.public_url)
        self.host.workspaces[:] = self._workspaces()

    def _front(self) -> ASGIApp:
        """Return the outermost ASGI app. Without a proxy or base path, that is the gate."""
        settings = self.loaded.settings.server
        if not (settings.root_path or settings.trusted_proxies):
            return self.gate
        proxies, login = Proxies(settings.trusted_proxies), proxy_login(self.loaded.settings)
        return BehindProxy(self.gate, proxies, check_root_path(settings.root_path), login)

    def _hosts(self) -> frozenset[str]:
        settings = self.loaded.settings
        names = {name.lower() for name in settings.security.allow_hosts}
        if public := urlsplit(settings.server.public_url).hostname:
            names.add(public)
        bound = settings.server.host.lower()
        if is_loopback(bound):
            return LOOPBACK_NAMES | names
        return LOOPBACK_NAMES | names | {bound}

    def _workspaces(self) -> list[Path]:
        return [Path(each).expanduser().absolute() for each in self.loaded.settings.workspaces] or [Path.cwd()]

    async def _audit(self, action: str, by: str, **detail: object) -> None:
        if self.host.log.down is None:
            await self.host.audit(action, by, **detail)


def _refused(error: OSError, home: Home) -> PorticoError:
    """Convert an error for a file in the home folder: the disk is full, or another user owns the file."""
    where, why = str(error.filename or home.path), error.strerror or error
    return LogUnavailable(f"{where!r} cannot be used: {why}. Free some space, or make it writable; {AGAIN}.")


def allow_files(wanted: int) -> None:
    """Raise the limit on open files. Every connection is one, and the default soft limit is often 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


async def run(options: ServeOptions, ready: Callable[[Server], None]) -> None:
    """Run a host until a signal or a stop request. `ready` is called when it accepts connections."""
    allow_files(limits.CONNECTIONS + limits.OTHER_FILES)
    async with Server(options) as server:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, server.stop)
        ready(server)
        server.notify.ready(f"Listening on {server.public_url}")
        await server.stopped()
        server.notify.stopping()
    if server.failure is not None:
        raise server.failure


async def _cancel(task: "asyncio.Task[None]") -> None:
    await end_tasks(task)
