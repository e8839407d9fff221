"""Which step answers which request: agents store the same turn in many ways."""

from typing import Any

import httpx
import pytest

from portico.testing.model import ModelRequest, RequestMessage
from tests.testing.wire import WIRES, Wire

SCRIPT = '[{"say": "one", "calls": [{"name": "bash"}]}, {"calls": [{"name": "bash"}]}, {"say": "It was {{result}}"}]'


def turn(*messages: RequestMessage) -> ModelRequest:
    return ModelRequest(format="test", model="m", messages=messages)


def user(text: str) -> RequestMessage:
    return RequestMessage(role="user", text=text)


def assistant(*calls: str) -> RequestMessage:
    return RequestMessage(role="assistant", text="x", calls=calls)


TOOL = RequestMessage(role="tool", text="ok")


@pytest.mark.parametrize(
    ("messages", "position"),
    [
        ([user("go")], 0),
        ([user("go"), assistant("c1"), TOOL], 1),
        ([user("go"), assistant("c1", "c2"), TOOL, TOOL, assistant("c3"), TOOL], 2),
        ([user("go"), assistant(), assistant("c1"), TOOL], 1),
        ([user("old"), assistant("c1"), TOOL, assistant(), user("go")], 0),
        ([user("go"), assistant("c1"), TOOL, user("<system-reminder>x</system-reminder>")], 1),
        ([user("go"), assistant("call_0123abcd_1_0_0"), TOOL, assistant("call_0123abcd_1_0_1"), TOOL], 1),
        ([user("go"), assistant("call_0123abcd_9_4_0"), TOOL], 5),
        ([], 0),
        ([user("<only>tags</only>"), assistant("c1"), TOOL], 1),
    ],
    ids=[
        "first request",
        "after one call",
        "parallel calls are one answer",
        "text and call stored apart are one answer",
        "an earlier turn does not count",
        "an injected reminder is no prompt",
        "split parallel calls are known by their ids",
        "compacted history is known by its ids",
        "no message at all",
        "a prompt of tags only",
    ],
)
def test_position(messages: list[RequestMessage], position: int) -> None:
    assert turn(*messages).position == position


def test_the_prompt_is_what_a_person_wrote_last() -> None:
    request = turn(user("<env>x</env> first"), assistant(), user("second"), user("<info-msg>time</info-msg>"))

    assert request.prompt == "second"


def test_a_script_inside_a_tag_is_a_prompt() -> None:
    wrapped = f"<user_query>{SCRIPT}</user_query>"

    assert turn(user("before"), user(wrapped)).prompt == wrapped


def history(wire: Wire, body: dict[str, Any], answer: dict[str, Any], output: str) -> dict[str, Any]:
    """What an agent sends next: the answer it got, and the output of each call in it."""
    match wire.name:
        case "chat":
            message = answer["choices"][0]["message"]
            results = [{"role": "tool", "tool_call_id": c["id"], "content": output} for c in message["tool_calls"]]
            return {**body, "messages": [*body["messages"], message, *results]}
        case "responses":
            calls = [item["call_id"] for item in answer["output"] if item["type"] == "function_call"]
            results = [{"type": "function_call_output", "call_id": call, "output": output} for call in calls]
            return {**body, "input": [*body["input"], *answer["output"], *results]}
        case "anthropic":
            calls = [block["id"] for block in answer["content"] if block["type"] == "tool_use"]
            text = [{"type": "text", "text": output}]
            results = [{"type": "tool_result", "tool_use_id": call, "content": text} for call in calls]
            reminder = {"type": "text", "text": "<system-reminder>be good</system-reminder>"}
            messages = [{"role": "assistant", "content": answer["content"]}]
            return {
                **body,
                "messages": [*body["messages"], *messages, {"role": "user", "content": [*results, reminder]}],
            }
        case _:
            content = answer["candidates"][0]["content"]
            names = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
            parts = [{"functionResponse": {"name": name, "response": {"output": output}}} for name in names]
            # Gemini agents may drop the ids of calls.
            for part in content["parts"]:
                part.get("functionCall", {}).pop("id", None)
            return {**body, "contents": [*body["contents"], content, {"role": "user", "parts": parts}]}


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_each_request_of_a_turn_gets_its_step(wire: Wire, client: httpx.AsyncClient) -> None:
    body = wire.ask(f"Please: {SCRIPT}", ["bash"])
    said = []
    for output in ("first", "second", ""):
        response = await wire.post(client, body)
        answer = wire.read(response)
        said.append((answer.text, len(answer.calls)))
        if answer.calls:
            body = history(wire, body, response.json(), output)

    assert said == [("one", 1), ("", 1), ("It was second", 0)]


async def test_past_the_last_step_the_turn_is_done(client: httpx.AsyncClient) -> None:
    wire = WIRES[0]
    body = wire.ask('[{"calls": [{"name": "bash"}]}]', ["bash"])
    body = history(wire, body, (await wire.post(client, body)).json(), "ok")

    assert wire.read(await wire.post(client, body)).text == "Done."


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
async def test_who_declares_no_tools_gets_no_call(wire: Wire, client: httpx.AsyncClient) -> None:
    titled = await wire.say(client, f"Title this: {SCRIPT}")
    silent = await wire.say(client, 'Title this: [{"calls": [{"name": "bash"}]}]')

    assert (titled.text, titled.calls) == ("one", [])
    assert (silent.text, silent.calls) == ("You said: Title this:", [])


async def test_call_ids_are_never_reused(client: httpx.AsyncClient) -> None:
    """Agents key tool calls by id, also across sub-agents with the same prompt."""
    wire = WIRES[2]
    body = wire.ask('[{"calls": [{"name": "bash"}, {"name": "bash"}]}]', ["bash"])

    answers = [(await wire.post(client, body)).json() for _ in range(3)]

    assert len({block["id"] for answer in answers for block in answer["content"]}) == 6
