"""The same turns over chat completions, OpenAI Responses and Anthropic Messages."""

import json
from typing import Any

import pytest

from portico.agents.loop.protocol import ModelAction, ModelStep
from portico.agents.loop.reply import ModelError, NativeCall, Reply, Said, TokensSpent
from portico.agents.loop.transcript import Entry, Exchange, UserText
from portico.agents.loop.wires.registry import CODECS, wire_of
from portico.agents.loop.wires.request import CompletionRequest
from portico.kernel.events import Json, ToolSpec
from portico.testing.model import Error, First, ScriptedCall, ScriptedUsage, Step
from tests.agents.loop.conftest import Desk, calls, texts
from tests.agents.loop.vendor import frames, vendor

WIRES = ["chat", "responses", "messages"]


def settings(wire: str, more: str = "") -> str:
    return f'[agents.loop]\nretries = 1\nwire = "{wire}"\n{more}'


@pytest.mark.parametrize("wire", WIRES)
async def test_a_turn_with_calls_and_a_second_turn(desk: Desk, wire: str) -> None:
    (desk.project / "a.txt").write_text("needle\n")
    desk.settings(settings(wire))
    read = ScriptedCall(name="readFiles", args={"files": ["a.txt"]})
    listing = ScriptedCall(name="listFiles")
    used = ScriptedUsage(input=70, output=3, cached=20)
    desk.says(Step(say="Looking.", reason="Hm.", calls=[read, listing], usage=used), Step(say="It is {{has needle}}."))
    turn = await desk.run("Look.")
    assert (turn.outcome, texts(turn), texts(turn, "reasoning")) == ("completed", "Looking.It is yes.", "Hm."), (
        turn.error
    )
    assert [(call.tool, call.ok) for call in calls(turn)] == [("readFiles", True), ("listFiles", True)]
    assert turn.usage is not None
    assert turn.usage.cached == 20
    assert {each.request.format for each in desk.server.requests} == {
        {"chat": "openai-chat", "responses": "openai-responses", "messages": "anthropic"}[wire]
    }
    await desk.run("Again.")
    second, third = (each.body for each in list(desk.server.requests)[1:3])
    key = "input" if wire == "responses" else "messages"
    before, after = (json.dumps(_unmarked(body[key])) for body in (second, third))
    assert after.startswith(before[:-1])


def _unmarked(value: Any) -> Any:
    """Cache marks move with the end of the conversation."""
    if isinstance(value, list):
        return [_unmarked(each) for each in value]
    if isinstance(value, dict):
        return {key: _unmarked(each) for key, each in value.items() if key != "cache_control"}
    return value


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "broken",
    [
        Step(say="one two three", cut=1),
        Step(say="one two three", garbage=1),
        Step(error=Error(status=529, message="overloaded")),
        Step(say="one two three", error=Error(status=529, message="overloaded", after=1)),
    ],
    ids=["cut", "garbage", "529", "an error inside"],
)
async def test_a_broken_answer_is_asked_for_again(desk: Desk, wire: str, broken: Step) -> None:
    desk.settings(settings(wire))
    desk.says(Step(say="Made it.", first=First("k", 1, broken)))
    turn = await desk.run("Look.")
    assert (turn.outcome, texts(turn)) == ("completed", "Made it."), turn.error


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("mode", ["text", "schema"])
async def test_without_native_tools(desk: Desk, wire: str, mode: str) -> None:
    desk.settings(settings(wire, f'protocol = "{mode}"\n'))
    desk.says(Step(say=['{"actions": [{"tool": "listFiles"}]}']), Step(say=['{"finalSummary": "Done.", "done": true}']))
    turn = await desk.run("Look.")
    assert (turn.outcome, len(calls(turn)), texts(turn).strip()) == ("completed", 1, "Done."), turn.error


REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "listFiles",
    "arguments": "{}",
    "status": "completed",
}
THINKING = {"type": "thinking", "thinking": "Hm.", "signature": "sig=="}
REDACTED = {"type": "redacted_thinking", "data": "xyz"}


