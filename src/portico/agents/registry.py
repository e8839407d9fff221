"""Which agents there are: our own and strangers', through the same entry points."""

import logging
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint

from portico.agents.agent import Agent, AgentContext, AgentInfo, Conversation, Opening
from portico.agents.servers import TABLE, mcp_servers
from portico.kernel.errors import AgentUnavailable, BadRequest, NotFound, PorticoError, nearest
from portico.server.plugins import installed

GROUP = "portico.agents"
SCRIPTED = "scripted"
"""Offered only when asked for, by its name or by a script: it is for tests and for authors of jobs."""

logger = logging.getLogger("portico.agents")


RANK = ("copilot", "acp", "loop")
"""Our own real agents, in the order in which they are offered. Plugins of others follow by name, so that no name can
put a plugin before them; `demo` is last."""


def discover(context: AgentContext, wanted: Sequence[str] = ()) -> list[Agent]:
    """The agents named by `wanted` (all that can be found, when empty). A plugin that cannot be loaded is listed as an
    agent that is not ready, with the reason. If a script is given, its agents come first."""
    points = _points()
    _check_tables(context.settings, [*points, TABLE])
    mcp_servers(context.settings)  # report a mistake in the table at startup, not in the first turn
    if wanted:
        if context.script is not None and SCRIPTED not in wanted:
            raise BadRequest(f"Only the agent {SCRIPTED!r} plays a script; name it with --agent too.", field="script")
        return [agent for name in wanted for agent in _make(_point(points, name), name, context)]
    agents = _make(points[SCRIPTED], SCRIPTED, context) if context.script is not None else []
    for name in sorted(points, key=_rank):
        if name != SCRIPTED:
            agents += _load_or_explain(points[name], context)
    return agents


def _points() -> dict[str, EntryPoint]:
    """By name. Where a plugin takes a name of ours, ours stays."""
    found: dict[str, EntryPoint] = {}
    for point in sorted(installed(GROUP), key=lambda point: not _is_ours(point)):
        if point.name in found:
            logger.error("the plugin %s is left out: the agent %r is there already", point.value, point.name)
        else:
            found[point.name] = point
    return found


def _is_ours(point: EntryPoint) -> bool:
    return point.value.startswith("portico.agents.")


def _rank(name: str) -> tuple[bool, int, str]:
    return name == "demo", RANK.index(name) if name in RANK else len(RANK), name


def _load_or_explain(point: EntryPoint, context: AgentContext) -> list[Agent]:
    try:
        return list(point.load()(context))
    except Exception as error:  # noqa: BLE001 - a stranger's code: one broken plugin must not keep the host from starting
        reason = error.message if isinstance(error, PorticoError) else f"{type(error).__name__}: {error}"
        logger.error("the agent %r cannot be loaded: %s", point.name, reason)
        return [Unloadable(point, reason)]


class Unloadable:
    """Listed in place of a plugin that could not be loaded, so that the failure is visible."""

    def __init__(self, point: EntryPoint, reason: str) -> None:
        self.id = point.name
        package = point.dist.name if point.dist is not None else point.value
        self._missing = f"It cannot be loaded (package {package!r}): {reason}"

    async def describe(self) -> AgentInfo:
        return AgentInfo(self.id, self.id, missing=self._missing)

    async def open(self, opening: Opening) -> Conversation:
        raise AgentUnavailable(self._missing)

    async def close(self) -> None:
        pass


def _check_tables(tables: Iterable[str], names: Iterable[str]) -> None:
    """Reject a table of an agent that does not exist: it would be ignored."""
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
    try:
        made: list[Agent] = list(point.load()(context))
    except ImportError as error:
        raise AgentUnavailable(f"The agent {point.name!r} cannot be loaded: {error}") from error
    if name == point.name:
        return made
    chosen = [agent for agent in made if agent.id == name]
    if not chosen:
        raise NotFound("agent", name, f"There are: {', '.join(agent.id for agent in made) or 'none of that kind'}.")
    return chosen
