"""The real Copilot runtime behind the SDK, with a provider of our own: the scripted model server."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from portico.agents.copilot.agent import CopilotAgent
from portico.kernel import commands as c
from portico.kernel.events import Message, PartDelta, ToolOutput
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import QuestionPart, SessionState, TurnState
from portico.testing.clock import FakeClock
from portico.testing.model import ModelServer
from portico.workspace.child import started
from tests.agents.acp_agent import calls, said
from tests.live.copilot_agent import copilot_agent
from tests.live.host import SECONDS, begin, hosting, play, process_of, processes, script
from tests.live.programs import COPILOT, copilot_cache
from tests.live.test_acp import HANGING, REPORT, once
from tests.process import inside

pytestmark = pytest.mark.live


def call(name: str, /, **args: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "args": args}]}


async def test_a_day_with_copilot(tmp_path: Path) -> None:
    file = tmp_path / "work" / "a.txt"

    def write(text: str) -> dict[str, Any]:
        return {"calls": [{"kind": "write", "args": {"path": str(file), "content": text}}]}

    async with ModelServer() as model, hosting(tmp_path, copilot_agent(tmp_path, model.url)) as host:
        host.tools["job_boolean_true"] = REPORT
        session = await host.start(by="test", cwd=str(tmp_path / "work"))

        turn = await play(session, {"reason": "Hm.", "say": ["Hello ", "there", "."]})
        assert (turn.outcome, said(turn), said(turn, "reasoning")) == ("completed", "Hello there.", "Hm."), turn.error

        turn = await play(session, write("yes"), {"say": "Done."}, allow=True)
        assert file.read_text() == "yes"
        (edit,) = calls(turn)
        assert (edit.tool, edit.kind, edit.approvals[0].kind, edit.outcome) == ("create", "edit", "write", "completed")
        assert "+yes" in (edit.approvals[0].diff or "")
        file.unlink()

        turn = await play(session, write("no"), {"say": "Done."}, allow=False)
        assert not file.exists()
        assert calls(turn)[0].outcome == "cancelled"

        turn = await play(session, call("job_boolean_true", argument="it does"), {"say": "{{result}}"})
        assert said(turn) == "noted: it does"
        assert [(each.tool, each.output) for each in calls(turn)] == [("job_boolean_true", "noted: it does")]

        prompt = script({"say": "One, two."})
        task = call("task", agent_type="task", name="helper", description="count", prompt=prompt)
        turn = await play(session, task, {"say": "It counted."}, allow=True)
        (child,) = host.list(parent=session.id)
        helper = await host.get(child.id)
        assert [said(each) for each in helper.state.turns] == ["One, two."]
        assert calls(turn)[0].content[0]["session"] == child.id

        turn = await play(session, {"error": 400})
        assert turn.error is not None
        assert "scripted error" in turn.error.message

        cancelled = await begin(session, HANGING)
        await session.cancel(by="test")
        assert (await session.wait(cancelled)).outcome == "cancelled"

        dying = await begin(session, once(HANGING, "I am back."))
        pid = await process_of(tmp_path)
        os.kill(pid, signal.SIGKILL)
        turn = await session.wait(dying)
        assert turn.error is not None
        assert (turn.outcome, turn.error.code) == ("failed", "agent_died")
        turn = await play(session, {"say": "I am back."})
        assert (turn.outcome, said(turn)) == ("completed", "I am back."), turn.error
        pid = await process_of(tmp_path)
    assert started(pid) is None


async def silence(clock: FakeClock, session: Session, turn: str) -> TurnState:
    """Time passes until the turn has ended: what was on its way may still count as a word."""
    ending = asyncio.ensure_future(session.wait(turn))
    async with asyncio.timeout(SECONDS):
        while not ending.done():
            clock.advance(session.host.turn_idle_timeout)
            await asyncio.wait({ending}, timeout=0.05)
    return await ending


async def test_a_hung_runtime_fails_its_turns_and_the_next_turn_works(tmp_path: Path) -> None:
    """In the middle of an answer, and when a new session wants to begin."""
    clock = FakeClock()
    async with ModelServer() as model:
        agent = copilot_agent(tmp_path, model.url)
        async with hosting(tmp_path, agent, clock=clock) as host:
            await hang_twice(host, agent, clock, tmp_path)
    assert processes(tmp_path) == []


async def hang_twice(host: Host, agent: CopilotAgent, clock: FakeClock, tmp_path: Path) -> None:
    session, other = [await host.start(by="test", cwd=str(tmp_path / "work")) for _ in range(2)]
    hung = await begin(session, once(HANGING, "I am back."))
    os.killpg(await process_of(tmp_path), signal.SIGSTOP)
    turn = await silence(clock, session, hung)
    assert turn.error is not None
    assert (turn.outcome, turn.error.code) == ("failed", "agent_died")
    assert "said nothing for" in turn.error.message
    turn = await play(session, {"say": "I am back."})
    assert (turn.outcome, said(turn)) == ("completed", "I am back."), turn.error

    os.killpg(await process_of(tmp_path), signal.SIGSTOP)
    hung = await other.send(Message(script({"say": "Here."})), by="test")
    runtime = await agent._supervisor.get()
    async with asyncio.timeout(SECONDS):
        while not runtime.running:  # noqa: ASYNC110
            await asyncio.sleep(0.01)  # nobody tells when it is asked
    turn = await silence(clock, other, hung)
    assert turn.error is not None
    assert (turn.outcome, turn.error.code, said(turn)) == ("failed", "agent_died", "")
    for each in (other, session):
        turn = await play(each, {"say": "Here."})
        assert (turn.outcome, said(turn)) == ("completed", "Here."), turn.error


async def test_a_steered_message_reaches_the_running_turn(tmp_path: Path) -> None:
    async with ModelServer() as model, hosting(tmp_path, copilot_agent(tmp_path, model.url)) as host:
        session = await host.start(by="test", cwd=str(tmp_path / "work"), config={"approvals": "allow"})
        wait = {"calls": [{"kind": "execute", "args": {"command": "until [ -e go ]; do sleep 0.05; done"}}]}
        turn = await begin(session, wait, {"say": "Nobody spoke to me."})
        steered = {"say": "I was steered."}
        await session.queue.steer(Message(script(steered, steered)), by="test")
        (tmp_path / "work" / "go").touch()
        async with asyncio.timeout(SECONDS):
            ended = await session.wait(turn)
        assert ended.outcome == "completed"
        assert "I was steered." in said(ended)
        assert "Nobody spoke" not in said(ended)


async def test_attachments_live_output_and_usage(tmp_path: Path) -> None:
    """The file reaches the model, a command's output comes before its end, and tokens are counted."""
    async with ModelServer() as model, hosting(tmp_path, copilot_agent(tmp_path, model.url)) as host:
        work = tmp_path / "work"
        (work / "note.txt").write_text("a secret of mine")
        session = await host.start(by="test", cwd=str(work), config={"approvals": "allow"})
        command = "echo first; until [ -e go ]; do sleep 0.05; done"
        steps = script({"calls": [{"kind": "execute", "args": {"command": command}}]}, {"say": "Read."})
        attachment = {"type": "file", "uri": (work / "note.txt").as_uri(), "label": "note.txt"}
        turn = await session.send(Message(steps, [attachment]), by="test")
        async with asyncio.timeout(SECONDS):
            async for records in host.log.follow(session.channel):
                if any(isinstance(each.event, ToolOutput) and "first" in each.event.text for each in records):
                    break
            (work / "go").touch()
            ended = await session.wait(turn)
        # On a slow machine Copilot leaves a command that takes long in the background, and speaks once more at its end.
        assert (ended.outcome, said(ended)[:5]) == ("completed", "Read."), ended.error
        assert any("note.txt" in str(each.body) for each in model.requests)
        assert session.state.usage.input > 0


