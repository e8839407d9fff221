"""What single ACP agents were seen to do, played by the hand-written one: Codex 2.6, Qwen 0.24."""

import json
from pathlib import Path
from typing import Any

import pytest

from portico.agents.acp.autonomy import KNOWN, asking
from portico.agents.acp.program import Program
from portico.agents.agent import Autonomy
from portico.kernel import commands as c
from portico.kernel.events import Message
from portico.kernel.session import Session
from portico.testing.fixtures import HostOpener
from tests.agents.acp_agent import calls, fake_agent, said, steps, waiting_approval
from tests.agents.test_acp import SHOUT, shouting, start, turn_of

# -- a mode that asks less, from the start ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "option", "current", "values", "expected"),
    [
        # Qwen begins in `auto` ("LLM classifier auto-approves safe actions"), and has `plan` before `default`.
        (["qwen", "--acp"], "mode", "auto", ["plan", "default", "auto-edit", "auto", "yolo"], "default"),
        (["node", "/x/qwen", "--acp"], "mode", "yolo", ["plan", "default"], "default"),
        (["codex-acp"], "mode", "agent", ["read-only", "workspace-write", "agent"], "read-only"),
        (["claude-agent-acp"], "mode", "acceptEdits", ["acceptEdits", "plan", "default"], "default"),
        (["claude-agent-acp"], "mode", "bypassPermissions", ["acceptEdits", "plan"], "plan"),
        (["copilot", "--acp"], "allow_all", "on", ["on", "off"], "off"),
        (["gemini", "--acp"], "mode", "yolo", ["yolo", "autoEdit"], None),  # it has none that asks
        (["goose", "acp"], "mode", "approve", ["auto", "approve"], None),
        (["claude-agent-acp"], "effort", "max", ["low", "max"], None),
        (["mine"], "mode", "auto", ["auto", "default"], None),  # nobody knows what its modes mean
        (["opencode", "acp"], "mode", "my-own-agent", ["build", "my-own-agent"], None),
    ],
)
def test_what_an_agent_is_switched_to_that_begins_with_asking_less(
    command: list[str], option: str, current: str, values: list[str], expected: str | None
) -> None:
    assert asking(Program(command=command), option, current, values) == expected


def test_who_says_that_a_mode_is_harmless_keeps_it() -> None:
    program = Program(command=["qwen", "--acp"], asks={"mode": ["auto"]})
    assert asking(program, "mode", "auto", ["auto", "default"]) is None


LOOSE = [{"id": "mode", "category": "mode", "currentValue": "code", "options": [{"value": "code"}, {"value": "ask"}]}]


