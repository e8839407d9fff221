"""Agents that speak the Agent Client Protocol, each a child process: `acp:NAME`.

Imports the agents' interface, the supervisor and the workspace; never a door.
"""

from collections.abc import Container, Iterable
from importlib.util import find_spec

from portico.agents.agent import Agent, AgentContext
from portico.agents.process_registry import ProcessRegistry
from portico.kernel.errors import AgentUnavailable


def acp(context: AgentContext) -> Iterable[Agent]:
    """The agents of `[agents.acp]` and the well-known ones that are installed."""
    ProcessRegistry(context.home).sweep()
    return find(context)


def find(context: AgentContext, known: Container[str] = ()) -> list[Agent]:
    """Those whose ids are not `known`. The processes of agents that run are left alone."""
    if find_spec("acp") is None:
        raise AgentUnavailable("The package of the protocol is missing: pip install agent-client-protocol")
    from portico.agents.acp.program import programs

    found = {name: each for name, each in programs(context.settings).items() if f"acp:{name}" not in known}
    if not found:
        return []
    from portico.agents.acp.agent import AcpAgent
    from portico.agents.servers import mcp_servers
    from portico.agents.toolserver import ToolServer

    servers, tools = mcp_servers(context.settings), ToolServer()
    return [AcpAgent(name, program, context.home, servers, tools, context.pool) for name, program in found.items()]
