"""Which agent is used for a model id: the first ready one that has it; `agent/model` names one exactly.

An agent that was not ready is checked again before anything is rejected because of it."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from portico import limits
from portico.agents.agent import NEVER_ASKS, Forgets
from portico.features.jobs.entry import EntryError
from portico.features.jobs.models import ModelUse, check_models
from portico.kernel.agent import AgentInfo, Model
from portico.kernel.errors import AgentUnavailable, NotFound
from portico.kernel.host import Host

T = TypeVar("T")


async def offered(host: Host) -> list[Model]:
    """Every model of every ready agent, each under an id that `choose` understands and that only it has."""
    return _models(await _ready(host))


async def check_offered(host: Host, uses: list[ModelUse]) -> None:
    """Raise unless each model or one of its fallbacks is available."""

    def check(infos: list[AgentInfo]) -> None:
        for use in uses:
            if not any(_find(infos, model) for model in (use.model_id, *use.instead)):
                check_models([use], _models(infos))

    await _asked(host, check, [model for use in uses for model in (use.model_id, *use.instead)])


async def choose(host: Host, ident: str) -> tuple[AgentInfo, str | None]:
    """The agent and its own id of the model; None: only the agent was named, its first model is used.

    Raises AgentUnavailable while the agent that may have it is not ready, NotFound if no agent has it."""

    def chosen(infos: list[AgentInfo]) -> tuple[AgentInfo, str | None]:
        if (found := _find(infos, ident)) is None:
            names = ", ".join(repr(model.id) for model in _models(infos))
            raise NotFound("model", ident, f"There are: {names}.")
        return found

    return await _asked(host, chosen, [ident])


async def _asked(host: Host, use: Callable[[list[AgentInfo]], T], idents: list[str]) -> T:
    """Return the result of `use` for the ready agents. If it fails, first check the agents again that were late or not
    ready and may have one of the models."""
    try:
        return use(await _ready(host))
    except (AgentUnavailable, NotFound, EntryError):
        late = await host.readiness.settle(limits.JOB_DESCRIBE_SECONDS)
        if not await _recheck(host, await _away(host, idents)) and not late:
            raise
    try:
        return use(await _ready(host))
    except (NotFound, EntryError) as error:
        if not (away := await _away(host, idents)):
            raise
        words = "; ".join(f"{info.name}: {info.missing}" for info in away)
        raise AgentUnavailable(f"{', '.join(map(repr, idents))} is not available now. {words}") from error


async def _recheck(host: Host, away: list[AgentInfo]) -> bool:
    """Check these agents again. False: there are none."""
    for info in away:
        agent = host.agent(info.id)
        if isinstance(agent, Forgets):
            agent.forget()
    await asyncio.gather(*(host.readiness.check(info.id) for info in away))
    return bool(away)


async def _away(host: Host, idents: list[str]) -> list[AgentInfo]:
    """The agents that are not ready and may have one of these models."""
    return [
        info
        for info in await host.describe()
        if info.missing is not None and any(_may_have(host, info, ident) for ident in idents)
    ]


def _may_have(host: Host, info: AgentInfo, ident: str) -> bool:
    """The models of an agent that is not signed in may be unknown. `AGENT/MODEL` names the agent."""
    named = ident.partition("/")[0]
    if "/" in ident and named in host.agents:
        return named == info.id
    return not info.models or _find([info], ident) is not None


def _find(infos: list[AgentInfo], ident: str) -> tuple[AgentInfo, str | None] | None:
    """An empty ident is the first agent: a workflow need not name one."""
    if not ident and infos:
        return infos[0], None
    for info in infos:
        if any(model.id == ident for model in info.models):
            return info, ident
    for info in infos:
        if ident == info.id:
            return info, None
        name = ident.removeprefix(f"{info.id}/")
        if name != ident and any(model.id == name for model in info.models):
            return info, name
    return None


def _models(infos: list[AgentInfo]) -> list[Model]:
    found: dict[str, Model] = {}
    for info in infos:
        for model in info.models or [Model(info.id, info.name)]:
            ident = model.id if model.id not in found else f"{info.id}/{model.id}"
            name = f"{model.name} ({NEVER_ASKS})" if info.label == NEVER_ASKS else model.name
            found[ident] = Model(ident, name, model.multiplier, model.context, model.vision, model.meta)
    return list(found.values())


async def _ready(host: Host) -> list[AgentInfo]:
    infos = await host.describe()
    ready = [info for info in infos if info.missing is None]
    if infos and not ready:
        raise AgentUnavailable(f"No agent is ready. {infos[0].name}: {infos[0].missing}")
    return ready
