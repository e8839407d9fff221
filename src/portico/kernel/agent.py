"""The interface of agents. `portico.agents.agent` exports the same names for authors of agents.

An agent describes itself and opens conversations; a conversation answers messages and reports through a `Turn`.
Only the host writes the log. Agents have no access to it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from msgspec import Struct, field

from portico.kernel.errors import AgentUnavailable, NotFound
from portico.kernel.events import Json, Message, ToolSpec
from portico.kernel.state import TurnState

if TYPE_CHECKING:
    from portico.kernel.turn import Turn


SignInState = Literal["required", "expired", "given"]
QUEUED, STARTED = "Waiting for a free agent", "The agent starts now."


class Model(Struct, frozen=True, omit_defaults=True):
    id: str
    name: str
    multiplier: float = 1.0
    """The cost of a request, in the unit of the vendor."""
    context: int | None = None
    vision: bool = False
    meta: Json = {}
    config: Json = {}
    """JSON Schema of the options of the model, such as the reasoning effort."""


class Capabilities(Struct, frozen=True, omit_defaults=True):
    tools: bool = True
    """Supports the session's tools; for other agents they are described as text."""
    steer: bool = False
    resume: bool = False
    """Resumes a conversation by the agent's id after a restart, or rebuilds it from the history."""
    fork: bool = False
    attachments: bool = False
    folders: bool = False
    """Supports several folders in one conversation."""
    servers: bool = False
    """Its conversations connect to their MCP servers directly, see `AsksServers`."""


class Resource(Struct, frozen=True, omit_defaults=True):
    """A resource for which an agent needs a token, in the terms of RFC 9728."""

    resource: str
    """Its identifier, an https URL."""
    name: str = ""
    servers: list[str] = []
    """The OAuth authorization servers that issue tokens."""
    scopes: list[str] = []
    documentation: str = ""
    required: bool = True
    """The agent does not answer without a token."""
    state: SignInState = "required"
    """`given`: the agent has its own sign-in. The token of a client is used for that client only."""


class AgentInfo(Struct, frozen=True, omit_defaults=True):
    id: str
    name: str
    description: str = ""
    models: list[Model] = []
    capabilities: Capabilities = Capabilities()
    missing: str | None = None
    """What the user must do before it works, in one sentence; None when it is ready."""
    config: Json = {}
    """JSON Schema of the session settings it understands."""
    label: str = ""
    """A label shown next to the name: `demo`, `toy`."""
    resources: list[Resource] = []
    """The resources for which it accepts tokens; see `Authenticates`."""
    customizations: list[Json] = []
    """What a session can disable: MCP servers, plugins, folders of rules (`id`, `type`,
    `uri`, `name`, perhaps `state` and `children`)."""

    def check_model(self, model: str) -> None:
        if self.models and all(each.id != model for each in self.models):
            names = ", ".join(repr(each.id) for each in self.models)
            raise NotFound("model", model, f"{self.name} has: {names}.")


class Opening(Struct):
    """Everything an agent needs to start or resume a conversation."""

    session: str
    cwd: str
    model: str
    config: Json
    tools: list[ToolSpec]
    known_as: Callable[[str], None]
    """Callback for the agent's id of the conversation. Call it as soon as the id is known."""
    vendor: str | None = None
    """That id, when the conversation is resumed after a restart."""
    fork_of: str | None = None
    """That id of another conversation: create a copy of its current state. `history` has the same content."""
    history: list[TurnState] = field(default_factory=list)
    """The finished turns, for agents that keep none themselves."""
    folders: list[str] | None = None
    """The folders in which it may work, if not only `cwd`; for agents that support it (`Capabilities.folders`)."""
    off: frozenset[str] = frozenset()
    """The ids of the customizations that a person disabled in this session."""
    tell: Callable[[str], None] = lambda text: None
    """Show a notice in the turn that waits for this conversation: `QUEUED` in a queue for a slot, then `STARTED`."""
    model_config: Json = field(default_factory=dict)
    """The chosen options of the model; see `Model.config`."""
    client: str = ""
    """The client whose token is used, for agents that accept tokens (`Authenticates`)."""


