"""The model's message goes back as it came: within a turn, in the next turn, after a restart and in a fork."""

from typing import Any

import pytest

from portico.agents.agent import Message
from portico.agents.loop.wires.merge import merge
from portico.kernel.events import Json
from tests.agents.loop.conftest import Desk, calls, texts
from tests.agents.loop.vendor import call, stream, vendor

LIST = '{"glob": "*.py"}'


def listing(**extra: Any) -> Json:
    return {"id": "c1", "type": "function", "function": {"name": "listFiles", "arguments": LIST}, **extra}


VENDORS: dict[str, tuple[list[Json], Json]] = {
    "DeepSeek in thinking mode": (
        [
            {"role": "assistant", "content": None, "reasoning_content": ""},
            {"reasoning_content": "I should "},
            {"reasoning_content": "look."},
            {
                "tool_calls": [
                    {"index": 0, "id": "c1", "type": "function", "function": {"name": "listFiles", "arguments": ""}}
                ]
            },
            {"tool_calls": [{"index": 0, "function": {"arguments": LIST[:6]}}]},
            {"tool_calls": [{"index": 0, "function": {"arguments": LIST[6:]}}]},
        ],
        {"content": None, "reasoning_content": "I should look.", "tool_calls": [listing()]},
    ),
    "Kimi with text beside the call": (
        [
            {"role": "assistant", "content": ""},
            {"reasoning_content": "Hm."},
            {"content": "Looking."},
            call("listFiles", LIST),
        ],
        {"content": "Looking.", "reasoning_content": "Hm.", "tool_calls": [listing()]},
    ),
    "GLM with reasoning and content in one delta": (
        [{"role": "assistant", "reasoning_content": "Hm.", "content": "\nLooking."}, call("listFiles", LIST)],
        {"content": "\nLooking.", "reasoning_content": "Hm.", "tool_calls": [listing()]},
    ),
    "MiniMax with its thoughts in the text": (
        [{"content": "<think>\nHm"}, {"content": ".\n</think>\n\n"}, {"content": "Looking."}, call("listFiles", LIST)],
        {"content": "<think>\nHm.\n</think>\n\nLooking.", "tool_calls": [listing()]},
    ),
    "MiniMax with reasoning_details": (
        [
            {"reasoning_details": [{"type": "reasoning.text", "id": "r", "index": 0, "text": "H"}]},
            {"reasoning_details": [{"type": "reasoning.text", "id": "r", "index": 0, "text": "m."}]},
            call("listFiles", LIST),
        ],
        {
            "content": None,
            "reasoning_details": [{"type": "reasoning.text", "id": "r", "index": 0, "text": "Hm."}],
            "tool_calls": [listing()],
        },
    ),
    "OpenRouter with a signature and encrypted data": (
        [
            {
                "reasoning": "H",
                "reasoning_details": [{"type": "reasoning.text", "text": "H", "index": 0, "format": "x"}],
            },
            {
                "reasoning": "m",
                "reasoning_details": [{"type": "reasoning.text", "text": "m", "index": 0, "format": "x"}],
            },
            {"reasoning_details": [{"type": "reasoning.text", "signature": "sig==", "index": 0, "format": "x"}]},
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "AAA", "id": "e1", "index": 1}]},
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "BBB", "id": "e2", "index": 1}]},
            call("listFiles", LIST),
        ],
        {
            "content": None,
            "reasoning": "Hm",
            "reasoning_details": [
                {"type": "reasoning.text", "text": "Hm", "index": 0, "format": "x", "signature": "sig=="},
                {"type": "reasoning.encrypted", "data": "AAA", "id": "e1", "index": 1},
                {"type": "reasoning.encrypted", "data": "BBB", "id": "e2", "index": 1},
            ],
            "tool_calls": [listing()],
        },
    ),
    "Gemini with a thought signature": (
        [call("listFiles", LIST, extra_content={"google": {"thought_signature": "abc"}})],
        {"content": None, "tool_calls": [listing(extra_content={"google": {"thought_signature": "abc"}})]},
    ),
    "Mistral with a list of parts": (
        [
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "H"}]}]},
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "m."}]}]},
            {"content": [{"type": "text", "text": "Look"}]},
            {"content": [{"type": "text", "text": "ing."}]},
            call("listFiles", LIST),
        ],
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
                {"type": "text", "text": "Looking."},
            ],
            "tool_calls": [listing()],
        },
    ),
    "a field that nobody has described": (
        [
            {"vendor_state": {"a": 1}},
            {"vendor_state": {"b": [2]}, "channel": "x"},
            {"channel": "x"},
            call("listFiles", LIST),
        ],
        {"content": None, "vendor_state": {"a": 1, "b": [2]}, "channel": "x", "tool_calls": [listing()]},
    ),
}