async def test_encrypted_reasoning_goes_back(desk: Desk) -> None:
    items = [REASONING, CALL]
    done = [{"type": "response.output_item.done", "output_index": at, "item": item} for at, item in enumerate(items)]
    first = frames(*done, {"type": "response.completed", "response": {"output": items, "usage": {"input_tokens": 5}}})
    last = {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": "One."}]}
    second = frames(
        {"type": "response.output_text.delta", "delta": "One."},
        {"type": "response.completed", "response": {"output": [last]}},
    )
    models = {"data": [{"id": "gpt-5"}]}
    async with vendor(desk, first, second, second, settings=settings("responses"), models=models) as endpoint:
        turn = await desk.run("Look.")
        await desk.run("Again.")
    assert (turn.outcome, texts(turn)) == ("completed", "One."), turn.error
    assert endpoint.bodies[1]["input"][1:3] == items
    assert endpoint.bodies[1]["input"][3] == {"type": "function_call_output", "call_id": "c1", "output": "No files."}
    assert endpoint.bodies[2]["input"][4] == last
    assert (endpoint.bodies[0]["store"], endpoint.bodies[0]["include"]) == (False, ["reasoning.encrypted_content"])


async def test_signed_thoughts_go_back(desk: Desk) -> None:
    def block(index: int, start: Json, *deltas: Json) -> list[Json]:
        made = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        return [{"type": "content_block_start", "index": index, "content_block": start}, *made]

    first = frames(
        {"type": "message_start", "message": {"usage": {"input_tokens": 5, "cache_read_input_tokens": 7}}},
        {"type": "ping"},
        *block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "Hm."},
            {"type": "signature_delta", "signature": "sig=="},
        ),
        *block(1, REDACTED),
        *block(2, {"type": "text", "text": ""}),
        *block(
            3,
            {"type": "tool_use", "id": "t1", "name": "listFiles", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"glob"'},
            {"type": "input_json_delta", "partial_json": ': "*"}'},
        ),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    )
    second = frames(
        *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "One."}),
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    )
    async with vendor(desk, first, second, settings=settings("messages")) as endpoint:
        turn = await desk.run("Look.")
    assert (turn.outcome, texts(turn), texts(turn, "reasoning")) == ("completed", "One.", "Hm."), turn.error
    assert turn.usage is not None
    assert (turn.usage.input, turn.usage.cached, turn.usage.output) == (12, 7, 9)
    asked, called, answered = endpoint.bodies[1]["messages"]
    tool = {"type": "tool_use", "id": "t1", "name": "listFiles", "input": {"glob": "*"}}
    assert called == {"role": "assistant", "content": [THINKING, REDACTED, tool]}
    assert answered["content"][0]["tool_use_id"] == "t1"
    assert (asked["role"], endpoint.paths[0], endpoint.headers[0]["x-api-key"]) == ("user", "/v1/messages", "k")
    assert "authorization" not in endpoint.headers[0]


@pytest.mark.parametrize(
    ("url", "wanted", "wire"),
    [
        ("https://api.openai.com/v1", "auto", "responses"),
        ("https://api.openai.com/v1", "chat", "chat"),
        ("https://api.anthropic.com/v1", "auto", "messages"),
        ("https://api.deepseek.com/anthropic", "auto", "messages"),
        ("https://api.moonshot.ai/anthropic/v1", "auto", "messages"),
        ("https://openrouter.ai/api/v1", "auto", "chat"),
        ("http://127.0.0.1:8080/v1", "auto", "chat"),
        ("http://127.0.0.1:8080/v1", "messages", "messages"),
    ],
)
def test_the_wire_format_of_an_address(url: str, wanted: Any, wire: str) -> None:
    assert wire_of(url, wanted) == wire


ENTRIES: list[Entry] = [
    UserText("user", "look", ["data:image/png;base64,AAA"]),
    Exchange(
        ModelStep([ModelAction("readFiles", {"files": ["a"]}, "x.1"), ModelAction("listFiles", {})], "why"),
        [("readFiles", "1")],
        Said("chat", "other", {"role": "assistant", "secret": True}),
    ),
    UserText("user", "and"),
    UserText("assistant", ""),
]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("native", [True, False])
def test_what_another_model_did_in_the_neutral_form(wire: Any, native: bool) -> None:
    codec = CODECS[wire]
    sent = codec.render("sys", ENTRIES, native=native, model="m")
    body = codec.body(
        CompletionRequest("m", sent, tools=[ToolSpec("bare", "Does.", {})], system="sys", temperature=0.5)
    )
    text = json.dumps(body)
    assert "secret" not in text
    assert ("interrupted before it had a result" in text, "AAA" in text, "sys" in text) == (True, True, True)
    assert ('"readFiles"' in text) or not native
    assert '"content": ""' not in text


@pytest.mark.parametrize(
    ("wire", "body", "reply"),
    [
        (
            "messages",
            {"content": [{"type": "text", "text": "Hi"}], "stop_reason": "max_tokens", "usage": {"input_tokens": 1}},
            Reply("Hi", [], "length", TokensSpent(1)),
        ),
        (
            "responses",
            {
                "output": [{"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}, CALL],
                "incomplete_details": {"reason": "max_output_tokens"},
            },
            Reply("Hi", [NativeCall("c1", "listFiles", "{}")], "length"),
        ),
    ],
)
def test_a_server_that_does_not_stream(wire: Any, body: Json, reply: Reply) -> None:
    answer = CODECS[wire].stream("x", lambda text, thought: None, lambda: None, lambda *_: None)
    found = answer.take_whole(json.dumps(body).encode())
    assert (found.text, found.calls, found.finish, found.usage) == (reply.text, reply.calls, reply.finish, reply.usage)


BROKEN = [(wire, body) for wire in WIRES for body in (b"no", b"{}", b'{"error": {"message": "busy"}}')]


@pytest.mark.parametrize(("wire", "body"), [each for each in BROKEN if each != ("responses", b"{}")])
def test_a_whole_answer_that_is_none(wire: Any, body: bytes) -> None:
    """An empty object of the Responses API is an empty answer, which the run handles."""
    with pytest.raises(ModelError) as broken:
        CODECS[wire].stream("x", lambda text, thought: None, lambda: None, lambda *_: None).take_whole(body)
    assert broken.value.again
