"""What Copilot reports, into a turn: repeated deltas, attempts that broke off, live output, and other news."""

import itertools
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from copilot.session_events import SessionEvent

from portico.agents.acp.history import HistoryBuilder
from portico.agents.agent import AgentContext, Message, Opening, Turn
from portico.agents.copilot import copilot
from portico.agents.copilot.agent import CopilotAgent
from portico.agents.copilot.conversation import CopilotConversation
from portico.agents.copilot.event import Events
from portico.agents.copilot.native import updates
from portico.kernel.errors import SignInRequired
from portico.kernel.events import Json, PartEnded, ToolOutput
from portico.kernel.state import CallPart, TextPart, TurnState
from portico.testing.fixtures import HostOpener
from portico.testing.play import PlayAgent

_numbers = itertools.count(1)


def event(kind: str, number: int | None = None, /, **data: object) -> Json:
    """As the runtime sends it; the same `number` is the same event once more."""
    ident = str(UUID(int=number if number is not None else next(_numbers) + 1_000_000))
    return {"id": ident, "timestamp": "2026-11-16T10:00:00Z", "parentId": None, "type": kind, "data": data}


def delta(text: str, message: str = "m1", number: int | None = None) -> Json:
    return event("assistant.message_delta", number, messageId=message, deltaContent=text)


def thought(text: str, ident: str = "r1") -> Json:
    return event("assistant.reasoning_delta", reasoningId=ident, deltaContent=text)


def whole(text: str, message: str = "m1", **more: object) -> Json:
    return event("assistant.message", messageId=message, content=text, **more)


def failure(status: int, message: str) -> Json:
    return event("model.call_failure", source="top_level", statusCode=status, errorMessage=message)


RETRY = event("assistant.turn_retry", turnId="0", reason="streaming_error")
SHELL = event("tool.execution_start", toolCallId="c1", toolName="bash", arguments={"command": "make"})
DONE = event("tool.execution_complete", toolCallId="c1", success=True, result={"content": "one\ntwo\n"})


def shell(sequence: int, text: str) -> Json:
    return event("tool.shell_output", sequence=sequence, text=text, toolCallId="c1", stream="stdout")


def partial(text: str) -> Json:
    return event("tool.execution_partial_result", toolCallId="c1", partialOutput=text)


def mcp_status(status: str, **more: object) -> Json:
    return event("session.mcp_server_status_changed", serverName="tickets", status=status, **more)


async def heard(open_host: HostOpener, events: Iterable[Json]) -> tuple[TurnState, list[object]]:
    """The turn in the end, and the events of the log."""

    async def play(message: Message, turn: Turn) -> None:
        into = Events(turn, frozenset())
        for each in events:
            await into.apply(SessionEvent.from_dict(each))

    host = await open_host(PlayAgent(play))
    session = await host.start(by="test")
    turn = await session.wait(await session.send(Message("go"), by="test"))
    assert turn.outcome == "completed", turn.error
    return turn, [record.event for record in await host.log.read(session.channel)]


def said(turn: TurnState) -> list[tuple[str, str]]:
    return [(part.kind, part.text) for part in turn.parts if isinstance(part, TextPart) and part.text]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([delta("a", number=1), delta("b", number=2), delta("a", number=1), whole("ab")], "ab"),
        ([delta("a", number=1), delta("b", number=2), whole("ab"), delta("b", number=2), delta("c")], "ab"),
        ([delta("a"), delta("b"), delta("b"), whole("ab")], "ab"),
        ([delta("a"), whole("ab")], "ab"),
        ([whole("ab")], "ab"),
        ([whole("a", chunkIndex=0, chunkCount=2), whole("b", chunkIndex=1, chunkCount=2)], "ab"),
        ([delta("ab")], "ab"),
    ],
)
async def test_the_message_is_the_truth(open_host: HostOpener, events: list[Json], expected: str) -> None:
    """Reported: 20,000 deltas were recorded as 234,445 characters instead of 128,890."""
    turn, log = await heard(open_host, events)
    assert said(turn) == [("text", expected)]
    ends = [each for each in log if isinstance(each, PartEnded)]
    assert ends[-1].text == expected


