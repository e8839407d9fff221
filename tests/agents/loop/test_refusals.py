"""What an endpoint's error means, by the bytes of each vendor."""

import json
from typing import Any

import pytest

from portico import limits
from portico.agents.loop.model_call import Known
from portico.agents.loop.refusal import in_stream, refusal, wait_asked, window
from portico.agents.loop.reply import Feature
from portico.kernel.events import Json
from tests.agents.loop.conftest import Desk, calls, texts
from tests.agents.loop.vendor import call, stream, vendor


def error(message: str, **more: Any) -> Json:
    return {"error": {"message": message, **more}}


LACKS: list[tuple[int, Json, Feature | None]] = [
    (400, error("this model does not support tools"), "tools"),
    (400, error("registry.ollama.ai/library/gemma:2b does not support tools"), "tools"),
    (404, error("No endpoints found that support tool use."), "tools"),
    (422, error("Extra inputs are not permitted: body.tools"), "tools"),
    (400, error("Unrecognized request argument supplied: tools"), "tools"),
    (400, error('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'), "tools"),
    (501, error("tools are not implemented"), "tools"),
    (500, error("tools param requires --jinja flag"), None),
    (500, error("Internal error while calling a function"), None),
    (503, error("the tool server is not available"), None),
    (400, error("Invalid 'tools[3].function.name': string too long"), None),
    (400, error("An assistant message with 'tool_calls' must be followed by tool messages"), None),
    (400, error("Missing reasoning_content in assistant message with tool calls"), None),
    (400, error("unknown field response_format"), "schema"),
    (400, error("Unknown parameter: 'stream_options'"), "usage"),
    (400, error("image input is not supported - hint: mmproj"), "pictures"),
]


@pytest.mark.parametrize(("status", "body", "lacks"), LACKS, ids=[str(each[1])[20:70] for each in LACKS])
def test_a_feature_is_left_out_only_where_the_endpoint_clearly_rejects_it(
    status: int, body: Json, lacks: Feature | None
) -> None:
    assert refusal("x", "http://x/v1", status, json.dumps(body).encode(), {}).lacks == lacks


TOO_LONG: list[tuple[str, int, Any, int | None]] = [
    (
        "OpenAI",
        400,
        error(
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130012 tokens.",
            code="context_length_exceeded",
        ),
        128000,
    ),
    ("OpenAI Responses", 400, error("Your input exceeds the context window of this model."), None),
    (
        "Anthropic",
        400,
        error("prompt is too long: 205012 tokens > 200000 maximum", type="invalid_request_error"),
        200000,
    ),
    ("Anthropic, too many bytes", 413, error("Request exceeds the maximum size", type="request_too_large"), None),
    (
        "Gemini",
        400,
        [error("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", code=400)],
        1048576,
    ),
    (
        "vLLM",
        400,
        {"object": "error", "message": "The prompt is too long: 9000, max_model_len: 8192", "code": 400},
        8192,
    ),
    (
        "llama.cpp",
        400,
        error("the request exceeds the available context size, try increasing it", type="exceed_context_size_error"),
        None,
    ),
    ("llama.cpp, before", 500, error("context size exceeded: n_ctx = 4096"), 4096),
    ("a proxy", 413, "<html>413 Request Entity Too Large</html>", None),
    ("DeepSeek", 400, error("This model's maximum context length is 65,536 tokens. You requested 70000"), 65536),
    (
        "Mistral",
        400,
        {"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"},
        None,
    ),
    ("OpenRouter", 400, error("This endpoint's maximum context length is 163840 tokens."), 163840),
]


@pytest.mark.parametrize(
    ("status", "body", "tokens"), [each[1:] for each in TOO_LONG], ids=[each[0] for each in TOO_LONG]
)
def test_too_long_in_each_vendors_words(status: int, body: Any, tokens: int | None) -> None:
    data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    found = refusal("x", "http://x/v1", status, data, {})
    assert (found.too_long, found.again, found.window) == (True, False, tokens)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (429, "Rate limit reached: limit 30000 tokens per minute, context length"),
        (400, "max_tokens must be less than 4096"),
        (401, "context"),
        (503, "context deadline exceeded"),
    ],
)
def test_what_is_not_too_long(status: int, message: str) -> None:
    assert not refusal("x", "http://x/v1", status, json.dumps(error(message)).encode(), {}).too_long


