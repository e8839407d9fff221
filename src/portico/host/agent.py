"""What the host asks of an agent. `portico.agents.agent` offers the same names to authors of agents.

An agent describes itself and opens conversations; a conversation answers messages and reports through a `Turn`.
Only the host writes the log: an agent never sees it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from msgspec import Struct, field

from portico.errors import NotFound
from portico.events import Json, Message, ToolSpec
from portico.host.state import SessionState, TurnState

if TYPE_CHECKING:
    from portico.host.turn import Turn


SignInState = Literal["required", "expired", "given"]
QUEUED, STARTED = "Waiting for a free agent", "The agent starts now."


class Model(Struct, frozen=True, omit_defaults=True):
    id: str
    name: str
    multiplier: float = 1.0
    """What a request costs, in the vendor's own unit."""
    context: int | None = None
    vision: bool = False
    meta: Json = {}
    config: Json = {}
    """JSON Schema of what can be chosen with it: how long it thinks."""


class Capabilities(Struct, frozen=True, omit_defaults=True):
    tools: bool = True
    """Takes the session's tools; an agent that cannot is told about them in words."""
    steer: bool = False
    resume: bool = False
    """Continues a conversation by its own id after a restart, or rebuilds it from the history."""
    fork: bool = False
    attachments: bool = False
    folders: bool = False
    """Works in several folders at once."""
    servers: bool = False
    """Its conversations are themselves the clients of their MCP servers, see `AsksServers`."""


class Resource(Struct, frozen=True, omit_defaults=True):
    """Something that an agent needs somebody's token for, in the words of RFC 9728."""

    resource: str
    """Its identifier, an https URL."""
    name: str = ""
    servers: list[str] = []
    """Where tokens come from: OAuth authorization servers."""
    scopes: list[str] = []
    documentation: str = ""
    required: bool = True
    """Without a token the agent does not answer."""
    state: SignInState = "required"
    """`given`: the agent has a sign-in of its own. Tokens of clients count for those clients alone."""


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
    """A word of honesty shown beside the name: `demo`, `toy`."""
    resources: list[Resource] = []
    """What it takes tokens for; see `Authenticates`."""
    customizations: list[Json] = []
    """What a session can switch off: MCP servers, plugins, folders of rules (`id`, `type`,
    `uri`, `name`, perhaps `state` and `children`)."""

    def check_model(self, model: str) -> None:
        if self.models and all(each.id != model for each in self.models):
            names = ", ".join(repr(each.id) for each in self.models)
            raise NotFound("model", model, f"{self.name} has: {names}.")


class Opening(Struct):
    """Everything an agent needs to begin or to go on with a conversation."""

    session: str
    cwd: str
    model: str
    config: Json
    tools: list[ToolSpec]
    known_as: Callable[[str], None]
    """Tells the host the agent's own id of the conversation, as soon as it is known."""
    vendor: str | None = None
    """That id, when the conversation goes on after a restart."""
    fork_of: str | None = None
    """That id of another conversation, of which this one is to be a copy as it stands now; `history` says the same."""
    history: list[TurnState] = field(default_factory=list)
    """The finished turns, for agents that keep none themselves."""
    folders: list[str] | None = None
    """Where it may work, if that is not just `cwd`; for agents that can (`Capabilities.folders`)."""
    off: frozenset[str] = frozenset()
    """The ids of the customizations that a person switched off here."""
    tell: Callable[[str], None] = lambda text: None
    """Shows a notice in the turn that waits for this conversation: `QUEUED` for a place, until `STARTED`."""
    model_config: Json = field(default_factory=dict)
    """What was chosen with the model; see `Model.config`."""
    client: str = ""
    """Whose token counts, for agents that take tokens (`Authenticates`)."""


class Conversation(Protocol):
    async def send(self, message: Message, turn: "Turn") -> None:
        """Answers; returns when the agent is idle. Raises AgentError when it failed."""

    async def steer(self, message: Message) -> bool:
        """Takes a message into the running turn; False: the host queues it."""

    async def cancel(self) -> bool:
        """Asks the agent to stop. True: `send` will return by itself; False: the host may cancel `send` at once."""

    async def close(self) -> None:
        """Releases everything, also in the middle of a turn."""


@runtime_checkable
class AsksServers(Protocol):
    """A conversation that lets others ask its MCP servers, in a turn or between two."""

    def tool_name(self, server: str, tool: str) -> str:
        """What its agent calls a tool of a server, and rules with it."""

    async def ask_server(self, server: str, operation: str, params: Json) -> Json:
        """The server's own reply, with `result` or `error`. NotFound: there is no such server."""


class Agent(Protocol):
    @property
    def id(self) -> str: ...

    async def describe(self) -> AgentInfo:
        """Quick and honest: what there is now, and what is missing. Never raises for a missing program."""

    async def open(self, opening: Opening) -> Conversation: ...

    async def close(self) -> None:
        """The host stops: end processes, drop caches."""


@runtime_checkable
class Completes(Protocol):
    """An agent that can also suggest values: of one of its settings, or commands (`/`)."""

    async def complete(self, property: str, query: str) -> list[Json]:
        """Items with `value`, `label` and perhaps `description`; the caller filters them by `query`."""


CheckStatus = Literal["ready", "missing", "not_signed_in", "wrong_version", "wrong_node", "not_acp", "failed"]


class Check(Struct, frozen=True):
    """What was found when an agent was really started."""

    agent: str
    status: CheckStatus
    detail: str
    """In one sentence: what there is, or what to do."""

    @property
    def ok(self) -> bool:
        return self.status == "ready"


@runtime_checkable
class Checks(Protocol):
    """An agent that can tell more than `describe` does, by starting its program."""

    async def check(self) -> Check:
        """Starts it and speaks the first handshake. Never raises for what is wrong with it."""


@runtime_checkable
class Authenticates(Protocol):
    """An agent that takes tokens from clients. It keeps them in memory only, hands them to nobody but its vendor, and
    uses each for the turns of the client that gave it and for no others."""

    async def authenticate(self, resource: str, token: str, seconds: float | None, client: str) -> None:
        """Uses the token from now on (for so many seconds). Unauthenticated when it is not good."""

    def sign_out(self, client: str) -> None:
        """Forgets the token of this client."""

    def sign_in_state(self, resource: str, client: str) -> SignInState:
        """How things stand for what this client asks for."""


def client_of(state: SessionState, turn: str) -> str:
    """The client whose token counts for a turn: the one that began it, or the session, where that was no client."""
    found = state.turn(turn)
    for by in (found.by if found is not None else "", state.by):
        if by.startswith("client:"):
            whole = by.removeprefix("client:")
            ident, _, tail = whole.rpartition("#")  # what a client said is `client:ID#NUMBER.TYPE`
            return ident if ident and "." in tail else whole
    return ""