class Conversation(Protocol):
    async def send(self, message: Message, turn: "Turn") -> None:
        """Answer the message; return when the agent is idle. Raises AgentError if it fails."""

    async def steer(self, message: Message) -> bool:
        """Add a message to the running turn. False: the host queues it."""

    async def cancel(self) -> bool:
        """Request the agent to stop. True: `send` will return; False: the host may cancel `send` immediately."""

    async def close(self) -> None:
        """Release all resources, also during a turn."""


@runtime_checkable
class AsksServers(Protocol):
    """A conversation that forwards requests to its MCP servers, during a turn or between turns."""

    def tool_name(self, server: str, tool: str) -> str:
        """Return the name of a server's tool that the agent and the rules use."""

    async def ask_server(self, server: str, operation: str, params: Json) -> Json:
        """Return the reply of the server, with `result` or `error`. Raises NotFound if the server does not exist."""


class Agent(Protocol):
    @property
    def id(self) -> str: ...

    async def describe(self) -> AgentInfo:
        """Describe the agent quickly: what is available and what is missing. Never raises for a missing program."""

    async def open(self, opening: Opening) -> Conversation: ...

    async def close(self) -> None:
        """End processes and drop caches, because the host stops."""


@runtime_checkable
class Completes(Protocol):
    """An agent that can also complete values of its settings, or commands (`/`)."""

    async def complete(self, property: str, query: str) -> list[Json]:
        """Return items with `value`, `label` and optionally `description`; the caller filters them by `query`."""


CheckStatus = Literal["ready", "missing", "not_signed_in", "wrong_version", "wrong_node", "not_acp", "slow", "failed"]


class Check(Struct, frozen=True):
    """The result of starting an agent to check it."""

    agent: str
    status: CheckStatus
    detail: str
    """One sentence: what was found, or what to do."""

    @property
    def ok(self) -> bool:
        return self.status == "ready"


@runtime_checkable
class Checks(Protocol):
    """An agent that can start its program to report more than `describe`."""

    async def check(self) -> Check:
        """Start it and do the first handshake. Problems are reported in the result, never raised."""


@runtime_checkable
class Authenticates(Protocol):
    """An agent that accepts tokens from clients. It keeps them only in memory, sends them only to its vendor, and uses
    each token only for the turns of the client that sent it."""

    async def authenticate(self, resource: str, token: str, seconds: float | None, client: str) -> None:
        """Use the token from now on (for `seconds`). Raises Unauthenticated if it is not valid."""

    def sign_out(self, client: str) -> None:
        """Delete the token of this client."""

    def sign_in_state(self, resource: str, client: str) -> SignInState:
        """Return the sign-in state of a resource for this client."""


class AgentReadiness:
    """Describes the agents and chooses the default. By default no agent is checked, and the first one is chosen."""

    def __init__(self, agents: Mapping[str, Agent]) -> None:
        self._agents = agents

    async def described(self, agent: Agent) -> AgentInfo:
        return await agent.describe()

    async def describe(self) -> list[AgentInfo]:
        return [await self.described(agent) for agent in self._agents.values()]

    async def settle(self, seconds: float) -> bool:
        """Wait for late descriptions; return False if there are none."""
        return False

    async def check(self, ident: str) -> Check:
        """Start the agent to find out whether it works."""
        return Check(ident, "ready", "not checked")

    async def default(self) -> AgentInfo:
        """Return the agent of sessions that name none."""
        for info in await self.describe():
            return info
        raise AgentUnavailable("No agent is ready (there is none).")

    def likely(self, infos: Sequence[AgentInfo]) -> str | None:
        """Return the id of the default as far as it is known without starting an agent, for lists."""
        return infos[0].id if infos else None
