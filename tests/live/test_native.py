"""Sessions of real programs: started in the program's own command line, adopted, continued there and here again."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from portico.agents.acp.agent import AcpAgent
from portico.features.native.commands import AdoptSession, ContinueInTerminal, FindSessions
from portico.kernel.commands import Caller
from portico.kernel.host import Host
from portico.testing.model import ModelServer
from tests.agents.acp_agent import said
from tests.live.copilot_agent import copilot_agent
from tests.live.host import SECONDS, agent_of, hosting, play, script
from tests.live.programs import COPILOT, LIVE, MODULES, NODE22, QWEN, Live
from tests.live.test_acp import TITLES

pytestmark = pytest.mark.live
OWNER = Caller("owner", "owner", frozenset({"read", "drive", "approve", "admin"}))
CLAUDE = MODULES / "@anthropic-ai/claude-agent-sdk-linux-x64/claude"
GOOSE = MODULES / "@aaif/goose-binary-linux-x64/bin/goose"
OPENCODE = MODULES / "opencode-linux-x64/bin/opencode"

Words = Callable[[str, str | None], list[str]]
PROGRAMS: dict[str, Words] = {
    "claude": lambda text, ident: [str(CLAUDE), "-p", text, *(["--resume", ident] if ident else [])],
    "codex": lambda text, ident: [
        *(NODE22, str(MODULES / ".bin/codex"), "exec", "--skip-git-repo-check"),
        *(["resume", ident] if ident else []),
        text,
    ],
    "copilot": lambda text, ident: [str(COPILOT), "-p", text, *([f"--resume={ident}"] if ident else [])],
    "goose": lambda text, ident: [
        *(str(GOOSE), "run", "-t", text),
        *(["--resume", "--session-id", ident] if ident else []),
    ],
    "opencode": lambda text, ident: [str(OPENCODE), "run", text, *(["--session", ident] if ident else [])],
    "qwen": lambda text, ident: [
        NODE22,
        str(MODULES / ".bin/qwen"),
        "-p",
        text,
        *(["--resume", ident] if ident else []),
    ],
}
"""One message in the program's own command line, in a new session or (with its id) in an existing one."""


async def type_in_terminal(live: Live, folder: Path, model: str, answer: str, ident: str | None = None) -> None:
    env = {**os.environ, **live.table(folder / "vendor", model)["env"], "PWD": str(folder / "work")}
    process = await asyncio.create_subprocess_exec(
        *PROGRAMS[live.name](script({"say": answer}), ident),
        cwd=folder / "work",
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(SECONDS):
        output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()


async def start_natively(live: Live, folder: Path, model: str, answer: str) -> None:
    """Codex lists what its interactive program or an editor started, and not what `codex exec` did."""
    if live.name != "codex":
        await type_in_terminal(live, folder, model, answer)
        return
    agent = agent_of(folder, live, model)
    assert isinstance(agent, AcpAgent)
    async with agent.connected(str(folder / "work")) as link:
        made = await link.request("session/new", {"cwd": str(folder / "work"), "mcpServers": []})
        prompt = [{"type": "text", "text": script({"say": answer})}]
        await link.request("session/prompt", {"sessionId": made["sessionId"], "prompt": prompt})
    await agent.close()


async def find(host: Host, agent: str, cwd: Path) -> list[str]:
    """An agent that starts slowly is listed the next time."""
    async with asyncio.timeout(SECONDS):
        while True:
            (page,) = (await host.do(FindSessions(agent=agent, cwd=str(cwd)), OWNER)).agents
            if "still starting" not in page.problem:
                assert page.problem == ""
                return [each.id for each in page.sessions]


NAMES = {**{live.name: live for live in (*LIVE, QWEN) if live.name in PROGRAMS}, "copilot-sdk": LIVE[0]}


@pytest.mark.parametrize("name", NAMES)
async def test_a_session_moves_between_its_program_and_the_host(name: str, tmp_path: Path) -> None:
    live, work = NAMES[name], tmp_path / "work"
    work.mkdir()
    async with ModelServer(TITLES) as model:
        await start_natively(live, tmp_path, model.url, "Said in the terminal.")
        sdk = name == "copilot-sdk"
        agent = copilot_agent(tmp_path, model.url) if sdk else agent_of(tmp_path, live, model.url)
        async with hosting(tmp_path, agent) as host:
            (native,) = await find(host, agent.id, work)
            adopt = AdoptSession(agent=agent.id, native=native, cwd=str(work), confirm=True)
            session = await host.get((await host.do(adopt, OWNER)).id)
            assert [said(turn) for turn in session.state.turns] == ["Said in the terminal."]

            turn = await play(session, {"say": "Said in Portico."})
            assert (said(turn), said(turn, "notice")) == ("Said in Portico.", "")
            assert session.state.vendor == native
            asked = [str(each.body) for each in model.requests]
            assert any("Said in the terminal." in body for body in asked), "the agent knows what came before"

            line = await host.do(ContinueInTerminal(session=session.id), OWNER)
            assert native in line.command
            await type_in_terminal(live, tmp_path, model.url, "Once more in the terminal.", native)
            turn = await play(session, {"say": "And here."})
            assert said(turn, "notice") == ""
            answers = [said(turn) for turn in session.state.turns]
            assert answers == ["Said in the terminal.", "Said in Portico.", "Once more in the terminal.", "And here."]
            assert await find(host, agent.id, work) == []
            costs = [turn.usage.cost for turn in session.state.turns if turn.usage]
            assert session.state.usage.cost == pytest.approx(sum(costs))
