"""`portico agents bench`: real tasks with the agents and the models of the settings, and a table of the results."""

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from portico.agents.agent import Agent, AgentContext
from portico.agents.registry import discover
from portico.cli.output import HomeOption, JsonFlag, print_json, run
from portico.kernel.errors import NotFound
from portico.server.home import Home
from portico.server.settings_load import load

if TYPE_CHECKING:
    from portico.testing.tasks.run import Played
    from portico.testing.tasks.task import BenchTask


def bench(
    agents: Annotated[list[str] | None, typer.Argument(help="Agents, by the names of `portico agents list`.")] = None,
    model: Annotated[str | None, typer.Option(help="The model, by the agents' own name for it.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Tasks with this in their name; repeatable.")] = None,
    long: Annotated[bool, typer.Option("--long", help="Also the tasks of 30 to 60 steps and of two messages.")] = False,
    repeat: Annotated[int, typer.Option(min=1, help="How often each task is done.")] = 1,
    timeout: Annotated[float, typer.Option(help="Seconds for one task.")] = 300.0,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Let agents do thirty small tasks with your own model, and compare them.

    The tasks run one after the other in temporary folders, and everything that an agent asks for is allowed. They cost
    tokens: start with `--only fix-median`. Without a name: the built-in agent.

    Example: portico agents bench loop acp:goose --only fix
    """
    from portico.testing.tasks import LONG, TASKS
    from portico.testing.tasks.table import table

    place = Home.default(home)
    known = TASKS | LONG if long else TASKS
    tasks = [task for name, task in known.items() if any(part in name for part in only or [""])]
    if not tasks:
        raise NotFound("task", ", ".join(only or []), f"There are: {', '.join(known)}.")
    makers = {name: _maker(place, name) for name in agents or ["loop"]}
    played = run(_play(makers, tasks * repeat, model, timeout))
    if as_json:
        print_json({"results": played})
    else:
        print(table(played))
    if not all(each.ok for each in played):
        raise typer.Exit(1)


def _maker(place: Home, name: str) -> Callable[[], Agent]:
    place.make()
    context = AgentContext(place.path, load(place.settings_path).settings.agents)

    def make() -> Agent:
        return next(agent for agent in discover(context, [name]) if agent.id == name)

    found = discover(context)
    if all(agent.id != name for agent in found):
        raise NotFound("agent", name, f"There are: {', '.join(agent.id for agent in found)}.")
    return make


async def _play(
    makers: dict[str, Callable[[], Agent]], tasks: "Sequence[BenchTask]", model: str | None, seconds: float
) -> "list[Played]":
    from portico.testing.tasks.run import play
    from portico.testing.tasks.table import line

    played: list[Played] = []
    for make in makers.values():
        for task in tasks:
            played.append(await play(task, make, model, seconds))
            print(line(played[-1]), file=sys.stderr, flush=True)
    return played
