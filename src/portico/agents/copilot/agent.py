"""`copilot`: models, sign-in, and the runtimes: one that all sessions share, and one per client that lends a token."""

import asyncio
import logging
import secrets
import shlex
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakSet

import msgspec
from msgspec import Struct

from portico.agents.agent import AgentContext, AgentInfo, Autonomy, Capabilities, Check, Model, Opening, Resource
from portico.agents.copilot.option import EFFORT, EFFORTS, CopilotOptions, thinking
from portico.agents.facts import FactsFile, Problem
from portico.agents.native import NativeHistory, NativePage, NativeSession, OwnCommand
from portico.agents.process_registry import ProcessRegistry
from portico.agents.servers import customizations, mcp_servers, with_brought
from portico.agents.supervisor import Process, Supervisor, agent_environment
from portico.features.client_servers.agent import TakesServers
from portico.kernel.agent import SignInState
from portico.kernel.errors import AgentError, AgentUnavailable, SignInRequired, Unauthenticated
from portico.kernel.events import Json
from portico.sandbox.policy import Confinement, Unconfined

if TYPE_CHECKING:
    from copilot import ModelInfo

    from portico.agents.copilot.conversation import CopilotConversation
    from portico.agents.copilot.runtime import Runtime

ASK_SECONDS = 15.0
"""Timeout for the sign-in check: a list of agents must not hang on one of them."""
CHECK_SECONDS = 60.0
"""Interval between two checks whether the user has signed in."""

_LENT = 8
"""Runtimes of clients with separate tokens: each takes 200 MB while it is used."""
_TOKEN = "COPILOT_GITHUB_TOKEN"
"""Where the runtime looks for a token first."""
_GITHUB = Resource(
    "https://api.github.com",
    "GitHub Copilot",
    ["https://github.com/login/oauth"],
    ["read:user", "user:email"],
    "https://docs.github.com/copilot",
)
_SIGNED_IN = msgspec.structs.replace(_GITHUB, state="given")

logger = logging.getLogger("portico.agents.copilot")


class RuntimeFacts(Struct):
    """The models and the sign-in status that the runtime last reported."""

    models: list[Model] = []
    signed_in: bool = False
    status: str = ""


