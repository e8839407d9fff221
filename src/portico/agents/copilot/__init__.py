"""GitHub Copilot through its official SDK: `copilot`. One runtime process, shared by all sessions.

Needs the Copilot CLI. Imports the agents' interface and the supervisor; never a door.
"""

from collections.abc import Iterable
from importlib.util import find_spec

from portico.agents.agent import Agent, AgentContext
from portico.agents.process_registry import ProcessRegistry
from portico.kernel.errors import AgentUnavailable


def copilot(context: AgentContext) -> Iterable[Agent]:
    """Offered when the CLI is there, or when the settings have `[agents.copilot]`."""
    ProcessRegistry(context.home).sweep()
    wanted = "copilot" in context.settings
    if find_spec("copilot") is None:
        raise AgentUnavailable("The package of its SDK is missing: pip install github-copilot-sdk")
    from portico.agents.copilot.option import read

    options = read(context.settings)
    if not options.enabled or not (wanted or options.path()):
        return []
    from portico.agents.copilot.agent import CopilotAgent

    return [CopilotAgent(options, context)]
