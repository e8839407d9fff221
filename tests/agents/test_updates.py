"""Whatever an ACP agent sends, a turn survives it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portico.agents.acp.choice import choices
from portico.agents.acp.own_tools import OwnTools
from portico.agents.acp.service import choose
from portico.agents.acp.update import Updates
from portico.agents.attachment import text_of
from portico.agents.terminal_commands import TerminalCommands
from portico.kernel.events import Message
from portico.kernel.state import CallPart
from portico.kernel.turn import Turn
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KINDS = (
    *("agent_message_chunk", "agent_thought_chunk", "user_message_chunk", "tool_call", "tool_call_update", "plan"),
    *("usage_update", "current_mode_update", "session_info_update", "tomorrow"),
)
BLOCK = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "resource", "resource_link", "content", "diff", "terminal"])},
    optional=dict.fromkeys(("text", "content", "resource", "uri", "path", "oldText", "newText"), JSON),
)
UPDATE = st.fixed_dictionaries(
    {"sessionUpdate": st.sampled_from(KINDS)},
    optional={
        "content": BLOCK | st.lists(BLOCK | JSON, max_size=3) | JSON,
        "toolCallId": st.sampled_from(["a", "b"]) | JSON,
        "status": st.sampled_from(["pending", "completed", "failed"]) | JSON,
        **dict.fromkeys(("title", "kind", "rawInput", "rawOutput", "locations", "entries", "cost", "_meta"), JSON),
    },
)


def test_no_update_breaks_a_turn(tmp_path: Path) -> None:
    """One host for all examples: what they try is the translation."""
    sent: list[dict[str, Any]] = []

    async def play(message: Message, turn: Turn) -> None:
        heard = Updates(turn, OwnTools(()), TerminalCommands())
        for update in sent:
            await heard.apply(update)
        await heard.finish("end_turn")

    opener = HostOpener(tmp_path)
    with asyncio.Runner() as runner:
        host = runner.run(opener(PlayAgent(play)))

        async def one() -> None:
            session = await host.start(by="test", cwd=str(tmp_path))
            turn = await session.wait(await session.send(Message("go"), by="test"))
            assert turn.outcome == "completed", turn.error

        @settings(max_examples=100, deadline=None)
        @given(st.lists(UPDATE, max_size=12))
        def examples(updates: list[dict[str, Any]]) -> None:
            sent[:] = updates
            runner.run(one())

        try:
            examples()
        finally:
            runner.run(opener.close())


@given(JSON)
def test_any_block_has_some_text(block: Any) -> None:
    assert isinstance(text_of(block), str)


@given(st.lists(st.fixed_dictionaries({"optionId": st.text(), "kind": st.sampled_from(["allow_once", "x"]) | JSON})))
def test_a_no_never_picks_an_allowing_option(options: list[dict[str, Any]]) -> None:
    assert choose(options, False) is None or any(
        option["kind"] in ("reject_once", "reject_always") for option in options
    )


@pytest.mark.parametrize(
    ("options", "allowed", "refused"),
    [
        ([("a", "allow_once"), ("r", "reject_once")], "a", "r"),
        ([("r", "reject_once"), ("r", "reject_once"), ("a", "allow_once")], "a", "r"),
        ([("x", "allow_once"), ("x", "reject_once")], None, None),
        ([("x", "reject_once"), ("x", "allow_once"), ("r", "reject_always")], None, "r"),
        ([("x", "allow_once"), ("x", "allow_always"), ("r", "reject_once")], None, "r"),
        ([("x", "allow_once"), ("x", "allow_always"), ("a", "allow_once")], "a", None),
        ([("x", "reject_once"), ("x", "unknown")], None, None),
        ([], None, None),
    ],
)
def test_options_that_share_an_id(options: list[tuple[str, str]], allowed: str | None, refused: str | None) -> None:
    """A refusal with the id of an allowing option let the call pass."""
    offered = [{"optionId": ident, "kind": kind} for ident, kind in options]
    assert (choose(offered, True), choose(offered, False)) == (allowed, refused)


@given(st.dictionaries(st.sampled_from(["configOptions", "models", "modes"]), JSON))
def test_any_answer_to_a_new_session_is_read(answer: dict[str, Any]) -> None:
    list(choices(answer))


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"_meta": {"terminal_exit": {"terminal_id": "1", "exit_code": 2, "signal": None}}}, 2),
        ({"rawOutput": {"exit_code": 0, "stdout": "x"}}, 0),
        ({"rawOutput": {"exitCode": 127}}, 127),
        ({"rawOutput": {"exit_code": True}}, None),
        ({"rawOutput": "exit code 3"}, None),
    ],
)
async def test_an_exit_code_that_the_agent_tells(
    open_host: HostOpener, tmp_path: Path, more: dict[str, Any], code: int | None
) -> None:
    begun = {"sessionUpdate": "tool_call", "toolCallId": "t", "kind": "execute", "title": "make"}
    told = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed", **more}

    async def play(message: Message, turn: Turn) -> None:
        heard = Updates(turn, OwnTools(()), TerminalCommands())
        for update in (begun, told):
            await heard.apply(update)
        await heard.finish("end_turn")

    host = await open_host(PlayAgent(play))
    session = await host.start(by="test", cwd=str(tmp_path))
    turn = await session.wait(await session.send(Message("go"), by="test"))
    (call,) = turn.parts
    assert isinstance(call, CallPart)
    assert (call.exit_code, call.ok) == (code, False)


async def test_a_call_with_the_id_of_one_that_has_ended_is_another_call(open_host: HostOpener) -> None:
    """Models number their calls anew in each answer: the second waited forever for an approval that nobody saw."""

    async def play(message: Message, turn: Turn) -> None:
        heard = Updates(turn, OwnTools(()), TerminalCommands())
        for path in ("a", "b"):
            call = {"toolCallId": "call_1", "title": f"write {path}", "kind": "edit", "rawInput": {"path": path}}
            await heard.apply({"sessionUpdate": "tool_call", "status": "pending", **call})
            heard.track(call)  # a request for permission
            await heard.apply({"sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed"})
            await heard.apply({"sessionUpdate": "tool_call_update", "toolCallId": "call_1", "status": "completed"})
        await heard.finish("end_turn")

    host = await open_host(PlayAgent(play))
    session = await host.start(by="test")
    turn = await session.wait(await session.send(Message("go"), by="test"))
    calls = [part for part in turn.parts if isinstance(part, CallPart)]
    assert [(call.input, call.done, call.ok) for call in calls] == [
        ('{"path":"a"}', True, True),
        ('{"path":"b"}', True, True),
    ]
    await open_host.close()