async def test_an_event_that_comes_twice_is_streamed_once(open_host: HostOpener) -> None:
    _, log = await heard(open_host, [delta("a", number=1), delta("a", number=1), whole("a")])
    assert [each.replaces for each in log if isinstance(each, PartEnded)] == [0]


async def test_reasoning_is_corrected_although_it_is_told_after_the_message(open_host: HostOpener) -> None:
    events = [
        thought("Hm Hm"),
        delta("Yes."),
        whole("Yes."),
        event("assistant.reasoning", reasoningId="r1", content="Hm"),
    ]
    turn, _ = await heard(open_host, events)
    assert said(turn) == [("reasoning", "Hm"), ("text", "Yes.")]


async def test_what_a_broken_attempt_said_leaves_the_answer(open_host: HostOpener) -> None:
    events = [
        thought("Well"),
        delta("one two", "m1"),
        failure(502, "bad gateway"),
        RETRY,
        event("session.info", infoType="model_retry", message="Retrying..."),
        delta("whole", "m2"),
        whole("whole", "m2"),
        delta("late", "m1"),
    ]
    turn, _ = await heard(open_host, events)
    notice = "The model did not answer (502): bad gateway. Copilot tries again."
    assert said(turn) == [("notice", notice), ("text", "whole")]


async def test_a_failure_without_a_retry_keeps_what_was_said(open_host: HostOpener) -> None:
    turn, _ = await heard(open_host, [delta("one two"), failure(502, "bad gateway")])
    assert said(turn) == [("text", "one two")]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (failure(429, '{"message":"slow down"}'), "The model did not answer (429): slow down."),
        (event("session.warning", warningType="quota", message="10 % are left."), "10 % are left."),
        (event("session.info", infoType="mcp", message="Connected."), "Connected."),
        (event("session.compaction_start"), "Copilot compacts it"),
        (
            event("session.compaction_complete", success=True, preCompactionTokens=900, postCompactionTokens=100),
            "was compacted from 900 to 100 tokens",
        ),
        (event("session.compaction_complete", success=False, error="no model"), "could not be compacted: no model"),
        (event("assistant.turn_retry", turnId="0", reason="rate_limit"), "The answer broke off (rate_limit)."),
        (mcp_status("failed", error="no such file."), "The MCP server 'tickets' is left out: no such file."),
        (mcp_status("needs-auth"), "The MCP server 'tickets' is left out: it wants a sign-in."),
    ],
)
async def test_a_person_sees_what_happens_beside_the_answer(open_host: HostOpener, told: Json, words: str) -> None:
    turn, _ = await heard(open_host, [told, whole("Yes.")])
    (kind, notice), answer = said(turn)
    assert (kind, answer) == ("notice", ("text", "Yes."))
    assert words in notice


@pytest.mark.parametrize("status", ["pending", "connected", "disabled", "stopped"])
async def test_a_server_of_tools_that_is_well_is_no_news(open_host: HostOpener, status: str) -> None:
    turn, _ = await heard(open_host, [mcp_status(status), whole("Yes.")])
    assert said(turn) == [("text", "Yes.")]


@pytest.mark.parametrize(
    "output",
    [
        [shell(0, "one\n"), partial("one\n"), shell(1, "two\n"), partial("one\ntwo\n"), partial("one\ntwo\n")],
        [partial("one\n"), partial("one\ntwo\n"), partial("one\ntwo\n")],
        [partial("one\n"), partial("another screen"), partial("one\ntwo\n")],
    ],
)
async def test_live_output_is_told_once(open_host: HostOpener, output: list[Json]) -> None:
    """Reported: each partial result was taken for a further piece, and repeats all that came before."""
    turn, log = await heard(open_host, [SHELL, *output, DONE])
    assert "".join(each.text for each in log if isinstance(each, ToolOutput)) == "one\ntwo\n"
    (call,) = [part for part in turn.parts if isinstance(part, CallPart)]
    assert call.output == "one\ntwo\n"


