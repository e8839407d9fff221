"""Failures that agents send as their answer, in the updates and texts that the programs were seen to send."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from portico.agents.acp.agent import AcpAgent
from portico.agents.acp.error_text import RETRYING, ErrorText
from portico.kernel.errors import AgentError
from portico.kernel.events import Message
from portico.kernel.log.sqlite import SqliteLog
from portico.kernel.state import TextPart, TurnState
from portico.server.compose import build_host
from tests.agents.acp_agent import FAKE, fake_agent, said, steps

RETRY = "Please retry if you think this is a transient or recoverable error."
RETRIED = (
    "Failed to get response from the AI model; retried 5 times (total retry wait time: 16.03 seconds) "
    "Last error: 500 internal trouble"
)
MISSING = (
    "Model 'gpt-4.1' not found on provider at http://127.0.0.1:1/v1 (HTTP 404).\n"
    "  Check that the model is available on your provider"
)
AUTH = "Authentication failed with provider at http://127.0.0.1:1/v1 (HTTP 401).\n  Check your COPILOT_PROVIDER_API_KEY"
USAGE = {"usage": {"inputTokens": 1, "outputTokens": 1}}
BROKEN = ["update", "session_info_update", {"_meta": {"codex": {"threadStatus": {"type": "systemError"}}}}]
BODY = '{"error":{"message":"bad thing","type":"invalid_request_error","param":null,"code":null}}\n\n'


def retries(message: str, details: str) -> list[Any]:
    error = {"message": message, "additionalDetails": details, "willRetry": True}
    return ["update", "session_info_update", {"_meta": {"codex": {"error": error}}}]


@pytest.mark.parametrize(
    ("kind", "words", "reply", "code", "message"),
    [
        ("goose", f"Ran into this error: Rate limit.\n\n{RETRY}", {}, "agent_failed", "Rate limit."),
        ("goose", f"Ran into this error: Not logged in.\n\n{RETRY}", {}, "sign_in_required", "Not logged in."),
        ("copilot", f"Error: {AUTH}.", {}, "sign_in_required", f"{AUTH}."),
        ("copilot", f"Error: {RETRIED}", {}, "agent_failed", f"{RETRIED}."),
        ("copilot", f"Error: {MISSING}.", USAGE, "agent_failed", f"{MISSING}."),
        ("copilot", "Error: 400 bad thing", {}, "agent_failed", "400 bad thing."),
        ("copilot", "Error: 400 bad thing", USAGE, "agent_failed", "400 bad thing."),  # after a call that worked
        ("copilot", "Error: something new", {}, "agent_failed", "something new."),
    ],
)
def test_a_failure(kind: str, words: str, reply: dict[str, Any], code: str, message: str) -> None:
    texts = ErrorText(kind)
    assert texts.take(words, None)
    found = texts.failure("It", reply)
    assert isinstance(found, AgentError)
    assert (found.code, found.message, texts.release()) == (code, f"It: {message}", "")


@pytest.mark.parametrize(
    ("kind", "words", "reply"),
    [
        ("goose", f"It says: Ran into this error: no.\n\n{RETRY}", {}),
        ("goose", "Ran into this error: no.", {}),
        ("copilot", "Error: the file is not there, so I made it.", USAGE),
        ("copilot", "The log says:\nError: 400 bad", {}),
        ("codex", "Error: 400 scripted error", {}),
        ("opencode", "Error: 400 scripted error", {}),
        (None, "Error: 400 scripted error", {}),
        ("copilot", "", {}),
    ],
)
def test_an_answer(kind: str | None, words: str, reply: dict[str, Any]) -> None:
    texts = ErrorText(kind)
    shown = "" if texts.take(words, None) else words
    assert texts.failure("It", reply) is None
    assert shown + texts.release() == words


def program(folder: Path, kind: str) -> AcpAgent:
    """The fake agent under the name of a known one."""
    script = folder / f"{kind}.py"
    shutil.copy(FAKE, script)
    script.write_text(f"#!{sys.executable} -SE\n{script.read_text()}")
    script.chmod(0o755)
    return fake_agent(folder, settings={"command": [str(script)], "name": "It"})


async def play(folder: Path, kind: str, *wanted: list[Any], **config: Any) -> TurnState:
    log = await SqliteLog.open(folder / "log.db")
    host = await build_host(log, [program(folder, kind)])
    try:
        session = await host.start(by="test", agent="acp:fake", cwd=str(folder), config=config)
        await session.wait(await session.send(Message(steps(*wanted)), by="test"))
        return session.state.turns[-1]
    finally:
        await host.close()
        await log.close()


def shown(turn: TurnState, kind: str = "text") -> list[str]:
    return [part.text for part in turn.parts if isinstance(part, TextPart) and part.kind == kind and part.text]


ENDED = ["reply", USAGE]
TURNS: dict[str, tuple[str, list[list[Any]], list[str], list[str], str]] = {
    # agent, its updates, the texts shown, the notices shown, the error
    "codex": ("codex", [BROKEN, ["text", BODY]], [], [], "It: bad thing."),
    "codex without a text": ("codex", [BROKEN], [], [], "It: its model did not answer."),
    "codex after a part of the answer": (
        "codex",
        [["text", "one ", {"messageId": "m1"}], BROKEN, ["text", "disconnected\n\n"]],
        ["one "],
        [],
        "It: disconnected.",
    ),
    "codex retries": (
        "codex",
        [
            ["text", "one ", {"messageId": "m1"}],
            retries("Reconnecting... 1/5", "stream disconnected"),
            ["text", "one two", {"messageId": "m2"}],
            ENDED,
        ],
        ["one two"],
        ["stream disconnected Reconnecting... 1/5"],
        "",
    ),
    "codex retries after a message that is complete": (
        "codex",
        [
            ["text", "First. ", {"messageId": "m1"}],
            ["update", "usage_update", {"used": 1, "size": 2}],
            retries("Reconnecting... 1/5", ""),
            ["text", "Second.", {"messageId": "m2"}],
            ENDED,
        ],
        ["First. ", "Second."],
        ["Reconnecting... 1/5"],
        "",
    ),
    "codex recovers": (
        "codex",
        [
            BROKEN,
            ["update", "session_info_update", {"_meta": {"codex": {"threadStatus": {"type": "active"}}}}],
            ["text", "fine", {"messageId": "m1"}],
            ENDED,
        ],
        ["fine"],
        [],
        "",
    ),
    "copilot": ("copilot", [["text", "Error: 400 bad thing"]], [], [], "It: 400 bad thing."),
    "copilot after retries": (
        "copilot",
        [["text", "one two "], ["text", RETRYING], ["text", "one two "], ["text", f"Error: {RETRIED}"]],
        ["one two "],
        ["The request to the model failed and is retried."],
        f"It: {RETRIED}.",
    ),
    "copilot recovers": (
        "copilot",
        [["text", "one "], ["text", RETRYING], ["text", "one "], ["text", "two"], ENDED],
        ["one two"],
        ["The request to the model failed and is retried."],
        "",
    ),
    "copilot quotes an error": (
        "copilot",
        [["text", "Error: "], ["text", "it is "], ["text", "fine"], ENDED],
        ["Error: it is fine"],
        [],
        "",
    ),
    "copilot quotes an error in one piece": ("copilot", [["text", "Error: none"], ENDED], ["Error: none"], [], ""),
    "goose": ("goose", [["text", f"Ran into this error: no.\n\n{RETRY}"]], [], [], "It: no."),
    "another program": ("mine", [["text", "Error: 400 bad thing"]], ["Error: 400 bad thing"], [], ""),
}


@pytest.mark.parametrize("case", TURNS)
async def test_a_turn_that_ends_so(case: str, tmp_path: Path) -> None:
    kind, updates, texts, notices, error = TURNS[case]
    turn = await play(tmp_path, kind, *updates)
    reason = turn.error.message if turn.error is not None else ""
    assert (shown(turn), shown(turn, "notice"), reason) == (texts, notices, error)
    assert turn.outcome == ("failed" if error else "completed")


@pytest.mark.parametrize(
    ("kind", "updates"),
    [
        ("codex", [BROKEN, ["text", BODY]]),
        ("copilot", [["text", RETRYING], ["text", "Error: 500 no"]]),
        ("goose", [["text", f"Ran into this error: no.\n\n{RETRY}"]]),
    ],
)
async def test_the_next_agent_takes_over(kind: str, updates: list[list[Any]], tmp_path: Path) -> None:
    """The text of the error was output of the turn: no fallback was used."""
    turn = await play(tmp_path, kind, *updates, fallback=["scripted"])
    assert "'acp:fake' cannot answer: It: " in said(turn, "notice")
    assert "'scripted' takes over" in said(turn, "notice")