@pytest.mark.parametrize(("deltas", "message"), VENDORS.values(), ids=VENDORS)
async def test_a_message_goes_back_unchanged(desk: Desk, deltas: list[Json], message: Json) -> None:
    """Reported: DeepSeek and Gemini rejected the second step, others lost their reasoning."""
    expected = {"role": "assistant", **message}
    async with vendor(desk, stream(*deltas, finish="tool_calls"), stream({"content": "One."})) as endpoint:
        turn = await desk.run("Look.")
        assert (turn.outcome, [call.tool for call in calls(turn)]) == ("completed", ["listFiles"]), turn.error
        await desk.run("Again.")
        restarted = await desk.open()
        desk.session = await desk.host.get(restarted.id)
        await desk.run("And after a restart.")
    second, third, fourth = endpoint.bodies[1:]
    for body in (second, third, fourth):
        assert body["messages"][2] == expected
        assert body["messages"][3]["tool_call_id"] == "c1"
    assert third["messages"][: len(second["messages"])] == second["messages"]
    assert fourth["messages"][: len(third["messages"])] == third["messages"]


async def test_the_reasoning_of_a_final_answer_goes_back_too(desk: Desk) -> None:
    final = stream({"reasoning_content": "Hm."}, {"content": "Yes."})
    async with vendor(desk, final, stream({"content": "No."})) as endpoint:
        turn = await desk.run("Is it?")
        assert (texts(turn), texts(turn, "reasoning")) == ("Yes.", "Hm.")
        await desk.run("Really?")
    assert endpoint.bodies[1]["messages"][2] == {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}


async def test_another_model_gets_the_neutral_form(desk: Desk) -> None:
    """A signature of one vendor is an error for another."""
    thinking = stream({"reasoning_content": "Hm."}, {"content": "Looking."}, call("listFiles", LIST, ident="x9"))
    async with vendor(
        desk, thinking, stream({"content": "One."}), models={"data": [{"id": "m"}, {"id": "n"}]}
    ) as endpoint:
        await desk.run("Look.")
        turn = await desk.session.send(Message("Again.", model="n"), by="test")
        await desk.session.wait(turn)
    called = endpoint.bodies[2]["messages"][2]
    assert called == {
        "role": "assistant",
        "content": "Looking.",
        "tool_calls": [{"id": "c00000100", "type": "function", "function": {"name": "listFiles", "arguments": LIST}}],
    }


async def test_a_fork_sends_the_same_bytes(desk: Desk) -> None:
    thinking = stream({"reasoning_content": "Hm."}, call("listFiles", LIST))
    async with vendor(desk, thinking, stream({"content": "One."})) as endpoint:
        await desk.run("Look.")
        desk.session = await desk.host.fork(desk.session.id, by="test")
        await desk.run("In a fork.")
    assert endpoint.bodies[2]["messages"][:4] == endpoint.bodies[1]["messages"]


async def test_a_message_without_streaming_goes_back_unchanged(desk: Desk) -> None:
    """Nulls are left out: servers reject fields like `function_call: null` that they send themselves."""
    message = {"role": "assistant", "content": "", "reasoning_content": "Hm.", "refusal": None, "x": {"y": 1}}
    whole = {"choices": [{"message": {**message, "tool_calls": [listing()]}, "finish_reason": "tool_calls"}]}
    async with vendor(desk, whole, stream({"content": "One."})) as endpoint:
        turn = await desk.run("Look.")
    assert turn.outcome == "completed", turn.error
    sent = endpoint.bodies[1]["messages"][2]
    assert sent == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "Hm.",
        "x": {"y": 1},
        "tool_calls": [listing()],
    }


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        (LIST, LIST),
        ({"glob": "*.py"}, {"glob": "*.py"}),
        ("", "{}"),
        ('{"glob": ', "{}"),
        ("[1]", "{}"),
        ("null", "{}"),
    ],
)
async def test_arguments_that_an_endpoint_could_not_parse_are_not_sent_back(
    desk: Desk, arguments: Any, sent: Any
) -> None:
    """vLLM and llama.cpp parse the arguments in the history, and fail on what is no object."""
    async with vendor(desk, stream(call("listFiles", arguments)), stream({"content": "One."})) as endpoint:
        turn = await desk.run("Look.")
    assert turn.outcome == "completed", turn.error
    assert endpoint.bodies[1]["messages"][2]["tool_calls"][0]["function"]["arguments"] == sent


def test_deltas_become_one_value() -> None:
    message: Json = {}
    for delta in (
        {"a": None, "reasoning_x": "1"},
        {"reasoning_x": "2", "n": 1},
        {"n": 2, "o": {"s": "x"}},
        {"o": {"t": 1}},
    ):
        merge(message, delta)
    assert message == {"reasoning_x": "12", "n": 2, "o": {"s": "x", "t": 1}}
