"""`acp:NAME`: a program that speaks the Agent Client Protocol, as an agent of the host."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from portico.agents.acp import native
from portico.agents.acp.autonomy import classify, kind_of
from portico.agents.acp.choice import OptionChoice, choices
from portico.agents.acp.program import Program, folder
from portico.agents.acp.sandbox import confined_process, vendor_of
from portico.agents.agent import NEVER_ASKS, AgentInfo, Autonomy, Capabilities, Check, Model, Opening
from portico.agents.facts import FactsFile, Problem
from portico.agents.native import NativeHistory, NativePage, NativeSession, OwnCommand
from portico.agents.pool import Pool
from portico.agents.process_registry import ProcessRegistry
from portico.agents.servers import McpServer, customizations, with_brought
from portico.agents.supervisor import Process, Supervisor, agent_environment
from portico.agents.toolserver import ToolServer
from portico.features.client_servers.agent import TakesServers
from portico.features.client_servers.commands import ClientServer
from portico.features.sandboxes.agent import OFF, AgentProcess, ConfinableAgent
from portico.kernel.cache import Cache
from portico.kernel.errors import AgentUnavailable, Conflict, SignInRequired
from portico.kernel.events import Json
from portico.sandbox.policy import Confinement, Policy

if TYPE_CHECKING:
    from portico.agents.acp.conversation import AcpConversation
    from portico.agents.acp.link import AgentLink
    from portico.agents.acp.servers import Servers


class AgentFacts(Struct):
    """What was learned about an agent when it last ran: it can be described without starting it."""

    models: list[Model] = []
    modes: list[str] = []
    options: dict[str, Json] = {}
    """Its other settings that have a list of values, each as a schema."""
    tools: bool = True
    resume: bool = True
    attachments: bool = True
    folders: bool = False
    version: str = ""
    signed_out: str = ""
    """What to do before it answers; empty while it does."""
    signed_out_at: float = 0.0
    """When it was found, in seconds since the epoch. Files of 0.2 have none: theirs has expired."""

    @property
    def problem(self) -> str:
        return Problem(self.signed_out, self.signed_out_at).current


class AskingFacts(Struct):
    """What a test of the agent found out (`probe_asking`)."""

    asks: bool | None = None
    at: float = 0.0
    """Seconds since the epoch."""
    of: str = ""
    """The fingerprint of the program and its settings at that time."""


GivenServers = tuple[int, dict[str, ClientServer], frozenset[str]]
"""The number of the process, the MCP servers that clients brought for a session, and those of the settings that are
disabled in it."""
_GIVEN = 1_000
"""Cache size: sessions whose servers may change while their process runs."""
_RELEASE_SECONDS = 5.0
"""How long a person waits for the end of short requests, such as a list of sessions. A turn takes longer."""


def _is_server(customization: str) -> bool:
    return customization.startswith("mcp:")


async def _unconfined() -> Confinement:
    return OFF


class AcpAgent(ConfinableAgent, TakesServers):
    def __init__(
        self,
        name: str,
        program: Program,
        home: Path,
        servers: dict[str, McpServer],
        tools: ToolServer,
        pool: Pool | None = None,
    ) -> None:
        self.name = name
        self.program = program
        self.tools = tools
        self._pool = pool
        self._servers = servers
        self._home = home
        self._folder = folder(home, name)
        self._facts_file = FactsFile(self._folder, AgentFacts)
        self._facts = self._facts_file.read()
        self._asking_file = FactsFile(self._folder, AskingFacts, "asks.json")
        self._registry = ProcessRegistry(home)
        self._shared = self.supervise()
        self._uses: dict[Supervisor[AgentLink], int] = {}
        """Conversations of each process that not all of them share."""
        self._by_folder: dict[str, Supervisor[AgentLink]] = {}
        self._given = Cache[str, GivenServers](_GIVEN)
        """With which servers the shared process has loaded a session."""

    @property
    def id(self) -> str:
        return f"acp:{self.name}"

    def autonomy(self, option: str, value: object) -> Autonomy:
        if not option:
            return Autonomy.ASKS_NOBODY if self.never_asks else Autonomy.ASKS
        return classify(self.program, option, value)

    @property
    def never_asks(self) -> bool:
        """It wrote a file that was refused. That counts until a test finds otherwise, also of a newer version."""
        return self._asking_file.latest().asks is False

    async def probe_asking(self, *, again: bool = False) -> bool | None:
        known, now = self._asking_file.latest(), self._fingerprint()
        if not again and (kind_of(self.program) is not None or known.of == now):
            return known.asks
        await asyncio.to_thread(import_module, "portico.agents.acp.asking")
        from portico.agents.acp.asking import asks

        found = await asks(self)
        if found is not None:
            self._asking_file.write(AskingFacts(found, time.time(), self._fingerprint()))
        return found if found is not None else known.asks

    def _fingerprint(self) -> str:
        """Of what may change whether it asks."""
        program = self.program
        text = msgspec.json.encode([program.command, program.env, program.mode, self._facts.version], order="sorted")
        return hashlib.sha256(text).hexdigest()

    async def describe(self) -> AgentInfo:
        facts = self._facts
        known = {model.id for model in facts.models}
        given = [Model(model, model) for model in self.program.models if model not in known]
        modes: Json = {"type": "string", "enum": facts.modes} if facts.modes else {"type": "string"}
        return AgentInfo(
            self.id,
            self.program.name or self.name,
            f"{self.program.name or self.name} over ACP{f', version {facts.version}' if facts.version else ''}.",
            facts.models + given,
            Capabilities(
                tools=facts.tools and self.program.mcp,
                resume=facts.resume,
                attachments=facts.attachments,
                fork=True,
                folders=facts.folders,
            ),
            missing=self._missing() or self._facts.problem or None,
            config={"type": "object", "properties": {**facts.options, "mode": modes}},
            label=NEVER_ASKS if self.never_asks else "",
            customizations=customizations(self._servers) if self.program.mcp else [],
        )

    def _missing(self) -> str | None:
        if self.program.path() is not None:
            return None
        hint = f" Install it: {self.program.install}." if self.program.install else ""
        return f"The program {self.program.command[0]!r} is not on the PATH.{hint}"

    async def open(self, opening: Opening) -> "AcpConversation":
        if missing := self._missing():
            raise AgentUnavailable(missing)
        # Imported late and in a thread: the SDK takes a second and 50 MB, and must not block the event loop.
        await asyncio.to_thread(import_module, "portico.agents.acp.conversation")
        from portico.agents.acp.conversation import AcpConversation

        confined = isinstance(await self.confinement(opening, AgentProcess()), Policy)
        servers = (dict(self.brought(opening.session)), frozenset(each for each in opening.off if _is_server(each)))
        if not confined:
            await self._renew_for(opening.session, servers)
        supervisor = await self._confined_supervisor(opening) if confined else self._supervisor(opening.cwd)
        mode = (vendor_of(self.program).mode if confined else "") or self.program.mode
        conversation = AcpConversation(self, opening, supervisor, mode)
        try:
            await conversation.begin()
            self._given[opening.session] = (self._shared.starts, *servers)
        except BaseException:  # also a cancel: no other code closes it
            await conversation.close()
            raise
        return conversation

    async def _renew_for(self, session: str, servers: tuple[dict[str, ClientServer], frozenset[str]]) -> None:
        """End a process that keeps the MCP servers with which it has loaded a session: Codex offers changed ones to its
        model, and then refuses their calls ("unsupported call")."""
        before = self._given.get(session)
        same = before is None or before[0] != self._shared.starts or before[1:] == servers
        if same or not native.locks_sessions(self.program) or await self._shared.stop(_RELEASE_SECONDS):
            return
        raise Conflict(
            f"{self.program.name or self.name} is working in another session, and its process cannot use the changed "
            "MCP servers of this one. Send the message again when that turn has ended."
        )

    @asynccontextmanager
    async def connected(self, cwd: str | None, *, alone: bool = False) -> "AsyncIterator[AgentLink]":
        """A process of the agent for requests outside of a conversation. `alone`: one that ends afterwards."""
        if missing := self._missing():
            raise AgentUnavailable(missing)
        await asyncio.to_thread(import_module, "portico.agents.acp.link")
        supervisor = self._supervisor(cwd or str(self._folder), alone=alone)
        try:
            link = await supervisor.get()
            with supervisor.busy(link), self.signing_in(link):
                yield link
        finally:
            await self.leave(supervisor)

    async def native_sessions(self, cwd: str | None, cursor: str | None, folders: Sequence[str]) -> NativePage:
        return await native.list_sessions(self, cwd, cursor, folders)

    async def native_history(self, session: NativeSession) -> NativeHistory:
        return await native.read_history(self, session)

    async def native_release(self) -> None:
        """End the shared process of a program that locks its sessions. Other sessions resume in the next process."""
        if native.locks_sessions(self.program) and not await self._shared.stop(_RELEASE_SECONDS):
            raise Conflict(
                f"{self.program.name or self.name} is working in another session, and its process keeps this session "
                "locked until that turn has ended. Try again then."
            )

    def native_command(self, session: str, cwd: str) -> str:
        return native.terminal_command(self.program, session, cwd)

    def native_message(self, session: str, text: str) -> OwnCommand | None:
        return native.message_command(self.program, session, text)

    async def close(self) -> None:
        await asyncio.gather(*(each.close() for each in (self._shared, *self._uses)))
        await self.tools.close()

    # -- the process -------------------------------------------------------------------------------------------

    async def _confined_supervisor(self, opening: Opening) -> "Supervisor[AgentLink]":
        """In a sandbox each session has its own process: the sandbox has the network and the record of one session."""
        process = confined_process(self.program, await self.tools.listen())
        confine = partial(self.confinement, opening, process)
        made = self.supervise(folder=Path(opening.cwd), confine=confine, env=process.env)
        self._uses[made] = 1
        return made

    def _supervisor(self, cwd: str, *, alone: bool = False) -> "Supervisor[AgentLink]":
        """The one that a new conversation uses; it is given back with `leave`."""
        folder = Path(cwd) if self.program.in_folder else None
        if self.program.separate or alone:
            made = self.supervise(folder=folder)
            self._uses[made] = 1
            return made
        if folder is None:
            return self._shared
        found = self._by_folder.get(cwd) or self._by_folder.setdefault(cwd, self.supervise(folder=folder))
        self._uses[found] = self._uses.get(found, 0) + 1
        return found

    def supervise(
        self,
        folder: Path | None = None,
        *,
        pooled: bool = True,
        confine: Callable[[], Awaitable[Confinement]] = _unconfined,
        env: Mapping[str, str] | None = None,
    ) -> "Supervisor[AgentLink]":
        """`pooled`: its process waits for a free slot. The process of a check is short-lived and does not wait."""
        program = self.program
        return Supervisor(
            program.name or self.name,
            [program.path() or program.command[0], *program.command[1:]],
            env or agent_environment(program.pass_env, program.env),
            folder or self._folder,
            self._registry,
            self._connect,
            confine=confine,
            start_seconds=program.start_timeout,
            idle_seconds=program.idle_timeout,
            pool=self._pool if pooled else None,
        )

    async def _connect(self, process: Process) -> "AgentLink":
        from portico.agents.acp.link import AgentLink

        link = AgentLink(process, files=self.program.files, terminals=self.program.terminals)
        await link.initialize()
        return link

    async def leave(self, supervisor: "Supervisor[AgentLink]") -> None:
        """Release the supervisor after a conversation, and end a process that only this conversation used."""
        if supervisor not in self._uses:
            return
        self._uses[supervisor] -= 1
        if not self._uses[supervisor]:
            del self._uses[supervisor]
            self._by_folder = {cwd: each for cwd, each in self._by_folder.items() if each is not supervisor}
            await supervisor.close()

    async def authenticate(self, link: "AgentLink") -> None:
        """Authenticate with the method in the settings. No login is read or passed on: the agent has its own."""
        if self.program.auth is None:
            raise SignInRequired(self.sign_in_words(link))
        await link.request("authenticate", {"methodId": self.program.auth})

    def sign_in_words(self, link: "AgentLink") -> str:
        methods = link.about.get("authMethods")
        known = [str(each.get("id")) for each in methods if isinstance(each, dict)] if isinstance(methods, list) else []
        where = f"[agents.acp.{self.name}]"
        hint = f" Or set 'auth' in {where} of the settings to one of: {', '.join(known)}." if known else ""
        return f"{self.program.name or self.name} is not signed in. {self._how_to_sign_in}.{hint}"

    @property
    def _how_to_sign_in(self) -> str:
        return f"To sign in, run `{self.program.sign_in()}`" if self.program.login else "Sign in with its own program"

    @contextmanager
    def signing_in(self, link: "AgentLink") -> Iterator[None]:
        """What it reports about a missing sign-in is remembered for lists, until it works or the note expires. Its
        process is not used again: a new one looks for the login that a person has created since."""
        try:
            yield
        except SignInRequired as error:
            link.doomed = True
            words = error.message.rstrip(".")
            words = words if self._how_to_sign_in in words else f"{words}. {self._how_to_sign_in}."
            self.remember(words)
            raise SignInRequired(words) from error

    def works(self) -> None:
        """It has answered, or was checked: no sign-in is missing."""
        self.remember("")

    def remember(self, signed_out: str) -> None:
        if signed_out or self._facts.signed_out:
            found = time.time() if signed_out else 0.0
            self._keep_facts(msgspec.structs.replace(self._facts, signed_out=signed_out, signed_out_at=found))

    async def check(self) -> Check:
        """Start a separate process for the check and end it afterwards."""
        if missing := self._missing():
            return Check(self.id, "missing", missing)
        await asyncio.to_thread(import_module, "portico.agents.acp.check")
        from portico.agents.acp.check import check

        return await check(self)

    # -- what it has -------------------------------------------------------------------------------------------

    def servers(self, opening: Opening) -> "Servers":
        """The MCP servers of one conversation."""
        from portico.agents.acp.servers import Servers

        path = agent_environment(self.program.pass_env, self.program.env).get("PATH")
        servers = with_brought(self._servers, self.brought(opening.session)) if self.program.mcp else {}

        async def confine(server: McpServer) -> Confinement:
            return await self.confinement(opening, AgentProcess(server.command, agent_environment((), server.env)))

        return Servers(servers, self._home, self.tools, opening, path, confine)

    def learn(self, link: "AgentLink", answer: Json) -> None:
        """Keeps what describes the agent for the next time."""
        found = {choice.category: choice for choice in choices(answer)}
        model, mode = found.pop("model", None), found.pop("mode", None)
        info = link.about.get("agentInfo")
        facts = AgentFacts(
            models=_models(model) if model else self._facts.models,  # a resumed session need not repeat it
            modes=list(mode.values) if mode else self._facts.modes,
            options={choice.category: choice.schema for choice in found.values()} or self._facts.options,
            tools=link.capability("mcpCapabilities", "http"),
            resume=link.resumes,
            attachments=True,
            folders=link.several_folders,
            version=str(info.get("version") or "") if isinstance(info, dict) else "",
            signed_out=self._facts.signed_out,
            signed_out_at=self._facts.signed_out_at,
        )
        if facts != self._facts:
            self._keep_facts(facts)

    def _keep_facts(self, facts: AgentFacts) -> None:
        self._facts = facts
        self._facts_file.write(facts)


def _models(choice: OptionChoice) -> list[Model]:
    """The agent's own choice first: it is what a session gets that names none."""
    order = sorted(choice.values, key=lambda ident: ident != choice.current)
    return [Model(ident, choice.values[ident] or ident) for ident in order]