async def test_how_long_it_thinks_is_a_setting_that_may_change(tmp_path: Path) -> None:
    async with ModelServer() as model, hosting(tmp_path, copilot_agent(tmp_path, model.url)) as host:
        session = await host.start(by="test", cwd=str(tmp_path / "work"), config={"reasoning_effort": "low"})
        efforts = []
        for effort in ("low", "high"):
            await session.do(c.ConfigureSession(session=session.id, values={"reasoning_effort": effort}), "test")
            assert (await play(session, {"say": "I have thought."})).outcome == "completed"
            efforts.append(list(model.requests)[-1].body.get("reasoning_effort"))
        assert efforts == ["low", "high"]


async def asked(session: Session) -> QuestionPart:
    """The question that waits, as soon as there is one."""
    async with asyncio.timeout(SECONDS):
        state = await session.wait_until(lambda state: bool(_questions(state)))
    return _questions(state)[0]


def _questions(state: SessionState) -> list[QuestionPart]:
    parts = state.active.parts if state.active is not None else []
    return [part for part in parts if isinstance(part, QuestionPart)]


async def test_a_question_of_copilot_is_a_question_of_the_session(tmp_path: Path) -> None:
    async with ModelServer() as model, hosting(tmp_path, copilot_agent(tmp_path, model.url)) as host:
        session = await host.start(by="test", cwd=str(tmp_path / "work"))
        prompt = script(call("ask_user", question="Colour?", choices=["red", "blue"]), {"say": "{{result}}"})
        turn = await session.send(Message(prompt), by="test")
        question = await asked(session)
        assert [option["label"] for option in question.fields[0]["options"]] == ["red", "blue"]
        await session.questions.answer(question.id, "accept", {"answer": "red"}, by="test")
        assert "red" in said(await session.wait(turn))


