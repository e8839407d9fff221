"""`python -m bench.tasks`: all tasks with their own solutions as the model's answers, for every agent that is named.

    python -m bench.tasks --agent loop --agent acp:goose --agent acp:opencode

With a real model: `portico agents bench`. Numbers are means per task; the last column is the share of passes beside
that of the first agent.
"""

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

import msgspec
import uvloop
from msgspec.structs import replace
from tests.live.programs import LIVE

from portico.agents.agent import Agent, AgentContext
from portico.agents.loop import LoopAgent
from portico.agents.registry import discover
from portico.testing.model import ModelServer
from portico.testing.tasks import LONG, TASKS
from portico.testing.tasks.run import Played, play
from portico.testing.tasks.scripted import script
from portico.testing.tasks.table import line, table
from portico.testing.tasks.task import BenchTask


def main() -> None:
    wanted = _arguments()
    tasks = [task for name, task in (TASKS | LONG).items() if any(part in name for part in wanted.only or [""])]
    if not tasks:
        sys.exit(f"No task is called like this. There are: {', '.join(TASKS | LONG)}")
    played = uvloop.run(_scripted(wanted.agent or ["loop"], tasks))
    print(table(played))
    if wanted.json:
        Path(wanted.json).write_bytes(msgspec.json.encode(played))
    if not all(each.ok for each in played):
        sys.exit(1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m bench.tasks", description="Real tasks, with a scripted model.")
    parser.add_argument("--agent", action="append", help="loop, acp:goose, acp:opencode, ...; repeatable [loop]")
    parser.add_argument("--only", action="append", metavar="PART", help="tasks with this in their name; repeatable")
    parser.add_argument("--json", metavar="FILE", help="every result, for programs")
    return parser.parse_args()


async def _scripted(names: list[str], tasks: list[BenchTask]) -> list[Played]:
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
                    print(line(played[-1]), file=sys.stderr, flush=True)
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


if __name__ == "__main__":
    main()
