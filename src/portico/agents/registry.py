"""Which agents there are: our own and strangers', through the same entry points."""

import logging
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points

from portico.agents.agent import Agent, AgentContext
from portico.agents.servers import TABLE, mcp_servers
from portico.errors import BadRequest, NotFound, PorticoError, nearest

GROUP = "portico.agents"
SCRIPTED = "scripted"
"""Offered only when asked for, by its name or by a script: it is for tests and for authors of jobs."""

logger = logging.getLogger("portico.agents")


def discover(context: AgentContext, wanted: Sequence[str] = ()) -> list[Agent]:
    """The agents named by `wanted` (all that can be found, when empty), `demo` last. One broken plugin is not the
    end: it is left out, and the log says why. Whoever gives a script wants it played: its agents come first."""
    points = {point.name: point for point in entry_points(group=GROUP)}
    _check_tables(context.settings, [*points, TABLE])
    mcp_servers(context.settings)  # a mistake in the table is told at the start, not in the first turn
    if wanted:
        if context.script is not None and SCRIPTED not in wanted:
            raise BadRequest(f"Only the agent {SCRIPTED!r} plays a script; name it with --agent too.", field="script")
        return [agent for name in wanted for agent in _make(_point(points, name), name, context)]
    agents = _make(points[SCRIPTED], SCRIPTED, context) if context.script is not None else []
    for name in sorted(points, key=lambda name: (name == "demo", name)):
        if name != SCRIPTED:
            try:
                agents += points[name].load()(context)
            except (PorticoError, ImportError) as error:
                logger.warning("agent %r is left out: %s", name, error)
    return agents


def _check_tables(tables: Iterable[str], names: Iterable[str]) -> None:
    """A table of an agent that is not there would be read by nobody."""
    known = sorted(names)
    for table in tables:
        if table not in known:
            near = nearest(table, known)
            hint = f"Did you mean [agents.{near}]?" if near else f"There are: {', '.join(known)}."
            raise BadRequest(f"The settings have [agents.{table}], and no such agent is installed. {hint}", field=table)


def _point(points: dict[str, EntryPoint], name: str) -> EntryPoint:
    """`acp:opencode` belongs to the entry point `acp`."""
    point = points.get(name) or points.get(name.partition(":")[0])
    if point is None:
        raise NotFound("agent", name, f"There are: {', '.join(sorted(points))}.")
    return point


def _make(point: EntryPoint, name: str, context: AgentContext) -> list[Agent]:
    made: list[Agent] = list(point.load()(context))
    if name == point.name:
        return made
    chosen = [agent for agent in made if agent.id == name]
    if not chosen:
        raise NotFound("agent", name, f"There are: {', '.join(agent.id for agent in made) or 'none of that kind'}.")
    return chosen