ASKING = """
import json, sys

def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    method, ident = message.get("method"), message.get("id")
    if method == "initialize":
        about = {"name": "asking", "version": "1"}
        say(id=ident, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about})
    elif method == "tools/list":
        say(id=ident, result={"tools": [{"name": "paint", "inputSchema": {"type": "object", "properties": {}}}]})
    elif method == "tools/call":
        call = ident
        schema = {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
        say(id="e", method="elicitation/create", params={"message": "Which?", "requestedSchema": schema})
    elif ident == "e":
        text = json.dumps(message.get("result") or message.get("error"))
        say(id=call, result={"content": [{"type": "text", "text": text}]})
    elif ident is not None:
        say(id=ident, result={})
"""


async def test_what_a_server_of_tools_wants_to_know_is_a_question(tmp_path: Path) -> None:
    server = tmp_path / "asking.py"
    server.write_text(ASKING)
    async with ModelServer() as model:
        agent = copilot_agent(tmp_path, model.url, mcp={"asking": {"command": [sys.executable, str(server)]}})
        async with hosting(tmp_path, agent) as host:
            session = await host.start(by="test", cwd=str(tmp_path / "work"), config={"approvals": "allow"})
            prompt = script({"calls": [{"match": ".*paint", "args": {}}]}, {"say": "{{result}}"})
            turn = await session.send(Message(prompt), by="test")
            question = await asked(session)
            assert (question.text, question.fields[0]["id"]) == ("Which?", "colour")
            await session.questions.answer(question.id, "accept", {"colour": "red"}, by="test")
            async with asyncio.timeout(SECONDS):
                answered = said(await session.wait(turn))
            assert json.loads(answered) == {"action": "accept", "content": {"colour": "red"}}