@pytest.mark.parametrize(
    ("code", "again"),
    [("rate_limit_exceeded", True), ("", True), ("insufficient_quota", False), ("billing_hard_limit_reached", False)],
)
def test_an_account_without_credit_is_not_asked_again(code: str, again: bool) -> None:
    body = error("You exceeded your current quota, please check your plan.", code=code)
    assert refusal("x", "http://x/v1", 429, json.dumps(body).encode(), {}).again is again


@pytest.mark.parametrize(
    ("problem", "again", "too_long"),
    [
        ("overloaded", True, False),
        ({"message": "Overloaded", "type": "overloaded_error"}, True, False),
        ({"message": "bad key", "code": 401}, False, False),
        ({"message": "maximum context length is 8192", "code": 400}, False, True),
        ({"message": "upstream", "code": 502}, True, False),
        ({"message": "invalid", "type": "invalid_request_error"}, False, False),
    ],
)
def test_an_error_inside_a_stream(problem: Any, again: bool, too_long: bool) -> None:
    found = in_stream("x", problem)
    assert (found.again, found.too_long) == (again, too_long)


@pytest.mark.parametrize(
    ("headers", "words", "seconds"),
    [
        ({}, "", None),
        ({"retry-after": "7"}, "", 7.0),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, "", 1.5),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:30 GMT"}, "", 30.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, "", 0.0),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "-3"}, "", 0.0),
        ({}, "Please try again in 1.2s.", 1.2),
        ({}, "Please try again in 20ms.", 0.02),
        ({}, "Please retry in 34.07s.", 34.07),
        ({}, "Try again in 2 min", 120.0),
    ],
)
def test_how_long_an_endpoint_asks_to_wait(headers: dict[str, str], words: str, seconds: float | None) -> None:
    assert wait_asked(headers, words, now=60.0) == seconds


def test_a_window_is_read_from_words() -> None:
    assert window("nothing about it, 12 tokens") is None


# -- native tools ----------------------------------------------------------------------------------------------

NO_TOOLS: Any = (400, error("this model does not support tools"), {})
FINAL = stream({"content": '{"finalSummary": "Fine.", "done": true}'})


async def test_native_tools_are_left_out_with_a_notice_and_come_back(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reported: one error disabled native tools until a restart, without a word."""
    now = 1000.0
    monkeypatch.setattr("portico.agents.loop.model_call.monotonic", lambda: now)
    async with vendor(desk, NO_TOOLS, FINAL, FINAL, stream({"content": "Back."})) as endpoint:
        turn = await desk.run("Look.")
        assert turn.outcome == "completed", turn.error
        assert "m is asked without native tools for some minutes" in texts(turn, "notice")
        await desk.run("Again.")
        now += limits.AGENT_FACT_SECONDS + 1
        assert texts(await desk.run("Later.")) == "Back."
    assert ["tools" in body for body in endpoint.bodies] == [True, False, False, True]


FAILURES = {
    "500 with tool in its text": (500, error("tool parser crashed"), {}),
    "400 about one call": (400, error("tool_calls must be followed by tool messages"), {}),
    "400 that it does not support tools, after it did": NO_TOOLS,
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
async def test_one_error_does_not_disable_native_tools(desk: Desk, failure: Any) -> None:
    async with vendor(desk, stream(call("listFiles", "{}")), failure, stream({"content": "Yes."})) as endpoint:
        turn = await desk.run("Look.")
        assert (turn.outcome, len(calls(turn))) == ("failed", 1)
        assert texts(await desk.run("Again.")) == "Yes."
    assert all("tools" in body for body in endpoint.bodies)


def test_what_was_learned_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("portico.agents.loop.model_call.monotonic", lambda: now)
    known = Known()
    known.leave_out("tools")
    assert (known.lacks("tools"), known.lacks("schema")) == (True, False)
    now = limits.AGENT_FACT_SECONDS + 1
    assert not known.lacks("tools")