@pytest.fixture
async def loose(open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A session of an agent whose own first mode asks nobody."""
    monkeypatch.setitem(KNOWN, "python", {"mode": {"ask": Autonomy.ASKS, "code": Autonomy.ASKS_NOBODY}})
    host = await open_host(fake_agent(tmp_path, env={"FAKE_OPTIONS": json.dumps(LOOSE)}))
    return await host.start(by="test", cwd=str(tmp_path))


async def _mode(session: Session) -> str | None:
    chosen: dict[str, str] = json.loads(said(await turn_of(session, steps(["settings"]))))
    return chosen.get("mode")


async def test_an_agent_that_begins_in_a_mode_that_asks_nobody_is_switched_before_its_first_turn(
    loose: Session,
) -> None:
    assert await _mode(loose) == "ask"


async def test_a_choice_that_was_approved_counts_until_it_is_taken_back(loose: Session) -> None:
    """The agent stayed in a mode that asks nobody although the session had none any more."""
    assert await _mode(loose) == "ask"
    await loose.do(c.ConfigureSession(session=loose.id, values={"mode": "code"}), "test")
    assert await _mode(loose) == "code"
    await loose.do(c.ConfigureSession(session=loose.id, values={"mode": ""}), "test")
    assert await _mode(loose) == "ask"


async def test_a_mode_of_the_settings_is_a_choice(
    open_host: HostOpener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KNOWN, "python", {"mode": {"ask": Autonomy.ASKS, "code": Autonomy.ASKS_NOBODY}})
    agent = fake_agent(tmp_path, settings={"mode": "code"}, env={"FAKE_OPTIONS": json.dumps(LOOSE)})
    host = await open_host(agent)
    assert await _mode(await host.start(by="test", cwd=str(tmp_path))) is None  # it is in it already


# -- tools of ours under their names ---------------------------------------------------------------------------

_CODEX = {"toolCallId": "m", "kind": "execute", "title": "mcp.portico.shout", "status": "in_progress"}
_QWEN = {"toolCallId": "m", "kind": "other", "title": "ToolCall", "status": "pending", "rawInput": {}}
_QWEN_ASKS = {"toolCallId": "m", "kind": "other", "title": json.dumps(SHOUT), "rawInput": SHOUT}


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        pytest.param(
            {**_CODEX, "rawInput": {"server": "portico", "tool": "shout", "arguments": SHOUT}},
            {"toolCallId": "m", "title": None, "kind": "execute", "status": "pending"},
            id="codex",  # it asks without telling the input again: `{}` was shown, and the call stood there twice
        ),
        pytest.param(
            {**_QWEN, "_meta": {"toolName": "tool_call", "phase": "preparing"}},
            {**_QWEN_ASKS, "_meta": {"toolName": "mcp__portico__shout"}},
            id="qwen",  # a tool that calls others: it was shown as a call of its own
        ),
    ],
)
async def test_a_session_tool_that_asks_is_one_call_with_its_input(
    open_host: HostOpener, tmp_path: Path, told: dict[str, Any], asked: dict[str, Any]
) -> None:
    session = await shouting(open_host, tmp_path)
    done = {"toolCallId": "m", "status": "completed", "rawOutput": "HELLO"}
    prompt = steps(
        ["update", "tool_call", told],
        ["permission", asked],
        ["mcp", "shout", SHOUT],
        ["update", "tool_call_update", done],
    )
    turn_id = await session.send(Message(prompt), by="test")
    approval = await waiting_approval(session)
    (waiting,) = calls(session.state.active)
    assert (waiting.tool, json.loads(waiting.input)) == ("shout", SHOUT)
    await session.approvals.answer(approval, by="test", allow=True)
    turn = await session.wait(turn_id)
    assert [(each.tool, each.output, bool(each.approvals)) for each in calls(turn)] == [("shout", "HELLO", True)]


async def test_a_bridge_that_failed_is_shown_as_what_it_is(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path)
    meta = {"toolName": "tool_call"}
    failed = {"toolCallId": "m", "status": "failed", "rawOutput": "no such tool", "_meta": meta}
    turn = await turn_of(
        session, steps(["update", "tool_call", {**_QWEN, "_meta": meta}], ["update", "tool_call_update", failed])
    )
    assert [(each.tool, each.outcome, each.output) for each in calls(turn)] == [("tool_call", "failed", "no such tool")]


# -- after a no ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ([], [], "completed"),
        (["text", "I shall edit."], [], "completed"),
        ([], ["text", "Then I"], "failed"),  # it went on, and was stopped by something else: Copilot under a flood
    ],
)
async def test_an_agent_that_ends_the_turn_after_a_no_keeps_its_conversation(
    open_host: HostOpener, tmp_path: Path, before: list[str], after: list[str], outcome: str
) -> None:
    """Codex says `cancelled` then. It counted as a failure, and as the end of its conversation."""
    session = await start(open_host, tmp_path)
    await turn_of(session, "hello")
    vendor = session.state.vendor
    ended = ["reply", {"stopReason": "cancelled"}]
    wanted: list[list[Any]] = [before, ["silent permission", {}], after, ended]
    prompt = steps(*(step for step in wanted if step))
    turn_id = await session.send(Message(prompt), by="test")
    await session.approvals.answer(await waiting_approval(session), by="test", allow=False)
    turn = await session.wait(turn_id)
    assert turn.outcome == outcome
    assert (session.state.vendor == vendor) == (outcome == "completed")


# -- usage -----------------------------------------------------------------------------------------------------


def _counted(tokens: int) -> list[Any]:
    usage = {"inputTokens": tokens, "outputTokens": 1, "cachedReadTokens": 2}
    return ["text", "", {"_meta": {"usage": usage, "durationMs": 3}}]


async def test_tokens_beside_empty_pieces_of_text_add_up(open_host: HostOpener, tmp_path: Path) -> None:
    """Qwen tells them so for each request, and none at the end: the turn had no usage."""
    session = await start(open_host, tmp_path)
    turn = await turn_of(session, steps(["text", "Hello "], _counted(10), ["text", "there"], _counted(20)))
    assert turn.usage is not None
    assert (said(turn), turn.usage.input, turn.usage.output, turn.usage.cached) == ("Hello there", 30, 2, 4)


async def test_tokens_that_were_told_on_the_way_are_not_counted_again(open_host: HostOpener, tmp_path: Path) -> None:
    session = await start(open_host, tmp_path)
    reply = ["reply", {"usage": {"inputTokens": 10, "outputTokens": 1}}]
    turn = await turn_of(session, steps(["text", "Hello"], _counted(10), reply))
    assert turn.usage is not None
    assert (turn.usage.input, turn.usage.output) == (10, 1)
