"""Agents that speak the Agent Client Protocol, each a child process: `acp:NAME`.

Imports the agents' interface, the supervisor and the workspace; never a door.
"""

from collections.abc import Iterable
from importlib.util import find_spec

from portico.agents.agent import Agent, AgentContext
from portico.agents.process_registry import ProcessRegistry
from portico.errors import AgentUnavailable


def acp(context: AgentContext) -> Iterable[Agent]:
    """The agents of `[agents.acp]` and the well-known ones that are installed."""
    ProcessRegistry(context.home).sweep()
    if find_spec("acp") is None:
        raise AgentUnavailable("The package of the protocol is missing: pip install agent-client-protocol")
    from portico.agents.acp.program import programs

    found = programs(context.settings)
    if not found:
        return []
    from portico.agents.acp.agent import AcpAgent
    from portico.agents.servers import mcp_servers
    from portico.agents.toolserver import ToolServer

    servers, tools = mcp_servers(context.settings), ToolServer()
    return [AcpAgent(name, program, context.home, servers, tools, context.pool) for name, program in found.items()]
