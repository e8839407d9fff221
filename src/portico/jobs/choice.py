"""Which agent answers for a model id: the first ready one that has it; `agent/model` names one exactly."""

from portico import limits
from portico.errors import AgentUnavailable, NotFound
from portico.host.agent import AgentInfo, Model
from portico.host.host import Host
from portico.jobs.models import ModelUse, check_models


async def offered(host: Host) -> list[Model]:
    """Every model of every ready agent, each under an id that `choose` understands and that only it has."""
    found: dict[str, Model] = {}
    for info in await _ready(host):
        for model in info.models or [Model(info.id, info.name)]:
            ident = model.id if model.id not in found else f"{info.id}/{model.id}"
            found[ident] = Model(ident, model.name, model.multiplier, model.context, model.vision, model.meta)
    return list(found.values())


async def check_offered(host: Host, uses: list[ModelUse]) -> None:
    """Each of them is there, or one of those that take over from it."""
    for use in uses:
        if not any([await _has(host, model) for model in (use.model_id, *use.instead)]):
            check_models([use], await offered(host))


async def _has(host: Host, model: str) -> bool:
    try:
        await choose(host, model)
    except NotFound:
        return False
    return True


async def choose(host: Host, ident: str) -> tuple[str, str | None]:
    """The agent and its own id of the model; None: only the agent was named, its first model will do."""
    try:
        return await _choose(host, ident)
    except (AgentUnavailable, NotFound):
        if not await host.descriptions.settle(limits.JOB_DESCRIBE_SECONDS):
            raise
        return await _choose(host, ident)


async def _choose(host: Host, ident: str) -> tuple[str, str | None]:
    infos = await _ready(host)
    for info in infos:
        if any(model.id == ident for model in info.models):
            return info.id, ident
    for info in infos:
        if ident == info.id:
            return info.id, None
        name = ident.removeprefix(f"{info.id}/")
        if name != ident and any(model.id == name for model in info.models):
            return info.id, name
    names = ", ".join(repr(model.id) for model in await offered(host))
    raise NotFound("model", ident, f"There are: {names}.")


async def _ready(host: Host) -> list[AgentInfo]:
    infos = await host.describe()
    ready = [info for info in infos if info.missing is None]
    if infos and not ready:
        raise AgentUnavailable(f"No agent is ready. {infos[0].name}: {infos[0].missing}")
    return ready
