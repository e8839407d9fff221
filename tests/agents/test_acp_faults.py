"""ACP agents that behave badly, each as one was seen to: uninvited ends, cancels that end nothing, other forms."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from portico.agents.acp import acp
from portico.agents.agent import AgentContext
from portico.agents.pool import Bounds, Pool, machine_memory, memory_of
from portico.agents.supervisor import STARTS
from portico.kernel.events import Message, PartDelta
from portico.kernel.session import Session
from portico.kernel.state import TurnState
from portico.testing.fixtures import HostOpener
from tests.agents.acp_agent import FAKE, calls, fake_agent, said, steps, waiting_approval
from tests.workspace.living import gone, pids_in


async def start(open_host: HostOpener, home: Path, **agent: Any) -> Session:
    host = await open_host(fake_agent(home, **agent))
    return await host.start(by="test", cwd=str(home))


async def turn_of(session: Session, *wanted: list[Any]) -> TurnState:
    return await session.wait(await session.send(Message(steps(*wanted)), by="test"))


async def test_an_uninvited_cancel_fails_the_turn_and_the_next_gets_a_new_conversation(
    open_host: HostOpener, tmp_path: Path
) -> None:
    """Copilot over ACP ends so after 4,096 events that nobody took, and that session never answers again."""
    session = await start(open_host, tmp_path)
    turn = await turn_of(session, ["text", "Half of"], ["reply", {"stopReason": "cancelled"}])
    assert turn.error is not None
    assert (turn.outcome, turn.error.code) == ("failed", "agent_failed")
    assert "ended the turn by itself" in turn.error.message
    before = session.state.vendor
    turn = await session.wait(await session.send(Message("And now?"), by="test"))
    assert turn.outcome == "completed", turn.error
    assert "Half of" in said(turn), "it was not told what was said"
    assert session.state.vendor not in (before, "", None)


async def test_a_stop_of_the_host_interrupts_a_turn_whose_agent_obeys(open_host: HostOpener, tmp_path: Path) -> None:
    """The agent answers the cancel with an ordinary end. The turn was recorded as completed, and a job then continued
    with the next step, without the work."""
    host = await open_host(fake_agent(tmp_path))
    session = await host.start(by="test", cwd=str(tmp_path))
    await session.send(Message(steps(["text", "Half of"], ["sleep", 60])), by="test")
    await session.wait_until(lambda state: bool(state.active and state.active.parts))
    await host.close()
    (turn,) = session.state.turns
    assert (turn.outcome, turn.error and turn.error.code, said(turn)) == ("interrupted", "interrupted", "Half of")


@pytest.mark.parametrize(
    ("reason", "turn_ends", "call_ends", "error"),
    [
        ("end_turn", "completed", ("completed", True), None),
        ("cancelled", "failed", ("cancelled", False), "The agent stopped (cancelled)."),
        ("max_tokens", "completed", ("cancelled", False), "The agent stopped (max_tokens)."),
        ("max_turn_requests", "completed", ("cancelled", False), "The agent stopped (max_turn_requests)."),
        ("refusal", "failed", ("cancelled", False), "The agent stopped (refusal)."),
    ],
)
async def test_a_call_that_was_left_open_went_well_only_if_the_agent_came_to_its_end(
    open_host: HostOpener, tmp_path: Path, reason: str, turn_ends: str, call_ends: tuple[str, bool], error: str | None
) -> None:
    """A call that an agent began, and gave up with the whole turn, was recorded as ok."""
    session = await start(open_host, tmp_path)
    call = {"toolCallId": "c", "title": "Build", "kind": "execute", "status": "pending"}
    turn = await turn_of(session, ["update", "tool_call", call], ["reply", {"stopReason": reason}])
    (found,) = calls(turn)
    assert (turn.outcome, (found.outcome, found.ok)) == (turn_ends, call_ends)
    assert (found.error and found.error.message) == error


async def test_a_command_of_a_turn_that_the_agent_gave_up_ends(open_host: HostOpener, tmp_path: Path) -> None:
    """Its session is let go: nobody would ever have asked for that command again."""
    session = await start(open_host, tmp_path)
    run = ["ask", "terminal/create", {"command": "sh", "args": ["-c", "echo $$ > pid; exec sleep 1000"]}]
    given_up = [["silent permission", {}], ["reply", {"stopReason": "cancelled"}]]
    turn = await session.send(Message(steps(run, *given_up)), by="test")
    async with asyncio.timeout(60):
        await session.approvals.answer(await waiting_approval(session), by="test", allow=True)
        (pid,) = await pids_in(tmp_path / "pid", 1)
        await session.approvals.answer(await waiting_approval(session), by="test", allow=True)
        ended = await session.wait(turn)
    assert ended.outcome == "failed"
    await gone(pid)
    assert [(call.tool, call.ok) for call in calls(ended)][1:] == [("edit", False)]


async def test_a_cancel_that_a_person_wants_is_a_cancel(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path)
    turn = await session.send(Message(steps(["text", "I wait"], ["sleep", 30])), by="test")
    await session.wait_until(lambda state: bool(state.active and state.active.parts))
    await session.cancel(by="test")
    assert (await session.wait(turn)).outcome == "cancelled"
    vendor = session.state.vendor
    assert (await turn_of(session, ["text", "Here."])).outcome == "completed"
    assert session.state.vendor == vendor


@pytest.mark.parametrize("deaf", [False, True])
async def test_a_cancel_ends_what_the_turn_runs_and_its_call_is_cancelled(
    open_host: HostOpener, tmp_path: Path, deaf: bool
) -> None:
    """goose's command was alive two minutes later, and its call was recorded as ok."""
    session = await start(open_host, tmp_path, env={"FAKE_DEAF": "1"} if deaf else None)
    script = "echo $$ > pid; exec sleep 1000"
    turn = await session.send(Message(steps(["terminal", "sh", "-c", script])), by="test")
    await session.approvals.answer(await waiting_approval(session), by="test", allow=True)
    async with asyncio.timeout(60):
        (pid,) = await pids_in(tmp_path / "pid", 1)
        await session.cancel(by="test")
        ended = await session.wait(turn)
    assert ended.outcome == "cancelled"
    await gone(pid)
    assert [(call.tool, call.ok, call.outcome) for call in calls(ended)] == [
        ("terminal", False, "cancelled"),
        ("execute", False, "cancelled"),
    ]


