"""`python -m bench.tasks`: the same tasks with the same model for every agent that is named, one after the other.

    python -m bench.tasks --scripted --agent loop --agent acp:goose --agent acp:opencode
    python -m bench.tasks --agent loop --agent acp:goose --agent acp:opencode --model MODEL --json results.json

The agents are those of the settings (`--home`), as `portico agents list` shows them: give each the same model and the
same key there. Numbers are means per task; the last column is the share of passes beside that of the first agent.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import msgspec
import uvloop
from msgspec.structs import replace
from tests.live.programs import LIVE

from bench.tasks import TASKS
from bench.tasks.run import Played, play
from bench.tasks.scripted import script
from bench.tasks.task import Task
from portico.agents.agent import Agent, AgentContext
from portico.agents.loop import LoopAgent
from portico.agents.registry import discover
from portico.home import Home
from portico.settings_load import load
from portico.testing.model import ModelServer


def main() -> None:
    wanted = _arguments()
    tasks = [task for name, task in TASKS.items() if any(part in name for part in wanted.only or [""])]
    if not tasks:
        sys.exit(f"No task is called like this. There are: {', '.join(TASKS)}")
    played = uvloop.run(_scripted(wanted.agent or ["loop"], tasks) if wanted.scripted else _real(wanted, tasks))
    print(table(played))
    if wanted.json:
        Path(wanted.json).write_bytes(msgspec.json.encode(played))
    if wanted.scripted and not all(each.ok for each in played):
        sys.exit(1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m bench.tasks", description="Small real tasks for agents, checked.")
    parser.add_argument("--agent", action="append", help="an agent of the settings; repeatable [loop]")
    parser.add_argument("--model", help="the model, by the agents' own name for it")
    parser.add_argument("--only", action="append", metavar="PART", help="tasks with this in their name; repeatable")
    parser.add_argument("--repeat", type=int, default=1, help="how often each task is played [1]")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one task [300]")
    parser.add_argument("--home", type=Path, help="the home folder with the settings")
    parser.add_argument("--scripted", action="store_true", help="play the tasks' own solutions: no model at all")
    parser.add_argument("--json", metavar="FILE", help="every result, for programs")
    return parser.parse_args()


async def _real(wanted: argparse.Namespace, tasks: list[Task]) -> list[Played]:
    home = Home.default(wanted.home)
    context = AgentContext(home.path, load(home.settings_path).settings.agents)

    def maker(name: str) -> Callable[[], Agent]:
        return lambda: next(agent for agent in discover(context, [name]) if agent.id == name)

    played = []
    for name in wanted.agent or ["loop"]:
        for task in tasks * wanted.repeat:
            played.append(await play(task, maker(name), wanted.model, wanted.timeout))
            print(_line(played[-1]), file=sys.stderr, flush=True)
    return played


async def _scripted(names: list[str], tasks: list[Task]) -> list[Played]:
    """The same answers for every agent: what differs is what they send to the model, and whether their tools work."""
    played = []
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        async with ModelServer(script(tasks)) as server:
            for name in names:
                make = partial(offline_agent, name, Path(home), server.url)
                for task in tasks:
                    server.requests.clear()
                    found = await play(task, make, None, 120)
                    sent = sum(len(msgspec.json.encode(each.body)) for each in server.requests)
                    played.append(replace(found, requests=len(server.requests), sent=sent))
                    print(_line(played[-1]), file=sys.stderr, flush=True)
    return played


def offline_agent(name: str, home: Path, model: str) -> Agent:
    """The agent with the scripted model behind it; other programs than ours as the live tests install them."""
    if name == "loop":
        return LoopAgent(AgentContext(home, {}), {"OPENAI_BASE_URL": f"{model}/v1", "OPENAI_API_KEY": "k"})
    program = next((each for each in LIVE if f"acp:{each.name}" == name), None)
    if program is None:
        sys.exit(f"With --scripted there are: loop, {', '.join(f'acp:{each.name}' for each in LIVE)}")
    context = AgentContext(home, {"acp": {program.name: program.table(home / program.name, model)}})
    return next(agent for agent in discover(context, [name]) if agent.id == name)


def _line(each: Played) -> str:
    return f"{each.agent}  {each.task}  {'ok' if each.ok else each.problem}  {each.seconds} s"


def table(played: list[Played]) -> str:
    agents = list(dict.fromkeys(each.agent for each in played))
    kinds = list(dict.fromkeys(each.kind for each in played))
    rows = [["agent", *kinds, "all", "tokens in / out", "requests", "KB sent", "seconds p50", "beside the first"]]
    shares = {agent: _share([each for each in played if each.agent == agent]) for agent in agents}
    for agent in agents:
        own = [each for each in played if each.agent == agent]
        passed = [_passed([each for each in own if each.kind == kind]) for kind in kinds]
        beside = f"{shares[agent] / shares[agents[0]]:.2f}x" if shares[agents[0]] else "-"
        seconds = f"{median(each.seconds for each in own):g}"
        asked = [_mean([each.requests for each in own]), _mean([each.sent for each in own], 1000)]
        rows.append([agent, *passed, _passed(own), _tokens(own), *asked, seconds, beside])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in padded]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def _share(played: list[Played]) -> float:
    return sum(each.ok for each in played) / len(played)


def _passed(played: list[Played]) -> str:
    return f"{sum(each.ok for each in played)}/{len(played)}"


def _mean(values: list[int | None], unit: int = 1) -> str:
    known = [each for each in values if each is not None]
    return f"{sum(known) / len(known) / unit:.1f}" if known else "unknown"


def _tokens(played: list[Played]) -> str:
    told = [each for each in played if each.input is not None and each.output is not None]
    if not told:
        return "unknown"
    read, written = sum(each.input or 0 for each in told), sum(each.output or 0 for each in told)
    return f"{read // len(told)} / {written // len(told)}"


if __name__ == "__main__":
    main()