async def test_a_session_goes_on_after_the_host_was_killed(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    async with ModelServer() as model:
        prompts = [script({"say": "I shall remember."}), script(once(HANGING, "Here I am again."))]
        killed = await asyncio.create_subprocess_exec(
            *[sys.executable, "-m", "tests.live.host", str(tmp_path), "copilot-sdk", model.url, *prompts],
            stdout=asyncio.subprocess.PIPE,
        )
        assert killed.stdout is not None
        async with asyncio.timeout(SECONDS):
            ident = (await killed.stdout.readline()).decode().strip()
        orphans = processes(tmp_path)
        killed.kill()
        await killed.wait()
        async with hosting(tmp_path, copilot_agent(tmp_path, model.url)) as host:
            assert [started(pid) for pid in orphans] == [None]
            session = await host.get(ident)
            before = len(model.requests)
            turn = await play(session, {"say": "Here I am again."})
            assert (turn.outcome, said(turn)) == ("completed", "Here I am again."), turn.error
            assert any("I shall remember." in str(each.body) for each in list(model.requests)[before:])


async def test_many_sessions_share_one_runtime(tmp_path: Path) -> None:
    async with ModelServer() as model, hosting(tmp_path, copilot_agent(tmp_path, model.url)) as host:
        sessions = [await host.start(by="test", cwd=str(tmp_path / "work")) for _ in range(10)]
        turns = await asyncio.gather(*(play(session, {"say": f"I am {n}."}) for n, session in enumerate(sessions)))
        assert [said(turn) for turn in turns] == [f"I am {n}." for n in range(10)]
        assert len(processes(tmp_path)) == 1


async def test_without_a_login_copilot_says_so(tmp_path: Path) -> None:
    async with ModelServer() as model:
        agent = copilot_agent(tmp_path, model.url)
        agent.options.provider = None
        info = await agent.describe()
        async with hosting(tmp_path, agent) as host:
            session = await host.start(by="test", agent="copilot", cwd=str(tmp_path / "work"))
            turn = await play(session, {"say": "Nobody hears me."})
    assert info.missing is not None
    assert "copilot login" in info.missing
    assert turn.error is not None
    assert (turn.error.code, turn.error.message) == ("sign_in_required", info.missing)


def test_doctor_says_that_nobody_is_signed_in(tmp_path: Path) -> None:
    home, vendor = tmp_path / "home", tmp_path / "vendor"
    home.mkdir()
    env = f'env = {{ HOME = "{vendor}", XDG_CACHE_HOME = "{copilot_cache()}" }}'
    (home / "settings.toml").write_text(f'[agents.copilot]\nprogram = "{COPILOT}"\nhome = "{vendor}/.copilot"\n{env}\n')
    done = inside(home, "doctor", "--json")
    found = {each["what"]: each for each in json.loads(done.stdout)}
    assert (done.returncode, found["agent copilot"]["ok"]) == (0, False)
    assert found["agent copilot"]["detail"].startswith("Copilot is not signed in")
    assert found["agent copilot"]["detail"].endswith("Run: copilot login")
    assert processes(tmp_path) == []


async def test_a_flood_is_recorded_as_the_model_said_it(tmp_path: Path) -> None:
    """Reported: the CLI repeats deltas under load, and twice the text was recorded."""
    words = [f"w{number} " for number in range(6000)]
    async with ModelServer() as model, hosting(tmp_path, copilot_agent(tmp_path, model.url)) as host:
        session = await host.start(by="test", cwd=str(tmp_path / "work"))
        turn = await play(session, {"say": words})
        assert (turn.outcome, said(turn) == "".join(words)) == ("completed", True), turn.error
        deltas = [each.event for each in await host.log.read(session.channel) if isinstance(each.event, PartDelta)]
        assert "".join(each.text for each in deltas) == "".join(words)


async def test_a_broken_attempt_leaves_the_answer_and_live_output_comes_once(tmp_path: Path) -> None:
    broken = {"say": ["one ", "two ", "three "], "cut": 2}
    async with ModelServer() as model, hosting(tmp_path, copilot_agent(tmp_path, model.url)) as host:
        session = await host.start(by="test", cwd=str(tmp_path / "work"), config={"approvals": "allow"})
        turn = await play(session, once(broken, "The whole answer."))
        assert (turn.outcome, said(turn)) == ("completed", "The whole answer."), turn.error
        assert "Copilot tries again." in said(turn, "notice")

        turn = await play(session, once({"error": 503}, "Here."))
        assert (turn.outcome, said(turn)) == ("completed", "Here."), turn.error
        assert "The model did not answer (503): scripted error." in said(turn, "notice")

        command = "for i in 1 2 3; do echo line $i; sleep 0.3; done"
        await play(session, {"calls": [{"kind": "execute", "args": {"command": command}}]}, {"say": "Ran."})
        outputs = [each.event for each in await host.log.read(session.channel) if isinstance(each.event, ToolOutput)]
        assert "".join(each.text for each in outputs) == "line 1\nline 2\nline 3\n"