@pytest.mark.parametrize(("told", "code"), [({"shellExecution": {"exitCode": 2}}, 2), ({}, None)])
async def test_the_exit_code_of_a_command_is_data(open_host: HostOpener, told: Json, code: int | None) -> None:
    failed = event("tool.execution_complete", toolCallId="c1", success=False, **told)
    turn, _ = await heard(open_host, [SHELL, failed])
    (call,) = [part for part in turn.parts if isinstance(part, CallPart)]
    assert (call.exit_code, call.ok) == (code, False)


async def test_a_refused_key_of_a_provider_is_a_missing_sign_in_until_it_is_taken(tmp_path: Path) -> None:
    table = {"program": "true", "models": ["m"], "provider": {"base_url": "http://127.0.0.1:1/v1"}}
    (agent,) = copilot(AgentContext(tmp_path, {"copilot": table}))
    assert isinstance(agent, CopilotAgent)
    opening = Opening("s", str(tmp_path), "m", {}, [], lambda ident: None)
    conversation: Any = CopilotConversation(agent, opening, agent._supervisor)
    runtime = SimpleNamespace(process=SimpleNamespace(alive=lambda work: work))
    turn: Any = SimpleNamespace()

    async def listen(*told: Json) -> None:
        for each in (*told, event("session.idle")):
            conversation._queue.put_nowait(SessionEvent.from_dict(each))
        await conversation._listen(runtime, Events(turn, frozenset()))

    with pytest.raises(SignInRequired, match="401 bad key Set another key: api_key_env"):
        await listen(event("session.error", errorType="query", message="401 bad key", statusCode=401))
    assert (await agent.describe()).missing == agent.key_refused.text
    await listen()
    assert (await agent.describe()).missing is None
    await agent.close()


async def test_an_imported_history_has_the_turns_of_the_program() -> None:
    """Events as `get_events` returns them: sub-agents and unknown events are left out."""
    builder = HistoryBuilder("copilot", "n1", 0)
    call = {"toolCallId": "c1", "toolName": "bash", "arguments": {"command": "ls"}}
    done = {"toolCallId": "c1", "success": True, "result": {"content": "a.txt"}}
    bad = {"toolCallId": "c2", "success": False, "error": {"message": "no such file"}}
    found: list[tuple[str, dict[str, Any]]] = [
        ("session.title_changed", {"title": "Files"}),
        ("user.message", {"content": "list the files"}),
        ("assistant.message", {"messageId": "m1", "content": "", "reasoningText": "ls will do", "toolRequests": []}),
        ("tool.execution_start", call),
        ("tool.execution_complete", done),
        ("tool.execution_start", {"toolCallId": "c2", "toolName": "view", "arguments": {"path": "b"}}),
        ("tool.execution_complete", bad),
        ("assistant.message", {"messageId": "m2", "content": "There is a.txt.", "toolRequests": []}),
        ("user.message", {"content": "thanks"}),
    ]
    for kind, data in found:
        for update in updates(SessionEvent.from_dict(event(kind, **data))):
            await builder.update(update)
    first, second = builder.finish()
    assert (first.message.text, second.message.text, second.parts) == ("list the files", "thanks", [])
    shown = [(part.kind, part.text) for part in first.parts if isinstance(part, TextPart)]
    assert shown == [("reasoning", "ls will do"), ("text", "There is a.txt.")]
    calls = [(part.kind, part.output, part.ok) for part in first.parts if isinstance(part, CallPart)]
    assert calls == [("execute", "a.txt", True), ("read", "no such file", False)]
    assert first.started == 1_794_823_200_000
