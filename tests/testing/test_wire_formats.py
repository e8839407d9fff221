"""The same step through every wire format, streamed and whole."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.testing.wire import WIRES, Said, Wire, events

GOLDEN = Path(__file__).parent / "golden"
STEP = """Please look. [
  {"reason": "Let me think.", "say": "I look.", "calls": [
    {"name": ["Bash", "bash"], "args": {"command": "ls -la"}},
    {"name": "view", "args": {"path": "a.txt"}}
  ], "usage": {"input": 100, "output": 20, "cached": 40, "reasoning": 5}}
]"""
TOOLS = ["bash", "view"]
each_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)


@each_wire
async def test_a_stream_is_byte_for_byte_what_it_was(wire: Wire, client: httpx.AsyncClient) -> None:
    response = await wire.post(client, wire.ask(STEP, TOOLS), stream=True)

    assert response.headers["content-type"] == "text/event-stream"
    assert response.content == (GOLDEN / f"{wire.name}.sse").read_bytes()


@each_wire
async def test_an_answer_in_one_piece_has_everything(wire: Wire, client: httpx.AsyncClient) -> None:
    said = await wire.say(client, STEP, TOOLS)

    assert said == Said(
        text="I look.",
        reason="Let me think.",
        calls=[("bash", {"command": "ls -la"}), ("view", {"path": "a.txt"})],
        usage=(60 if wire.name == "anthropic" else 100, 20),
    )


@each_wire
async def test_a_text_without_a_script_is_echoed(wire: Wire, client: httpx.AsyncClient) -> None:
    said = await wire.say(client, "<system-reminder>be brief</system-reminder>What is up [today]?", TOOLS)

    assert said.text == "You said: What is up [today]?"


@each_wire
async def test_an_error_status_has_the_shape_of_its_format(wire: Wire, client: httpx.AsyncClient) -> None:
    prompt = '[{"error": {"status": 429, "message": "too fast", "retry_after": 1.5}}]'

    for stream in (False, True):
        response = await wire.post(client, wire.ask(prompt), stream=stream)

        assert (response.status_code, response.headers["retry-after"]) == (429, "1.5")
        assert response.json()["error"]["message"] == "too fast"
    assert "rate_limit_error" in response.text or "RESOURCE_EXHAUSTED" in response.text


@each_wire
async def test_an_error_inside_a_stream_comes_after_its_deltas(wire: Wire, client: httpx.AsyncClient) -> None:
    prompt = '[{"say": ["one", "two", "three"], "error": {"message": "overloaded", "after": 2}}]'

    response = await wire.post(client, wire.ask(prompt), stream=True)

    assert response.status_code == 200
    assert "two" in response.text
    assert "three" not in response.text
    assert "overloaded" in str(events(response.text)[-1])


@each_wire
@pytest.mark.parametrize(
    ("finish", "words"),
    [
        (
            "length",
            {"chat": "length", "responses": "max_output_tokens", "anthropic": "max_tokens", "gemini": "MAX_TOK"},
        ),
        (
            "refusal",
            {"chat": "content_filter", "responses": "content_filter", "anthropic": "refusal", "gemini": "SAFE"},
        ),
    ],
)
async def test_why_an_answer_ended(wire: Wire, finish: str, words: dict[str, str], client: httpx.AsyncClient) -> None:
    prompt = f'[{{"say": "half an ans", "finish": "{finish}"}}]'

    for stream in (False, True):
        assert words[wire.name] in (await wire.post(client, wire.ask(prompt), stream=stream)).text


@each_wire
async def test_a_schema_gets_json_that_fits_it(wire: Wire, client: httpx.AsyncClient) -> None:
    schema = {"type": "object", "properties": {"next": {"enum": ["user", "model"]}}, "required": ["next"]}
    wanted: dict[str, dict[str, Any]] = {
        "chat": {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}},
        "responses": {"text": {"format": {"type": "json_schema", "name": "x", "schema": schema}}},
        "anthropic": {"output_config": {"format": {"type": "json_schema", "schema": schema}}},
        "gemini": {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": schema}},
    }

    # Agents classify a prompt like this before they act on it; the script is not meant for that request.
    for prompt in ("Who is next?", '[{"say": "prose"}]'):
        response = await wire.post(client, {**wire.ask(prompt), **wanted[wire.name]})
        assert wire.read(response).text == '{"next":"user"}'
    response = await wire.post(client, {**wire.ask('[{"say": "{\\"next\\": 7}"}]'), **wanted[wire.name]})
    assert wire.read(response).text == '{"next": 7}'


@each_wire
async def test_a_body_that_is_no_request_is_refused(wire: Wire, client: httpx.AsyncClient) -> None:
    for body in (b"", b"[]", b"{}", b'{"messages": 7, "input": 7, "contents": 7}'):
        response = await client.post(wire.path, content=body)

        assert response.status_code == 400
        assert response.json()["error"]["message"]


async def test_chat_streams_usage_only_on_demand(client: httpx.AsyncClient) -> None:
    wire = WIRES[0]
    options = {"stream_options": {"include_usage": True}}

    without = events((await wire.post(client, wire.ask("hi"), stream=True)).text)
    asked = events((await wire.post(client, {**wire.ask("hi"), **options}, stream=True)).text)

    assert not any("usage" in event for event in without)
    assert (asked[-2]["choices"], asked[-2]["usage"]["total_tokens"]) == ([], 4)


async def test_responses_calls_a_freeform_tool_with_text(client: httpx.AsyncClient) -> None:
    body = {
        "model": "m",
        "input": '[{"calls": [{"name": "apply_patch", "args": "*** Begin Patch"}]}]',
        "tools": [{"type": "custom", "name": "apply_patch"}, {"type": "web_search"}],
    }

    item = (await client.post("/v1/responses", json=body)).json()["output"][0]

    assert (item["type"], item["name"], item["input"]) == ("custom_tool_call", "apply_patch", "*** Begin Patch")


async def test_responses_says_that_it_keeps_nothing(client: httpx.AsyncClient) -> None:
    response = await client.post("/v1/responses", json={"input": "hi", "previous_response_id": "resp_1"})

    assert response.status_code == 400
    assert "previous_response_id" in response.json()["error"]["message"]


async def test_gemini_streams_a_json_array_without_sse(client: httpx.AsyncClient) -> None:
    wire = WIRES[3]

    response = await client.post("/v1beta/models/m:streamGenerateContent", json=wire.ask('[{"say": "a b c"}]'))

    parts = [chunk["candidates"][0]["content"]["parts"][0]["text"] for chunk in response.json()]
    assert parts == ["a ", "b ", "c", ""]


async def test_gemini_clients_of_the_newer_version_are_served(client: httpx.AsyncClient) -> None:
    wire = WIRES[3]

    response = await client.post("/v1/models/m:generateContent", json=wire.ask("hi"))

    assert wire.read(response).text == "You said: hi"


async def test_an_error_in_a_json_array_leaves_it_valid(client: httpx.AsyncClient) -> None:
    prompt = '[{"say": "a b", "error": {"message": "broken", "after": 1}}]'

    response = await client.post("/v1beta/models/m:streamGenerateContent", json=WIRES[3].ask(prompt))

    assert response.json()[-1]["error"]["message"] == "broken"


async def test_a_failed_response_is_the_one_that_began(client: httpx.AsyncClient) -> None:
    """The OpenAI client refuses a stream whose last event names another response."""
    prompt = '[{"say": "a b", "error": {"message": "broken", "after": 1}}]'

    seen = events((await WIRES[1].post(client, WIRES[1].ask(prompt), stream=True)).text)

    assert (seen[-1]["type"], seen[-1]["response"]["id"]) == ("response.failed", seen[0]["response"]["id"])


async def test_tokens_are_counted(client: httpx.AsyncClient) -> None:
    messages = {"model": "m", "messages": [{"role": "user", "content": "x" * 40}]}
    contents = {"contents": [{"role": "user", "parts": [{"text": "x" * 40}]}]}

    counted = [
        (await client.post("/v1/messages/count_tokens?beta=true", json=messages)).json(),
        (await client.post("/v1beta/models/m:countTokens", json=contents)).json(),
        (await client.post("/v1beta/models/m:countTokens", json={"generateContentRequest": contents})).json(),
    ]

    assert counted == [{"input_tokens": 10}, {"totalTokens": 10}, {"totalTokens": 10}]


async def test_an_unknown_verb_of_a_model_is_not_found(client: httpx.AsyncClient) -> None:
    assert (await client.post("/v1beta/models/m:embedContent", json={})).status_code == 404
