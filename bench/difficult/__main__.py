"""`python -m bench.difficult`: the same bytes for every agent that is named, one after the other.

    python -m bench.difficult --agent loop --agent acp:goose --agent acp:opencode

Other agents than `loop` are those of the live tests: `tests/live/install.sh` installs them.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import msgspec
import uvloop

from bench.difficult.cases import CASES
from bench.difficult.endpoint import ByteEndpoint
from bench.difficult.run import Outcome, play_all
from bench.tasks.__main__ import offline_agent


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench.difficult", description="Difficult bytes for agents.")
    parser.add_argument("--agent", action="append", help="loop, acp:goose, acp:opencode, ...; repeatable [loop]")
    parser.add_argument("--only", action="append", metavar="PART", help="cases with this in their name; repeatable")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one case [60]")
    parser.add_argument("--json", metavar="FILE", help="every result, for programs")
    wanted = parser.parse_args()
    names = [name for name in CASES if any(part in name for part in wanted.only or [""])]
    found = uvloop.run(_play(wanted.agent or ["loop"], names, wanted.timeout))
    print(table(found))
    if wanted.json:
        Path(wanted.json).write_bytes(msgspec.json.encode(found))
    if any(not each.ok for each in found if each.agent == "loop"):
        sys.exit(1)


async def _play(agents: list[str], names: list[str], seconds: float) -> list[Outcome]:
    found: list[Outcome] = []
    async with ByteEndpoint(CASES) as endpoint:
        for name in agents:
            with tempfile.TemporaryDirectory(prefix="portico-difficult-", ignore_cleanup_errors=True) as place:
                agent = offline_agent(name, Path(place) / "home", endpoint.url)
                async for each in play_all(agent, [CASES[case] for case in names], endpoint, Path(place), seconds):
                    found.append(each)
                    print(f"{name}  {each.case}  {each.problem or 'ok'}  {each.seconds} s", file=sys.stderr, flush=True)
    return found


def table(found: list[Outcome]) -> str:
    agents = list(dict.fromkeys(each.agent for each in found))
    by = {(each.agent, each.case): each for each in found}
    rows = [["case", *agents]]
    for case in dict.fromkeys(each.case for each in found):
        rows.append([case, *("yes" if by[agent, case].ok else by[agent, case].problem[:60] for agent in agents)])
    rows.append(["**handled**", *(f"{sum(each.ok for each in found if each.agent == agent)}" for agent in agents)])
    lines = [f"| {' | '.join(cell.replace('|', ' ').replace(chr(10), ' ') for cell in row)} |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