class CopilotAgent(TakesServers):
    id = "copilot"

    def __init__(self, options: CopilotOptions, context: AgentContext) -> None:
        self.options = options
        self._pool = context.pool
        self._settings = context.settings
        self._folder = context.home / "agents" / "copilot"
        self._token = secrets.token_urlsafe(32)
        self._facts_file = FactsFile(self._folder, RuntimeFacts)
        self._facts = self._facts_file.read()
        self._checked = -CHECK_SECONDS
        self._registry = ProcessRegistry(context.home)
        self._supervisor = self._supervise()
        self._lent: dict[str, Supervisor[Runtime]] = {}
        """By the client whose token they use."""
        self._past: WeakSet[Supervisor[Runtime]] = WeakSet()
        """Runtimes of replaced tokens: running turns and conversations there may finish."""
        self.key_refused = Problem()
        """Why the provider of the settings rejected its key, until it answers."""

    def _supervise(self, **env: str) -> "Supervisor[Runtime]":
        return Supervisor(
            "Copilot",
            self._command(),
            self._environment() | env,
            self._folder,
            self._registry,
            self._connect if env else self._connect_own,
            start_seconds=self.options.start_timeout,
            idle_seconds=self.options.idle_timeout,
            confine=_unconfined,
            pool=self._pool,
        )

    def _command(self) -> list[str]:
        options = self.options
        command = [options.path() or options.program, *options.arguments, "--headless", "--no-auto-update"]
        command += ["--log-level", "error"]
        return command if options.provider is None else [*command, "--no-auto-login"]

    def _environment(self) -> dict[str, str]:
        own = {"COPILOT_CONNECTION_TOKEN": self._token}
        if self.options.home is not None:
            own["COPILOT_HOME"] = str(Path(self.options.home).expanduser())
        return agent_environment(["COPILOT_HOME", *self.options.pass_env], {**self.options.env, **own})

    # -- what it is --------------------------------------------------------------------------------------------

    async def describe(self) -> AgentInfo:
        unsigned = await self._unsigned() if self._missing() is None else None
        missing = self._missing() or self.key_refused.current or (unsigned if not self._lent else None)
        models = [Model(model, model) for model in self.options.models] or self._facts.models
        capabilities = Capabilities(tools=True, steer=True, resume=True, attachments=True)
        where = f" with models of {self.options.provider.base_url}" if self.options.provider else ""
        resources = [_GITHUB if not self._facts.signed_in else _SIGNED_IN] if self.options.provider is None else []
        version = await asyncio.to_thread(self.options.version)
        about = f"GitHub Copilot{where}{f', version {version}' if version else ''}."
        return AgentInfo(
            self.id,
            "GitHub Copilot",
            about,
            models,
            capabilities,
            missing,
            config={"type": "object", "properties": {EFFORT: {"type": "string", "enum": list(EFFORTS)}}},
            resources=resources,
            customizations=customizations(mcp_servers(self._settings)),
        )

    def autonomy(self, option: str, value: object) -> Autonomy:
        """It reads one setting of a session, and that one is about thinking."""
        return Autonomy.ASKS if option == EFFORT or value is None else Autonomy.UNKNOWN

    async def authenticate(self, resource: str, token: str, seconds: float | None, client: str) -> None:
        """Store a client's token for the environment of a runtime that serves this client alone. It is kept in memory
        only. A runtime that is working keeps its token; the next one has the new token."""
        before = self._lent.get(client)
        if before is not None and before.env.get(_TOKEN) == token:
            return
        supervisor = self._supervise(**{_TOKEN: token})
        reason = "it does not answer"
        try:
            async with asyncio.timeout(ASK_SECONDS):
                runtime = await supervisor.get()
                status = await runtime.ask(runtime.client.get_auth_status())
                reason = status.statusMessage or "no reason given"
                if status.isAuthenticated:
                    self._facts.models = await _models(runtime)
                    self._lend(client, supervisor)
                    return
        except (AgentError, TimeoutError) as error:
            reason = error.message if isinstance(error, AgentError) else reason
        await supervisor.close()
        raise Unauthenticated(f"Copilot does not take this token ({reason}).")

    def _lend(self, client: str, supervisor: "Supervisor[Runtime]") -> None:
        before = self._lent.pop(client, None)
        self._lent[client] = supervisor
        old = [before] if before is not None else []
        while len(self._lent) > _LENT:
            old.append(self._lent.pop(next(iter(self._lent))))
        for each in old:
            each.rest()
            self._past.add(each)

    def sign_out(self, client: str) -> None:
        """Remove a client's token. A runtime that is working with it may finish and is ended afterwards."""
        before = self._lent.pop(client, None)
        if before is not None:
            before.rest()
            self._past.add(before)

    def sign_in_state(self, resource: str, client: str) -> SignInState:
        own = self.options.provider is not None or self._facts.signed_in
        return "given" if own or client in self._lent else "required"

    async def _unsigned(self) -> str | None:
        """Return the next step if a sign-in is missing; None when the user is signed in or needs no sign-in."""
        if self.options.provider is None and not self._facts.signed_in:
            await self._check()
        if self.options.provider is not None or self._facts.signed_in:
            return None
        reason = f" ({self._facts.status})" if self._facts.status else ""
        return f"Copilot is not signed in{reason}. Run: copilot login"

    async def need_sign_in(self, supervisor: "Supervisor[Runtime]") -> None:
        """Raise SignInRequired if the user is not signed in. Checks again, because the user may just have signed in."""
        if supervisor is not self._supervisor:
            return  # a client has lent a token
        if not self._facts.signed_in:
            self._checked = -CHECK_SECONDS
        if missing := await self._unsigned():
            raise SignInRequired(missing)

    def signed_out(self, supervisor: "Supervisor[Runtime]", reason: str) -> SignInRequired:
        """Record that the vendor no longer accepts our login or the lent token, so that all clients see it."""
        lender = next((client for client, each in self._lent.items() if each is supervisor), None)
        if lender is not None:
            self._past.add(self._lent.pop(lender))
            return SignInRequired(f"Copilot: {reason}")
        self._facts = RuntimeFacts(self._facts.models, False, reason)
        self._facts_file.write(self._facts)
        return SignInRequired(f"Copilot: {reason} Run: copilot login")

    def _missing(self) -> str | None:
        if self.options.path() is None:
            program = self.options.program
            return f"The program {program!r} is not on the PATH. Install it: npm install -g @github/copilot"
        return None

    async def _check(self) -> None:
        """Ask the runtime, at most once a minute while the user is not signed in."""
        if time.monotonic() - self._checked < CHECK_SECONDS:
            return
        self._checked = time.monotonic()
        try:
            async with asyncio.timeout(ASK_SECONDS):
                runtime = await self._supervisor.get()
                await self._learn(runtime)
        except (AgentError, TimeoutError) as error:
            self._facts.status = error.message if isinstance(error, AgentError) else "it does not answer"
            logger.warning("copilot cannot be asked: %s", self._facts.status)
        else:
            if not self._facts.signed_in:
                self._supervisor.retire(runtime)  # it is not usable yet, and takes 200 MB

    async def check(self) -> Check:
        """Starts the runtime and asks who is signed in. What was known before does not count; whether the provider of
        the settings accepts its key is known after the next turn."""
        self.key_refused = Problem()
        if missing := self._missing():
            return Check(self.id, "missing", missing)
        try:
            async with asyncio.timeout(ASK_SECONDS):
                runtime = await self._supervisor.get()
                if self.options.provider is None:
                    await self._learn(runtime)
        except AgentError as error:
            return Check(self.id, "failed", error.message)
        except TimeoutError:
            return Check(self.id, "slow", f"It did not answer within {ASK_SECONDS:g} seconds; try again.")
        self._checked = time.monotonic()
        if missing := (await self.describe()).missing:
            self._supervisor.retire(runtime)
            return Check(self.id, "not_signed_in", missing)
        count = len((await self.describe()).models)
        return Check(self.id, "ready", f"{count} model{'s' * (count != 1)}")

    async def _learn(self, runtime: "Runtime") -> None:
        status = await runtime.ask(runtime.client.get_auth_status())
        models: list[Model] = []
        if status.isAuthenticated:
            models = await _models(runtime)
        self._facts = RuntimeFacts(models, status.isAuthenticated, status.statusMessage or "")
        self._facts_file.write(self._facts)

    def mcp_servers(self, session: str, off: frozenset[str] = frozenset()) -> dict[str, Json]:
        """The servers of the settings and of a session's clients, in the SDK's format."""
        found: dict[str, Json] = {}
        for name, server in with_brought(mcp_servers(self._settings), self.brought(session)).items():
            if f"mcp:{name}" in off:
                continue
            if server.command:
                command, *arguments = server.command
                found[name] = {"type": "local", "command": command, "args": arguments, "env": server.env}
            else:
                found[name] = {"type": "http", "url": server.url, "headers": server.headers}
            found[name]["tools"] = ["*"]
        return found

    # -- conversations and the process ---------------------------------------------------------------------------

    async def open(self, opening: Opening) -> "CopilotConversation":
        if missing := self._missing():
            raise AgentUnavailable(missing)
        await _import("conversation")
        from portico.agents.copilot.conversation import CopilotConversation

        conversation = CopilotConversation(self, opening, self._lent.get(opening.client, self._supervisor))
        await conversation.begin()
        return conversation

    @asynccontextmanager
    async def _connected(self) -> "AsyncIterator[Runtime]":
        if missing := self._missing():
            raise AgentUnavailable(missing)
        await _import("native")
        runtime = await self._supervisor.get()
        with self._supervisor.busy(runtime):
            yield runtime

    async def native_sessions(self, cwd: str | None, cursor: str | None, folders: Sequence[str]) -> NativePage:
        async with self._connected() as runtime:
            from portico.agents.copilot.native import list_sessions

            return await list_sessions(runtime, cwd, cursor)

    async def native_history(self, session: NativeSession) -> NativeHistory:
        async with self._connected() as runtime:
            from portico.agents.copilot.native import read_history

            provider = self.options.provider
            return await read_history(runtime, session, provider.config() if provider is not None else None)

    async def native_release(self) -> None:
        """A closed conversation is released: the CLI has no lock on it."""

    def native_command(self, session: str, cwd: str) -> str:
        home = self.options.home
        own = f"COPILOT_HOME={shlex.quote(str(Path(home).expanduser()))} " if home is not None else ""
        return f"cd {shlex.quote(cwd)} && {own}{shlex.join([self.options.program, f'--resume={session}'])}"

    def native_message(self, session: str, text: str) -> OwnCommand | None:
        command = [self.options.path() or self.options.program, "-p", text, f"--resume={session}"]
        return OwnCommand(command, {**self._environment(), **self._provider_environment()})

    def _provider_environment(self) -> dict[str, str]:
        """The provider of the settings, for the CLI without the SDK."""
        provider, models = self.options.provider, self.options.models
        if provider is None:
            return {}
        own = {"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": provider.base_url}
        own["COPILOT_PROVIDER_API_KEY"] = str(provider.config().get("api_key") or "none")
        return {**own, "COPILOT_MODEL": models[0]} if models else own

    async def _connect(self, process: Process) -> "Runtime":
        await _import("runtime")
        from portico.agents.copilot.runtime import Runtime

        return await Runtime.connect(process, self._token)

    async def _connect_own(self, process: Process) -> "Runtime":
        """Connect the shared runtime. Models and the sign-in status change, so each new process is asked."""
        runtime = await self._connect(process)
        if self._facts.signed_in and self.options.provider is None:
            try:
                async with asyncio.timeout(ASK_SECONDS):
                    await self._learn(runtime)
            except (AgentError, TimeoutError) as error:
                logger.warning("copilot does not tell its models: %r", error)
        return runtime

    async def close(self) -> None:
        await asyncio.gather(*(each.close() for each in (self._supervisor, *self._lent.values(), *self._past)))


async def _unconfined() -> Confinement:
    return Unconfined("its SDK connects to it over TCP, so it is not in a sandbox: sessions with one are refused")


async def _models(runtime: "Runtime") -> list[Model]:
    return [_model(each) for each in await runtime.ask(runtime.client.list_models()) if _allowed(each)]


def _allowed(model: "ModelInfo") -> bool:
    """Not what the organisation has switched off."""
    return model.policy is None or model.policy.state != "disabled"


def _model(model: "ModelInfo") -> Model:
    billing, can, limits = model.billing, model.capabilities.supports, model.capabilities.limits
    return Model(
        model.id,
        model.name,
        float(billing.multiplier) if billing is not None and billing.multiplier is not None else 1.0,
        limits.max_context_window_tokens,
        can.vision,
        {"reasoningEfforts": model.supported_reasoning_efforts} if model.supported_reasoning_efforts else {},
        thinking(model.supported_reasoning_efforts or []),
    )


async def _import(name: str) -> None:
    """Import a module that needs the SDK on demand, in a thread: it takes a second and 50 MB, and must not block."""
    await asyncio.to_thread(import_module, f"portico.agents.copilot.{name}")