async def test_after_a_cancel_nothing_new_begins_although_it_was_allowed_before(
    open_host: HostOpener, tmp_path: Path
) -> None:
    session = await start(open_host, tmp_path)
    command = {"command": "sh", "args": ["-c", "echo x >> ran"]}
    again = ["defy", "terminal/create", command]
    turn = await session.send(Message(steps(["ask", "terminal/create", command], again)), by="test")
    await session.approvals.answer(await waiting_approval(session), by="test", allow=True)
    async with asyncio.timeout(60):
        await session.wait_until(lambda state: any(call.done for call in calls(state.active)))
        await session.cancel(by="test")
        ended = await session.wait(turn)
    assert "The turn was cancelled." in said(ended)
    assert (tmp_path / "ran").read_text() == "x\n"
    assert [(call.tool, call.output, call.exit_code) for call in calls(ended)] == [("terminal", "", 0)]


async def test_output_that_is_told_beside_the_call_is_live_output(open_host: HostOpener, tmp_path: Path) -> None:
    """Codex: `_meta.terminal_output_delta`, with content of a terminal that is not ours."""
    foreign = [{"type": "terminal", "terminalId": "call_1"}]
    begun = {"toolCallId": "x", "title": "make", "kind": "execute", "status": "in_progress", "content": foreign}

    def piece(text: str) -> list[Any]:
        meta = {"terminal_output_delta": {"terminal_id": "call_1", "data": text}}
        return ["update", "tool_call_update", {"toolCallId": "x", "_meta": meta}]

    done = {"toolCallId": "x", "status": "completed", "rawOutput": {"formatted_output": "one\ntwo\n"}}
    session = await start(open_host, tmp_path)
    turn = await turn_of(
        session, ["update", "tool_call", begun], piece("one\n"), piece("two\n"), ["update", "tool_call_update", done]
    )
    assert [(call.output, call.ok) for call in calls(turn)] == [("one\ntwo\n", True)]


