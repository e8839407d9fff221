"""Real ACP agents, offline, against the scripted model server: a day with each of them."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from portico.agents.acp.agent import AcpAgent
from portico.agents.agent import Autonomy
from portico.features.terminals.terminals import Terminals
from portico.kernel.call import Call
from portico.kernel.events import Message, ToolSpec
from portico.kernel.host import Host
from portico.kernel.state import CallPart, TurnState
from portico.kernel.tool import Tool, ToolResult
from portico.testing.model import ModelServer
from portico.testing.model.script import ModelRule, Script, Step
from portico.testing.model.search import SEARCHES
from portico.workspace.child import started
from tests.agents.acp_agent import calls, said, waiting_approval
from tests.features import feature
from tests.live.host import SECONDS, agent_of, begin, hosting, play, process_of, processes, script
from tests.live.programs import LIVE, Live, age_gemini
from tests.workspace.living import gone, pids_in

pytestmark = pytest.mark.live
agents = pytest.mark.parametrize("live", LIVE, ids=lambda live: live.name)

HANGING = {"say": "one two three", "hang": 2}
# Goose asks for a title beside its first question, with the same words: it would get what is meant for the question.
TITLES = Script(rules=[ModelRule([Step(say="A title")], match="Generate a short title", tools=False)])


async def _report(arguments: dict[str, Any], call: Call) -> ToolResult:
    return ToolResult(True, f"noted: {arguments['argument']}")


SCHEMA = {"type": "object", "properties": {"argument": {"type": "string"}}, "required": ["argument"]}
REPORT = Tool(ToolSpec("job_boolean_true", "Report that it holds", SCHEMA), _report)


def once(step: dict[str, Any], then: str) -> dict[str, Any]:
    """Some agents send a message that got no answer again, together with the next."""
    return {"say": then, "first": {"key": then, "times": 1, "step": step}}


async def unclassed_modes(host: Host) -> list[str]:
    """Modes that the program offers and nobody has classed: a new version may begin in one of them."""
    (agent,) = host.agents.values()
    assert isinstance(agent, AcpAgent)
    modes = (await agent.describe()).config.get("properties", {}).get("mode", {}).get("enum", [])
    return [mode for mode in modes if agent.autonomy("mode", mode) is Autonomy.UNKNOWN]


def called(turn: TurnState) -> list[CallPart]:
    """Without the search that comes before a tool which the agent hides."""
    return [call for call in calls(turn) if call.tool not in SEARCHES]


def check_memory(live: Live, turn: TurnState, expected: str) -> None:
    """The agent took up its conversation by itself, or was told what was said (with all the old scripts in it)."""
    assert turn.outcome == "completed", turn.error
    if live.remembers or not said(turn, "notice"):
        assert (said(turn), said(turn, "notice")) == (expected, "")
    else:
        assert "began a new conversation" in said(turn, "notice")


@agents
async def test_a_day_with_a_real_agent(live: Live, tmp_path: Path) -> None:
    work = tmp_path / "work"
    file = work / "a.txt"

    def write(text: str) -> dict[str, object]:
        return {"calls": [{"kind": "write", "args": {"path": str(file), "content": text}}]}

    async with ModelServer(TITLES) as model, hosting(tmp_path, agent_of(tmp_path, live, model.url)) as host:
        host.tools["job_boolean_true"] = REPORT
        session = await host.start(by="test", cwd=str(work))

        turn = await play(session, {"say": ["Hello ", "there", "."]})
        assert (turn.outcome, said(turn)) == ("completed", "Hello there."), turn.error
        assert await unclassed_modes(host) == []

        turn = await play(session, write("yes"), {"say": "Done."}, allow=True)
        assert file.read_text().strip() == "yes"
        assert calls(turn)[-1].approvals[0].kind == "write"
        assert calls(turn)[-1].outcome == "completed"
        file.unlink()

        turn = await play(session, write("no"), {"say": "Done."}, allow=False)
        assert not file.exists()
        assert calls(turn)[-1].outcome == "cancelled"
        assert turn.outcome == "completed", turn.error

        call = {"match": ".*job_boolean_true", "args": {"argument": "it does"}}
        turn = await play(session, {"calls": [call]}, {"say": "{{result}}"}, allow=True)
        assert "noted: it does" in said(turn)
        assert [(call.tool, call.output) for call in called(turn)] == [("job_boolean_true", "noted: it does")]

        cancelled = await begin(session, HANGING)
        await session.cancel(by="test")
        turn = await session.wait(cancelled)
        assert turn.outcome == "cancelled"
        assert said(turn).startswith("one")

        dying = await begin(session, once(HANGING, "I am back."))
        pid = await process_of(tmp_path)
        os.kill(pid, signal.SIGKILL)
        turn = await session.wait(dying)
        assert turn.error is not None
        assert (turn.outcome, turn.error.code) == ("failed", "agent_died")

        turn = await play(session, {"say": "I am back."})
        check_memory(live, turn, "I am back.")
        pid = await process_of(tmp_path)
    assert started(pid) is None
    assert processes(tmp_path) == []


async def _whose(arguments: dict[str, Any], call: Call) -> ToolResult:
    return ToolResult(True, call.turn.session.id)


async def test_two_sessions_of_opencode_in_one_folder_do_not_mix(tmp_path: Path) -> None:
    """It keeps one set of MCP servers per folder and process: the older one's tool came with the newer one's key."""
    (live,) = [live for live in LIVE if live.name == "opencode"]
    work = tmp_path / "work"
    async with ModelServer(TITLES) as model, hosting(tmp_path, agent_of(tmp_path, live, model.url)) as host:
        host.tools["whose"] = Tool(ToolSpec("whose", "Says in which session it runs", SCHEMA), _whose)
        sessions = [await host.start(by="test", cwd=str(work)) for _ in range(2)]
        for session in sessions:
            await play(session, {"say": "Hello."})
        tool = {"calls": [{"match": ".*whose", "args": {"argument": "?"}}]}
        turns = await asyncio.gather(*(play(each, tool, {"say": "{{result}}"}, allow=True) for each in sessions))
        assert [[call.output for call in calls(turn)] for turn in turns] == [[each.id] for each in sessions]
        assert [session.id in said(turn) for session, turn in zip(sessions, turns, strict=True)] == [True, True]

        # Both ask at the same time; one is refused, and then the other is allowed.
        written = [work / "refused.txt", work / "allowed.txt"]
        steps = [{"calls": [{"kind": "write", "args": {"path": str(path), "content": "x"}}]} for path in written]
        waiting = [
            await (await host.get(session.id)).send(Message(script(step, {"say": "Done."})), by="test")
            for session, step in zip(sessions, steps, strict=True)
        ]
        async with asyncio.timeout(SECONDS):
            asked = [await waiting_approval(session) for session in sessions]
            for session, ident, path in zip(sessions, asked, written, strict=True):
                (call,) = calls(session.state.active)
                assert path.name in str(call.approvals[0].path), call
                await session.approvals.answer(ident, by="test", allow=path.name == "allowed.txt")
            turns = [await session.wait(turn) for session, turn in zip(sessions, waiting, strict=True)]
        assert [calls(turn)[0].outcome for turn in turns] == ["cancelled", "completed"]
        assert [path.exists() for path in written] == [False, True]
        assert len(processes(tmp_path)) == 2
    assert processes(tmp_path) == []


async def test_what_goose_runs_is_a_terminal_of_the_host(tmp_path: Path) -> None:
    (live,) = [live for live in LIVE if live.name == "goose"]
    work = tmp_path / "work"
    async with ModelServer(TITLES) as model, hosting(tmp_path, agent_of(tmp_path, live, model.url)) as host:
        session = await host.start(by="test", cwd=str(work))
        command = "echo began; until [ -e go ]; do sleep 0.05; done; echo ended"
        steps = script({"calls": [{"kind": "execute", "args": {"command": command}}]}, {"say": "Done."})
        turn = await session.send(Message(steps), by="test")
        async with asyncio.timeout(SECONDS):
            await session.approvals.answer(await waiting_approval(session), by="test", allow=True)
            await session.wait_until(lambda state: any(call.content for call in calls(state.active)))
            (terminal,) = feature(host, Terminals).list()
            async for _ in host.log.follow(terminal.channel):
                if "began" in terminal.shown.text():
                    break
            assert (terminal.session, terminal.title) == (session.id, command)
            (work / "go").touch()
            ended = await session.wait(turn)
        assert feature(host, Terminals).list() == []
        assert [call.output for call in calls(ended)] == ["began\nended\n"]


@agents
async def test_a_session_goes_on_after_the_host_was_killed(live: Live, tmp_path: Path) -> None:
    async with ModelServer(TITLES) as model:
        ident = await killed_host(live, tmp_path, model.url)
        check_memory(live, await again(live, tmp_path, ident, model), "Here I am again.")


async def test_gemini_takes_up_a_conversation_of_an_earlier_minute(tmp_path: Path) -> None:
    """It answers `session/load` and then goes on telling its history, which was shown as part of the next answer."""
    (live,) = [live for live in LIVE if live.name == "gemini"]
    async with ModelServer(TITLES) as model:
        ident = await killed_host(live, tmp_path, model.url)
        age_gemini(tmp_path / "vendor")
        turn = await again(live, tmp_path, ident, model)
        assert (said(turn), said(turn, "notice")) == ("Here I am again.", "")


async def killed_host(live: Live, folder: Path, model: str) -> str:
    """A host that was killed in the middle of its second turn; returns its session."""
    (folder / "work").mkdir()
    prompts = [script({"say": "I shall remember."}), script(once(HANGING, "Here I am again."))]
    killed = await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "tests.live.host", str(folder), live.name, model, *prompts],
        stdout=asyncio.subprocess.PIPE,
    )
    assert killed.stdout is not None
    async with asyncio.timeout(SECONDS):
        ident = (await killed.stdout.readline()).decode().strip()
    killed.kill()
    await killed.wait()
    return ident


async def again(live: Live, folder: Path, ident: str, model: ModelServer) -> TurnState:
    """A turn in the next host. The orphan is gone, and the model is asked with what was said before the kill."""
    orphans = processes(folder)
    async with hosting(folder, agent_of(folder, live, model.url)) as host:
        assert [started(pid) for pid in orphans] == [None]
        session = await host.get(ident)
        assert session.state.turns[-1].outcome == "interrupted"
        before = len(model.requests)
        turn = await play(session, {"say": "Here I am again."})
        asked = [str(each.body) for each in list(model.requests)[before:]]
        assert any("I shall remember." in body and "one two three" in body for body in asked)
        return turn


@agents
async def test_a_flood_is_taken_whole(live: Live, tmp_path: Path) -> None:
    """Copilot gives up when nobody takes what it says: half the text, and a cancel that nobody asked for."""
    words = [f"w{number} " for number in range(6000)]
    # Copilot can lose this race by itself: given all of it at once it gave up after it had written 64 updates, at most
    # two of them in a read, so its pipe had never been full. At this pace it passes on all of them, even to a reader
    # that takes nothing for 15 seconds.
    gap = 1 if live.name == "copilot" else 0
    async with ModelServer(TITLES) as model, hosting(tmp_path, agent_of(tmp_path, live, model.url)) as host:
        session = await host.start(by="test", cwd=str(tmp_path / "work"))
        turn = await play(session, {"say": words, "gap": gap})
        assert (turn.outcome, said(turn).strip() == "".join(words).strip()) == ("completed", True), turn.error


async def test_a_cancel_ends_the_command_that_goose_runs(tmp_path: Path) -> None:
    """Reported: it was alive two minutes later, and its call was recorded as ok."""
    (live,) = [live for live in LIVE if live.name == "goose"]
    async with ModelServer(TITLES) as model, hosting(tmp_path, agent_of(tmp_path, live, model.url)) as host:
        session = await host.start(by="test", cwd=str(tmp_path / "work"), config={"approvals": "allow"})
        command = "echo $$ > pid; exec sleep 1000"
        steps = script({"calls": [{"kind": "execute", "args": {"command": command}}]}, {"say": "Ran."})
        turn = await session.send(Message(steps), by="test")
        async with asyncio.timeout(SECONDS):
            (pid,) = await pids_in(tmp_path / "work" / "pid", 1)
            await session.cancel(by="test")
            ended = await session.wait(turn)
            await gone(pid)
        assert ended.outcome == "cancelled"
        assert {(call.ok, call.outcome) for call in calls(ended) if call.tool != "terminal"} == {(False, "cancelled")}
