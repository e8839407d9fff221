"""The built-in agent: it needs nothing but a model behind an OpenAI-compatible endpoint.

Every host has it, so what it takes to reach models and to work (an HTTP client, the tools) is imported when it is first
asked for: it would be a quarter of the start.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from portico.agents.agent import Agent, AgentContext, AgentInfo, Autonomy, Capabilities, Model, Opening
from portico.agents.loop.settings import SettingsFile
from portico.agents.servers import customizations, mcp_servers
from portico.features.client_servers.agent import TakesServers
from portico.features.sandboxes.agent import ConfinableAgent
from portico.kernel.agent import Resource, SignInState
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json
from portico.models.catalogue import is_toy

if TYPE_CHECKING:
    from portico.agents.loop.conversation import LoopConversation
    from portico.agents.loop.discovery import Directory
    from portico.agents.loop.model_call import Lacking
    from portico.agents.mcp.sign_in import Bearer, McpTokens

NAME = "Built-in agent"
ABOUT = "Works with any OpenAI-compatible model, in small steps, with your approval."
CONFIG: Json = {
    "type": "object",
    "properties": {
        "mode": {
            "type": "string",
            "enum": ["auto", "agent", "chat"],
            "default": "auto",
            "title": "Mode",
            "description": "agent: works with tools until it is done. chat: one answer. auto: agent. Toys chat.",
        }
    },
}


def loop(context: AgentContext) -> Iterable[Agent]:
    agent = LoopAgent(context)
    return [LoopWithSignIn(context) if any(each.url for each in agent.servers.values()) else agent]


class LoopAgent(ConfinableAgent, TakesServers):
    def __init__(self, context: AgentContext, environ: Mapping[str, str] | None = None) -> None:
        self.settings = SettingsFile(context.home, context.settings.get("loop"))
        self.lacking: Lacking = {}
        self.servers = mcp_servers(context.settings)
        self.home = context.home
        self._environ = environ

    @cached_property
    def directory(self) -> "Directory":
        from portico.agents.loop.discovery import Directory

        return Directory(self.home, self._environ)

    @property
    def id(self) -> str:
        return "loop"

    def autonomy(self, option: str, value: object) -> Autonomy:
        """None of its modes changes what it asks for. It reads no other setting of a session."""
        return Autonomy.ASKS

    async def describe(self) -> AgentInfo:
        try:
            current = self.settings.current()
        except BadRequest as error:
            return AgentInfo("loop", NAME, ABOUT, missing=error.message, config=CONFIG)
        missing = await self.directory.missing(current)
        names = await self.directory.names(current) if current.agent.enabled else []
        return AgentInfo(
            "loop",
            NAME,
            ABOUT,
            [Model(name, name, meta={"toy": True} if is_toy(name) else {}) for name in names],
            Capabilities(
                tools=True,
                steer=True,
                resume=True,
                fork=True,
                attachments=True,
                folders=True,
                servers=bool(self.servers),
            ),
            missing,
            CONFIG,
            "toy" if names and is_toy(names[0]) else "",
            resources=self.resources(),
            customizations=customizations(self.servers),
        )

    def forget(self) -> None:
        if "directory" in self.__dict__:
            self.directory.forget()

    def resources(self) -> list[Resource]:
        return []

    def bearer(self, client: str) -> "Bearer | None":
        return None

    async def open(self, opening: Opening) -> "LoopConversation":
        from portico.agents.loop.conversation import LoopConversation

        opening.known_as(opening.vendor or f"loop-{opening.session}")
        return LoopConversation(self, opening)

    async def close(self) -> None:
        if "directory" in self.__dict__:
            await self.directory.close()


class LoopWithSignIn(LoopAgent):
    """The same with MCP servers behind addresses: they may want a token, and a client's counts for its turns alone."""

    @cached_property
    def tokens(self) -> "McpTokens":
        from portico.agents.mcp.sign_in import McpTokens

        return McpTokens()

    def resources(self) -> list[Resource]:
        return list(self.tokens.resources.values())

    def bearer(self, client: str) -> "Bearer | None":
        from portico.agents.mcp.sign_in import Bearer

        return Bearer(self.tokens, client)

    async def authenticate(self, resource: str, token: str, seconds: float | None, client: str) -> None:
        self.tokens.give(resource, token, seconds, client)

    def sign_out(self, client: str) -> None:
        self.tokens.forget(client)

    def sign_in_state(self, resource: str, client: str) -> SignInState:
        return self.tokens.state(resource, client)
