"""`portico agents`: which agents there are, whether they work, and which one answers by default."""

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any

import msgspec
import typer

from portico.agents.acp.catalogue import ADDRESS, local_copy, read, refresh
from portico.agents.acp.program import PRESETS, Program
from portico.agents.agent import Agent, AgentContext, AgentInfo, Check
from portico.agents.registry import discover
from portico.agents.suggestions import not_installed
from portico.cli.agents_bench import bench
from portico.cli.get_agent import RegistryOption, get_agent
from portico.cli.matrix import CHECKS, MatrixRow, markdown, try_all
from portico.cli.output import HomeOption, JsonFlag, plain, print_json, print_table, run
from portico.cli.trial import SECONDS, Trial, probe_asking, try_agent
from portico.client import Client
from portico.features.readiness.checks import check_agent, likely
from portico.kernel.errors import BadRequest, NotFound, PorticoError
from portico.server.home import Home
from portico.server.settings_edit import add_table, set_key
from portico.server.settings_load import load

app = typer.Typer(help="List, check, test and add agents, and choose the default one.", invoke_without_command=True)
app.command("bench")(bench)


@app.callback()
def _group(context: typer.Context) -> None:
    """Without a verb: the list."""
    if context.invoked_subcommand is None:
        list_agents()


@app.command("list")
def list_agents(
    check: Annotated[bool, typer.Option("--check", help="Start each one and speak the first handshake.")] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """List the agents of this machine, or of the running host, and those that are known and not installed.

    `*` marks the default. Agents that were not ready are checked again.

    Example: portico agents list --check
    """
    place = Home.default(home)
    infos, default, checks = run(_look(place, check))
    known = not_installed(info.id for info in infos)
    if as_json:
        print_json({"agents": infos, "default": default, "checks": checks if check else None, "known": known})
        return
    found = {each.agent: each for each in checks}
    rows = [
        [
            f"{'*' if info.id == default else ' '} {info.id}",
            _state(info, found.get(info.id), check),
            _words(info, found),
        ]
        for info in infos
    ]
    rows += [[f"  {each.id}", "not installed", f"{each.name}. Add it with: {each.add}"] for each in known]
    print_table(["agent", "state", "about"], rows, "There is no agent.")


def _state(info: AgentInfo, check: Check | None, checked: bool) -> str:
    if check is not None and (checked or not check.ok):
        return check.status.replace("_", " ") if checked else "not ready"
    return info.label or "there"


def _words(info: AgentInfo, checks: dict[str, Check]) -> str:
    return checks[info.id].detail if info.id in checks else info.description


async def _look(place: Home, check: bool) -> tuple[list[AgentInfo], str | None, list[Check]]:
    """By the running host, whose environment may be another than ours; without one as it would find them here. One that
    was not ready is checked again also without `check`: a person may have signed in since."""
    if place.endpoint() is not None:
        async with Client.local(place.path) as client:
            infos = await client.agents()
            wanted = [info.id for info in infos if check or info.missing is not None]
            checks = await asyncio.gather(*map(client.check_agent, wanted))
            return await client.agents(), await client.default_agent(), list(checks)
    async with _agents(place) as agents:
        infos = [await agent.describe() for agent in agents]
        again = [agent for agent, info in zip(agents, infos, strict=True) if check or info.missing is not None]
        checks = await asyncio.gather(*map(check_agent, again))
        infos = [await agent.describe() for agent in agents]
        chosen = load(place.settings_path).settings.default_agent
        return infos, chosen or likely(infos, list(checks)), list(checks)


@asynccontextmanager
async def _agents(place: Home, wanted: Sequence[str] = ()) -> AsyncIterator[list[Agent]]:
    place.make()
    agents = discover(AgentContext(place.path, load(place.settings_path).settings.agents), wanted)
    try:
        yield agents
    finally:
        await asyncio.gather(*(agent.close() for agent in agents))


@app.command()
def add(
    name: Annotated[
        str | None, typer.Argument(help="Its name: it becomes acp:NAME. Without one: what is known.")
    ] = None,
    command: Annotated[list[str] | None, typer.Argument(help="The program and its arguments, after --.")] = None,
    env: Annotated[list[str] | None, typer.Option(help="NAME=VALUE for its process; repeatable.")] = None,
    pass_env: Annotated[
        list[str] | None, typer.Option(help="A variable of Portico's environment that it gets; repeatable.")
    ] = None,
    unchecked: Annotated[bool, typer.Option("--unchecked", help="Write it down without starting it.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Install its package without asking.")] = False,
    registry: RegistryOption = None,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Add an agent that speaks the Agent Client Protocol: it is started to see whether it does, and whether it asks.

    With a command: that program. By name alone: one that is known, or listed in the registry of ACP agents; its package
    is installed below the home folder, after its licence and size were shown.

    Example: portico agents add mine --pass-env MY_KEY -- my-agent --acp
    """
    place = Home.default(home)
    if name is None:
        _show_known(as_json)
        return
    table: dict[str, Any] = {"command": command}
    if env:
        table["env"] = dict(_variable(each) for each in env)
    if pass_env:
        table["pass_env"] = pass_env
    if not command:
        installed = get_agent(place, name, registry, yes, as_json)
        if installed is None:
            return
        table["command"] = installed.command
        if installed.env:
            table["env"] = {**installed.env, **table.get("env", {})}
        name = installed.name
    asks: bool | None = None
    found = Check(f"acp:{name}", "ready", "not started")
    if not unchecked:
        found, asks = run(_check_new(place, name, table))
    if found.status not in ("ready", "not_signed_in"):
        raise BadRequest(f"{found.detail} Nothing was written; --unchecked writes it anyway.", field="command")
    place.make()
    add_table(place.settings_path, ("agents", "acp", name), table)
    if as_json:
        print_json({"agent": f"acp:{name}", "settings": str(place.settings_path), "check": found, "asks": asks})
    else:
        print(_asking(f"acp:{name}", asks), file=sys.stderr)
        offers = place.endpoint() is not None and run(_offer(place, f"acp:{name}"))
        offered = " The running host offers it now." if offers else ""
        print(f"acp:{name}: {found.detail.rstrip('.')}. Written to {place.settings_path}.{offered}", file=sys.stderr)


async def _offer(place: Home, ident: str) -> bool:
    """Whether the running host has taken it over."""
    async with Client.local(place.path) as client:
        await client.find_agents()
        return ident in [info.id for info in await client.agents()]


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise BadRequest(f"--env takes NAME=VALUE, not {text!r}.", field="env")
    return name, value


def _asking(ident: str, asks: bool | None) -> str:
    if asks is None:
        return f"It is not known whether {ident} asks before it acts. Find out: portico agents test {ident}"
    if asks:
        return f"{ident} asks before it acts: it did not write a file that was refused."
    words = f"{ident} does not ask: it wrote a file that was refused. Approvals do not protect anything from it."
    return f"{words} Sessions with it need the scope 'approve'."


async def _check_new(place: Home, name: str, table: dict[str, Any]) -> tuple[Check, bool | None]:
    """Whether it works, and whether it asks."""
    context = AgentContext(place.path, {"acp": {name: table}})
    agents = discover(context, [f"acp:{name}"])
    try:
        found = await check_agent(agents[0])
        return found, await probe_asking(agents[0]) if found.ok else None
    finally:
        await asyncio.gather(*(agent.close() for agent in agents))


def _show_known(as_json: bool) -> None:
    if as_json:
        print_json({name: {"command": each.command, "install": each.install} for name, each in PRESETS.items()})
        return
    rows = [[name, "installed" if each.path() else "", _install(each)] for name, each in PRESETS.items()]
    print_table(["agent", "state", "install"], rows, "")
    print(
        "Portico finds these on the PATH by itself, once they are installed and signed in. "
        "Any other: portico agents add NAME -- COMMAND",
        file=sys.stderr,
    )


def _install(program: Program) -> str:
    return program.install or shlex.join(program.command)


@app.command()
def search(
    word: Annotated[str, typer.Argument(help="Only those that have it in their name or description.")] = "",
    registry: RegistryOption = None,
    update: Annotated[
        bool, typer.Option("--refresh", help="Download the list from the public registry first, and keep it.")
    ] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """The agents of the registry of ACP agents, with their licence and where they come from.

    Without --refresh nothing is downloaded: the list is the one that was downloaded last, or that ships with Portico.

    Example: portico agents search code
    """
    place = Home.default(home).path
    listed = refresh(place, registry or ADDRESS) if update else read(registry or str(local_copy(place)))
    found = [each for each in listed if word.lower() in f"{each.id} {each.name} {each.description}".lower()]
    if as_json:
        print_json(found)
        return
    rows = [[each.id, each.version, each.license, each.distribution.kinds, plain(each.description)] for each in found]
    print_table(
        ["agent", "version", "licence", "from", "about"],
        rows,
        "No agent is called like this. A newer list: portico agents search --refresh",
    )


@app.command("test")
def try_out(
    name: Annotated[str | None, typer.Argument(help="The agent, for example goose or acp:goose.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Try everything an agent can do, with NAME or with every agent.")
    ] = False,
    scripted: Annotated[
        bool,
        typer.Option("--scripted", help="With --all: the model is `portico model-server`."),
    ] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="With --all: the table of the guide.")] = False,
    model: Annotated[str | None, typer.Option("--model", "-m", help="The model. [its first]")] = None,
    seconds: Annotated[float, typer.Option("--timeout", min=1, help="Seconds until it must have finished.")] = SECONDS,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Let an agent do a turn with a tool call in an empty folder, and another in which it is refused. Uses its model.
    Exit code 1 if it cannot.

    With --all it is a table of what works: streams, tools, approvals, cancel, resume, session tools, attachments.

    Example: portico agents test goose
    """
    if every:
        _print_matrix(run(_try_everything(Home.default(home), name, model, scripted)), as_json, as_markdown)
        return
    if name is None:
        raise BadRequest("Name an agent, or say --all. See: portico agents list", field="name")
    result = run(_try(Home.default(home), name, model, seconds))
    if as_json:
        print_json(result)
    else:
        print(_verdict(result))
        if result.ok and result.agent.startswith("acp:"):
            print(_asking(result.agent, result.asks))
    if not result.ok:
        raise typer.Exit(1)


def _print_matrix(rows: list[MatrixRow], as_json: bool, as_markdown: bool) -> None:
    if as_json:
        print_json(rows)
        return
    for row in rows:
        if row.problem:
            print(f"{row.agent}: {row.problem}", file=sys.stderr)
    tried = [row for row in rows if not row.problem]
    if as_markdown:
        print(markdown(tried))
        return
    answers = [[row.agent, row.version, *(row.checks[name].answer for name in CHECKS)] for row in tried]
    print_table(["agent", "version", *CHECKS], answers, "No agent could be tried.")


async def _try_everything(place: Home, name: str | None, model: str | None, scripted: bool) -> list[MatrixRow]:
    """One after the other: they would slow each other down, and a check has its time."""
    async with _agents(place) as agents:
        wanted = [_find(agents, name)] if name is not None else agents
        idents = [agent.id for agent in wanted if agent.id != "demo"]
    context = AgentContext(place.path, load(place.settings_path).settings.agents)
    rows: list[MatrixRow] = []
    for number, ident in enumerate(idents, 1):
        print(f"Trying {ident} ({number} of {len(idents)}) ...", file=sys.stderr, flush=True)
        rows.append(await try_all(partial(_made, context, ident), scripted=scripted, model=model))
    return rows


def _made(context: AgentContext, ident: str) -> Agent:
    return next(agent for agent in discover(context, [ident]) if agent.id == ident)


def _verdict(result: Trial) -> str:
    tools = ", ".join(result.tools) or "none"
    if result.ok:
        return f"{result.agent} works: it wrote a file in {result.seconds:g} s (tools: {tools})."
    return f"{result.agent} does not work: {result.problem} (tools: {tools}; {result.seconds:g} s)"


async def _try(place: Home, name: str, model: str | None, seconds: float) -> Trial:
    async with _agents(place) as agents:
        agent = _find(agents, name)
        if agent.id == "demo":
            words = "The demo plays a script and does as that says, so there is nothing to test."
            raise BadRequest(f'{words} Try: portico send --yes "write something"', field="name")
        found = await check_agent(agent)
        if not found.ok:
            return Trial(agent.id, False, 0.0, [], "", found.detail)
        asks = await probe_asking(agent, again=True)
        return msgspec.structs.replace(await try_agent(agent, model, seconds), asks=asks)


def _find(agents: Sequence[Agent], name: str) -> Agent:
    """By its id, or by its name without `acp:`."""
    for ident in (name, f"acp:{name}"):
        for agent in agents:
            if agent.id == ident:
                return agent
    names = [agent.id for agent in agents]
    raise NotFound("agent", name, f"There are: {', '.join(names)}. Add one with: portico agents add")


@app.command()
def default(
    name: Annotated[
        str | None, typer.Argument(help="The agent of sessions that name none. Without one: which it is.")
    ] = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="Forget the choice: the first real one that is ready.")
    ] = False,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Show or choose the default agent. A running host applies it within a second.

    Example: portico agents default acp:goose
    """
    place = Home.default(home)
    if name is not None and clear:
        raise BadRequest("Name an agent or say --clear, not both.", field="name")
    chosen = name
    if name is not None:
        chosen = run(_known(place, name))
    if name is not None or clear:
        place.make()
        set_key(place.settings_path, "default_agent", chosen)
    current = chosen if chosen is not None else run(_current_default(place))
    if as_json:
        print_json({"default": current})
    else:
        print(current or "No agent is ready.")


async def _current_default(place: Home) -> str | None:
    """The setting's; without one agents are started, because only then it is known which of them is ready."""
    chosen = load(place.settings_path).settings.default_agent
    return (await _look(place, check=not chosen))[1]


async def _known(place: Home, name: str) -> str:
    async with _agents(place) as agents:
        try:
            return _find(agents, name).id
        except NotFound:
            if place.endpoint() is None:
                raise
    try:
        async with Client.local(place.path) as client:
            if name in {info.id for info in await client.agents()}:
                return name
    except PorticoError as error:
        raise NotFound("agent", name) from error
    raise NotFound("agent", name, "See: portico agents list")