async def test_tokens_in_the_remarks_of_a_reply_are_counted(open_host: HostOpener, tmp_path: Path) -> None:
    counted = {"_meta": {"quota": {"token_count": {"input_tokens": 11, "output_tokens": 7}}}}
    session = await start(open_host, tmp_path)
    turn = await turn_of(session, ["text", "Yes."], ["reply", counted])
    assert turn.usage is not None
    assert (turn.usage.input, turn.usage.output) == (11, 7)


async def test_small_texts_go_along_where_the_agent_takes_them(open_host: HostOpener, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("a secret")
    attached = [{"type": "file", "path": "note.txt"}, {"type": "file", "uri": "file:///etc/hostname"}]
    for embedded, kinds in ((True, ["resource", "resource_link"]), (False, ["resource_link", "resource_link"])):
        caps = {"promptCapabilities": {"embeddedContext": embedded}, "mcpCapabilities": {"http": True}}
        agent = fake_agent(tmp_path / str(embedded), env={"FAKE_CAPS": json.dumps(caps)})
        host = await open_host(agent)
        session = await host.start(by="test", cwd=str(tmp_path))
        turn = await session.wait(await session.send(Message(steps(["blocks"]), attached), by="test"))
        blocks = json.loads(said(turn))[1:]
        assert [block["type"] for block in blocks] == kinds
        whose = blocks[0]["resource"] if embedded else blocks[0]
        assert whose["uri"] == (tmp_path / "note.txt").as_uri()
        assert whose.get("text") == ("a secret" if embedded else None)
        await open_host.close()


async def test_a_flood_is_one_text_and_few_events(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path)
    turn = await turn_of(session, ["flood", 5000], ["text", "end", {"messageId": "other"}])
    assert said(turn) == "".join(f"{number} " for number in range(5000)) + "end"
    records = await session.host.log.read(session.channel)
    assert sum(isinstance(record.event, PartDelta) for record in records) < 2500


# -- how many of them ------------------------------------------------------------------------------------------


async def crowd(open_host: HostOpener, home: Path, count: int, processes: int, **env: str) -> list[Session]:
    (home / "settings.toml").write_text(f"[agent]\nmax_processes = {processes}\n")
    table = {"command": [sys.executable, "-S", "-E", str(FAKE)], "env": {"FAKE_STORE": str(home / "store"), **env}}
    context = AgentContext(home, {"acp": {"fake": {**table, "process_per_session": True}}})
    host = await open_host(*(agent for agent in acp(context) if agent.id == "acp:fake"))
    return [await host.start(by="test", cwd=str(home)) for _ in range(count)]


async def test_one_that_nobody_uses_is_let_go_for_another(open_host: HostOpener, tmp_path: Path) -> None:
    one, two, three = await crowd(open_host, tmp_path, 3, processes=2)
    pids = [said(await turn_of(session, ["pid"])) for session in (one, two, three)]
    assert len(set(pids)) == 3
    turn = await turn_of(one, ["pid"])
    assert (turn.outcome, said(turn, "notice")) == ("completed", ""), turn.error
    assert said(turn) not in pids


async def test_one_that_nobody_uses_is_let_go_also_if_it_forgets(open_host: HostOpener, tmp_path: Path) -> None:
    """It cannot take up its conversations, so it never rests by itself: another one would wait for ever."""
    one, two = await crowd(open_host, tmp_path, 2, processes=1, FAKE_CAPS="{}")
    async with asyncio.timeout(60):
        for session, notice in ((one, ""), (two, ""), (one, "began a new conversation")):
            turn = await turn_of(session, ["text", "Here."])
            assert (turn.outcome, said(turn)) == ("completed", "Here."), turn.error
            assert notice in said(turn, "notice")


async def test_every_turn_that_waits_for_a_place_says_so(open_host: HostOpener, tmp_path: Path) -> None:
    """Also those behind the first of the queue."""
    one, *others = await crowd(open_host, tmp_path, 4, processes=1)
    busy = await one.send(Message(steps(["text", "I work"], ["sleep", 60])), by="test")
    await one.wait_until(lambda state: bool(state.active and state.active.parts))
    waiting = [await each.send(Message(steps(["text", "At last."])), by="test") for each in others]
    words = "Waiting for a free agent: 1 of 1 processes are busy (agent.max_processes)."
    async with asyncio.timeout(60):
        for each in others:
            await each.wait_until(lambda state: state.active is not None and said(state.active, "notice") == words)
        await one.cancel(by="test")
        await one.wait(busy)
        turns = [await each.wait(turn) for each, turn in zip(others, waiting, strict=True)]
    assert [(turn.outcome, said(turn)) for turn in turns] == [("completed", "At last.")] * 3


async def test_a_place_is_kept_for_the_turn_that_it_was_given_to(open_host: HostOpener, tmp_path: Path) -> None:
    """Between the opening of a conversation and its turn nobody used the process: whoever waited got it ended, and four
    opencode sessions with two places started one another's processes again and again."""
    before, sessions = STARTS["fake"], await crowd(open_host, tmp_path, 4, processes=1)
    sent = [await each.send(Message(steps(["text", "Here."])), by="test") for each in sessions]
    async with asyncio.timeout(60):
        turns = [await each.wait(turn) for each, turn in zip(sessions, sent, strict=True)]
    assert [(turn.outcome, said(turn)) for turn in turns] == [("completed", "Here.")] * 4
    assert STARTS["fake"] - before == 4


async def test_a_turn_that_waits_can_be_cancelled(open_host: HostOpener, tmp_path: Path) -> None:
    one, two = await crowd(open_host, tmp_path, 2, processes=1)
    busy = await one.send(Message(steps(["text", "I work"], ["sleep", 60])), by="test")
    await one.wait_until(lambda state: bool(state.active and state.active.parts))
    waiting = await two.send(Message(steps(["text", "Never."])), by="test")
    async with asyncio.timeout(60):
        await two.wait_until(lambda state: bool(state.active and state.active.parts))
        await two.cancel(by="test")
        assert (await two.wait(waiting)).outcome == "cancelled"
        await one.cancel(by="test")
        await one.wait(busy)


class Busy:
    """A supervisor that has one process and never a rest."""

    def __init__(self, pid: int) -> None:
        self.pids = [pid]
        self.used_at = 0.0
        self.is_idle = False
        self.resumes = True

    def rest(self) -> None:
        raise AssertionError("it is busy")


async def test_memory_is_a_bound_too() -> None:
    sleeping = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
    used = memory_of([sleeping.pid])
    assert 0 < used < machine_memory()
    told: list[str] = []
    asked = asyncio.Event()

    def tell(text: str) -> None:
        told.append(text)
        asked.set()

    pool = Pool(lambda: Bounds(0, used // 2))
    first = Busy(sleeping.pid)
    await pool.admit(first, tell)
    entering = asyncio.ensure_future(pool.admit(Busy(os.getpid()), tell))
    async with asyncio.timeout(60):
        await asked.wait()
        sleeping.kill()
        await sleeping.wait()
        pool.changed()
        await entering
    assert "MB of memory (agent.max_memory_mb)" in told[0]


async def test_an_agent_that_looks_at_its_own_folder_runs_in_the_sessions(
    open_host: HostOpener, tmp_path: Path
) -> None:
    """Gemini; sessions of one folder share a process."""
    host = await open_host(fake_agent(tmp_path / "home", settings={"process_in_folder": True}))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    sessions = [await host.start(by="test", cwd=str(tmp_path / name)) for name in ("a", "a", "b")]
    pids = [said(await turn_of(session, ["pid"])) for session in sessions]
    folders = [Path(os.readlink(f"/proc/{pid}/cwd")) for pid in pids]
    assert pids[0] == pids[1] != pids[2]
    assert folders == [tmp_path / "a", tmp_path / "a", tmp_path / "b"]
