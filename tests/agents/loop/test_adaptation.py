"""Endpoints that reject a field, a role or an order of roles: the request is adapted once, a notice reports it, and it
is remembered for minutes. Redirects: the key is sent to no other host. Silence: a slow model gets more time."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from portico import limits
from portico.agents.loop.discovery import Directory
from portico.agents.loop.endpoint import ModelEndpoint, _follows
from portico.agents.loop.model_call import Known, ModelCaller, Way
from portico.agents.loop.refusal import refusal
from portico.agents.loop.reply import Feature, ModelError, Reply
from portico.agents.loop.settings import Current, LoopSettings
from portico.agents.loop.wires import chat
from portico.agents.loop.wires.request import CompletionRequest
from portico.agents.loop.wires.roles import fitted
from portico.kernel.events import Json
from portico.server.settings import AgentSettings
from portico.testing.model import ModelServer
from tests.agents.loop.conftest import Desk, texts
from tests.agents.loop.vendor import SETTINGS, Vendor, call, stream, vendor

WARM = SETTINGS + "temperature = 0.2\n"
OK = stream({"content": "Done."})


def error(message: str, status: int = 400, **more: Any) -> tuple[int, Json, dict[str, str]]:
    return status, {"error": {"message": message, **more}}, {}


def no_temperature(body: Json) -> bool:
    return "temperature" not in body


def no_usage(body: Json) -> bool:
    return "stream_options" not in body


def no_system(body: Json) -> bool:
    first = body["messages"][0]
    return first["role"] == "user" and "Go." in first["content"]


REJECTS: dict[str, tuple[Any, Feature, Callable[[Json], bool], str]] = {
    "OpenAI, temperature": (
        error(
            "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is "
            "supported.",
            code="unsupported_value",
            param="temperature",
        ),
        "temperature",
        no_temperature,
        "left out for some minutes",
    ),
    "Kimi, temperature": (
        error("invalid temperature: only 1 is allowed for this model"),
        "temperature",
        no_temperature,
        "left out",
    ),
    "Anthropic, temperature": (
        error("`temperature` is deprecated for this model."),
        "temperature",
        no_temperature,
        "left out",
    ),
    "a strict gateway, stream_options": (
        (422, {"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}, {}),
        "usage",
        no_usage,
        "not counted",
    ),
    "an old server, stream_options": (
        error("Unrecognized request argument supplied: stream_options"),
        "usage",
        no_usage,
        "not counted",
    ),
    "o1, system": (
        error("Unsupported value: 'messages[0].role' does not support 'system' with this model."),
        "system",
        no_system,
        "in the first message",
    ),
    "Gemma at vLLM": (error("System role not supported"), "system", no_system, "in the first message"),
    "Gemma at llama.cpp": (error("System role not supported", 500), "system", no_system, "in the first message"),
    "Gemma at Google": (
        error("Developer instruction is not enabled for models/gemma-3-27b-it"),
        "system",
        no_system,
        "in the first message",
    ),
}


@pytest.mark.parametrize(("rejects", "lacks", "adapted", "words"), REJECTS.values(), ids=REJECTS)
async def test_a_request_is_adapted_once_reported_and_remembered(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, rejects: Any, lacks: Feature, adapted: Any, words: str
) -> None:
    async with vendor(desk, rejects, OK, OK, settings=WARM) as endpoint:
        turn = await desk.run("Go.")
        assert (turn.outcome, texts(turn), len(endpoint.bodies)) == ("completed", "Done.", 2), turn.error
        assert [adapted(body) for body in endpoint.bodies] == [False, True]
        assert words in texts(turn, "notice")
        turn = await desk.run("Again.")
        assert (turn.outcome, len(endpoint.bodies), texts(turn, "notice")) == ("completed", 3, "")
        assert adapted(endpoint.bodies[2])
        monkeypatch.setattr(limits, "AGENT_FACT_SECONDS", 0)
        await desk.run("Later.")
    assert not adapted(endpoint.bodies[3])


@pytest.mark.parametrize("name", ["OpenAI, temperature", "o1, system", "an old server, stream_options"])
async def test_an_endpoint_that_rejects_the_adapted_request_is_not_asked_again(desk: Desk, name: str) -> None:
    rejects = REJECTS[name][0]
    async with vendor(desk, rejects, rejects, rejects, settings=WARM) as endpoint:
        turn = await desk.run("Go.")
    assert (turn.outcome, len(endpoint.bodies)) == ("failed", 2)


THREE = {"tool_calls": [call("listFiles", "{}", f"c{at}", at)["tool_calls"][0] for at in range(3)]}
ORDERS: dict[str, Any] = {
    "Mistral": error("Unexpected role 'user' after role 'tool'"),
    "Mistral, at the end": error("Expected last role User or Tool (or Assistant with prefix True) but got assistant"),
    "a template at vLLM": error("Conversation roles must alternate user/assistant/user/assistant/..."),
    "a template at llama.cpp": error("After the optional system message, conversation roles must alternate", 500),
}


@pytest.mark.parametrize("rejects", ORDERS.values(), ids=ORDERS)
async def test_roles_alternate_where_an_endpoint_wants_it(desk: Desk, rejects: Any) -> None:
    """A notice for the model follows the results of tools as a message of the user."""
    async with vendor(desk, stream(THREE, finish="tool_calls"), rejects, OK) as endpoint:
        turn = await desk.run("Go.")
    assert (turn.outcome, len(endpoint.bodies)) == ("completed", 3), turn.error
    before, after = (body["messages"] for body in endpoint.bodies[1:])
    assert [each["role"] for each in before][-2:] == ["tool", "user"]
    assert [each["role"] for each in after][-3:] == ["tool", "tool", "tool"]
    assert "<notice>" in after[-1]["content"]
    assert "alternating roles" in texts(turn, "notice")


async def test_a_template_without_a_role_for_tools_gets_calls_as_text(desk: Desk) -> None:
    rejects = error("Conversation roles must alternate user/assistant/user/assistant/...")
    final = stream({"content": '{"finalSummary": "Done.", "done": true}'})
    async with vendor(desk, stream(THREE, finish="tool_calls"), rejects, rejects, final) as endpoint:
        turn = await desk.run("Go.")
    assert (turn.outcome, "tools" in endpoint.bodies[3]) == ("completed", False), turn.error
    assert {each["role"] for each in endpoint.bodies[3]["messages"]} == {"system", "user", "assistant"}


EXTRAS: dict[str, Any] = {
    "Groq": error(
        "for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is "
        "unsupported)]"
    ),
    "Mistral": (
        422,
        {
            "detail": [
                {
                    "type": "extra_forbidden",
                    "loc": ["body", "messages", 2, "assistant", "reasoning_content"],
                    "msg": "Extra inputs are not permitted",
                }
            ]
        },
        {},
    ),
}


@pytest.mark.parametrize("rejects", EXTRAS.values(), ids=EXTRAS)
async def test_fields_of_a_message_that_an_endpoint_rejects_are_left_out(desk: Desk, rejects: Any) -> None:
    thinks = stream({"reasoning_content": "Hm."}, call("listFiles", "{}"), finish="tool_calls")
    async with vendor(desk, thinks, rejects, OK) as endpoint:
        turn = await desk.run("Go.")
    assert (turn.outcome, len(endpoint.bodies)) == ("completed", 3), turn.error
    sent = [next(each for each in body["messages"] if each["role"] == "assistant") for body in endpoint.bodies[1:]]
    assert ["reasoning_content" in each for each in sent] == [True, False]
    assert [each["tool_calls"][0]["function"]["name"] for each in sent] == ["listFiles", "listFiles"]
    assert "fields of other vendors" in texts(turn, "notice")


NOTHING = [
    (400, "Missing reasoning_content in assistant message with tool calls"),
    (400, "The user's system is overloaded"),
    (500, "temperature sensor failed"),
    (503, "the system role service is not available"),
    (429, "Rate limit: max_tokens per minute not supported"),
]


@pytest.mark.parametrize(("status", "words"), NOTHING)
def test_other_errors_change_no_request(status: int, words: str) -> None:
    assert refusal("x", "http://x/v1", status, b'{"error": {"message": "%s"}}' % words.encode(), {}).lacks is None


MOST = [
    ("max_tokens: 32000 > 4096, which is the maximum allowed number of output tokens for m", 4096),
    ("max_tokens is too large: 100000. This model supports at most 2048 completion tokens", 2048),
    ("Invalid max_tokens value, the valid range of max_tokens is [1, 1024]", 1024),
]


@pytest.mark.parametrize(("words", "most"), MOST)
async def test_an_answer_is_as_long_as_the_model_allows(desk: Desk, words: str, most: int) -> None:
    settings = SETTINGS + 'wire = "messages"\n'
    events = (
        b'event: message_start\ndata: {"type": "message_start", "message": {"usage": {"input_tokens": 1}}}\n\n'
        b'data: {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}\n\n'
        b'data: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Done."}}\n\n'
        b'data: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}\n\n'
        b'data: {"type": "message_stop"}\n\n'
    )
    async with vendor(desk, error(words), events, settings=settings) as endpoint:
        turn = await desk.run("Go.")
    assert turn.outcome == "completed", turn.error
    assert endpoint.bodies[0]["max_tokens"] > most == endpoint.bodies[1]["max_tokens"]
    assert f"at most {most} tokens" in texts(turn, "notice")


def test_the_limit_of_an_answer_under_its_newer_name() -> None:
    words = (
        b'{"error": {"message": "Unsupported parameter: \'max_tokens\' is not supported with this model. '
        b"Use 'max_completion_tokens' instead.\"}}"
    )
    lacks = refusal("x", "http://x/v1", 400, words, {}).lacks
    assert lacks == "max_tokens"
    body = chat.body(CompletionRequest("m", [{"role": "user", "content": "x"}], max_tokens=5, lacks=[lacks]))
    assert (body.get("max_completion_tokens"), body.get("max_tokens")) == (5, None)


def user(text: Any) -> Json:
    return {"role": "user", "content": text}


def said(text: Any, **more: Any) -> Json:
    return {"role": "assistant", "content": text, **more}


SYSTEM = {"role": "system", "content": "S"}
PARTS = [{"type": "image_url", "image_url": {"url": "data:x"}}]
FITTED: dict[str, tuple[list[Json], list[Feature], list[Json]]] = {
    "system before a text": ([SYSTEM, user("a")], ["system"], [user("S\n\na")]),
    "system before a picture": (
        [SYSTEM, user(PARTS)],
        ["system"],
        [user([{"type": "text", "text": "S"}, *PARTS])],
    ),
    "system before an answer": ([SYSTEM, said("a")], ["system"], [user("S"), said("a")]),
    "an answer first": (
        [SYSTEM, said("a")],
        ["alternation"],
        [SYSTEM, user("(the conversation continues)"), said("a")],
    ),
    "two answers": ([user("a"), said("b"), said("c")], ["alternation"], [user("a"), said("b\n\nc")]),
    "an answer without content": ([user("a"), said(None), said("c")], ["alternation"], [user("a"), said("c")]),
    "calls after an answer": (
        [user("a"), said("b"), said(None, tool_calls=[{"id": "x"}])],
        ["alternation"],
        [user("a"), said("b", tool_calls=[{"id": "x"}])],
    ),
    "nothing to do": ([SYSTEM, user("a"), said("b")], ["alternation", "extras"], [SYSTEM, user("a"), said("b")]),
    "fields of a call": (
        [said(None, tool_calls=[{"id": "x", "type": "function", "function": {}, "extra_content": {"g": 1}}])],
        ["extras"],
        [said(None, tool_calls=[{"id": "x", "type": "function", "function": {}}])],
    ),
    "parts of an answer": ([said([{"type": "thinking"}, {"type": "text", "text": "a"}])], ["extras"], [said("a")]),
}


@pytest.mark.parametrize(("messages", "lacks", "sent"), FITTED.values(), ids=FITTED)
def test_messages_for_endpoints_that_accept_less(messages: list[Json], lacks: list[Feature], sent: list[Json]) -> None:
    assert fitted(messages, lacks) == sent


# -- redirects -------------------------------------------------------------------------------------------------


class Redirects:
    """Answers every request with a redirect, except below `/new`."""

    def __init__(self, status: int, target: str) -> None:
        self.status = status
        self.target = target
        self.seen: list[tuple[str, str, str | None]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        self.seen.append((request.method, request.url.path, request.headers.get("authorization")))
        answer: Response = RedirectResponse(self.target + request.url.path.removeprefix("/v1"), self.status)
        if request.url.path.startswith("/new"):
            models = request.url.path.endswith("/models")
            answer = JSONResponse({"data": [{"id": "m"}]}) if models else Response(OK, media_type="text/event-stream")
        await answer(scope, receive, send)


STATUSES = [301, 302, 303, 307, 308]


def served(app: Any) -> ModelServer:
    server = ModelServer()
    server.app = app
    return server


@pytest.mark.parametrize("status", STATUSES)
async def test_a_redirect_on_the_same_host_is_followed_with_the_request(desk: Desk, status: int) -> None:
    app = Redirects(status, "/new/v1")
    async with served(app) as server:
        endpoint = ModelEndpoint("x", f"{server.url}/v1", "key")
        assert await endpoint.models() == ["m"]
        reply = await asked(endpoint)
        await endpoint.close()
    assert reply.text == "Done."
    assert app.seen[-1] == ("POST", "/new/v1/chat/completions", "Bearer key")


@pytest.mark.parametrize("status", STATUSES)
async def test_a_redirect_to_another_host_is_named_and_gets_no_key(desk: Desk, status: int) -> None:
    other = Vendor([OK])
    async with served(other) as away:
        port = away.url.rpartition(":")[2]
        app = Redirects(status, f"http://user:pass@localhost:{port}/v1")
        async with served(app) as server:
            endpoint = ModelEndpoint("x", f"{server.url}/v1", "key")
            for asking in (endpoint.models(), asked(endpoint)):
                with pytest.raises(ModelError) as caught:
                    await asking
                assert f"redirects to http://localhost:{port}/v1." in caught.value.message
                assert "pass" not in caught.value.message
                assert not caught.value.again
            await endpoint.close()
    assert other.paths == []


async def test_redirects_without_an_end_are_an_error(desk: Desk) -> None:
    app = Redirects(308, "/v1/more")
    async with served(app) as server:
        endpoint = ModelEndpoint("x", f"{server.url}/v1", "key")
        with pytest.raises(ModelError, match="redirects more than 4 times"):
            await asked(endpoint)
        await endpoint.close()
    assert len(app.seen) == 4


@pytest.mark.parametrize(
    ("source", "target", "follows"),
    [
        ("http://a/v1", "https://a/v1", True),
        ("https://a/v1", "https://a/v2", True),
        ("https://a/v1", "http://a/v1", False),
        ("https://a/v1", "https://b/v1", False),
        ("http://a/v1", "https://b/v1", False),
        ("https://a/v1", "https://a:8443/v1", False),
        ("http://a/v1", "https://a.evil.test/v1", False),
        ("http://a:80/v1", "http://a/v1", True),
        ("https://a/v1", "file:///etc/passwd", False),
    ],
)
def test_where_a_request_may_be_made_again(source: str, target: str, follows: bool) -> None:
    assert _follows(httpx.URL(source), httpx.URL(target)) is follows


# -- silence ---------------------------------------------------------------------------------------------------


async def ready() -> None:
    return


async def asked(endpoint: ModelEndpoint, timeout_factor: int = 1) -> Reply:
    return await endpoint.ask(
        CompletionRequest("m", [user("a")]), lambda text, thought: None, ready, timeout_factor=timeout_factor
    )


class Slow:
    """An endpoint that is silent until it gets enough time."""

    url = "http://slow/v1"

    def __init__(self, needs: int) -> None:
        self.needs = needs
        self.timeout_factor: list[int] = []
        self.codec = ModelEndpoint("x", self.url).codec
        self.wire, self.schema_first, self.max_tokens = "chat", False, None

    async def ask(self, *arguments: Any) -> Reply:
        self.timeout_factor.append(arguments[-1])
        if self.timeout_factor[-1] < self.needs:
            raise ModelError("x: no byte for a while.", again=True, silent=True)
        return Reply("Done.", [], "stop")


@pytest.mark.parametrize(("needs", "tried", "answers"), [(1, [1], True), (4, [1, 4], True), (99, [1, 4, 16], False)])
async def test_a_slow_model_gets_more_time_with_each_attempt(needs: int, tried: list[int], answers: bool) -> None:
    slow = Slow(needs)
    waits: list[str] = []
    slept: list[float] = []

    class OneEndpoint(Directory):
        def __init__(self) -> None:
            pass

        async def find(self, model: str, current: Current) -> Any:
            return slow

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    current = Current(AgentSettings(), ["m"], LoopSettings())
    caller = ModelCaller(OneEndpoint(), current, ["m"], {}, print, sleep, waits.append)

    def build(way: Way) -> CompletionRequest:
        return CompletionRequest(way.model, [user("a")])

    asking = caller.ask(build, lambda text, thought: None, ready)
    if answers:
        assert (await asking).text == "Done."
    else:
        with pytest.raises(Exception, match="No model answered"):
            await asking
    assert slow.timeout_factor == tried
    assert [f"up to {120 * each} seconds" in words for each, words in zip(tried[1:], waits, strict=True)] == [
        True for _ in tried[1:]
    ]


@pytest.mark.parametrize("timeout_factor", [1, 4])
async def test_the_timeout_of_a_request_grows(timeout_factor: int) -> None:
    seen: list[float] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.extensions["timeout"]["read"])
        return httpx.Response(200, content=OK, headers={"content-type": "text/event-stream"})

    endpoint = ModelEndpoint("x", "http://127.0.0.1:1/v1", timeout=30)
    endpoint._http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    assert (await asked(endpoint, timeout_factor)).text == "Done."
    assert seen == [30 * timeout_factor]
    await endpoint.close()


@pytest.mark.parametrize(
    ("wanted", "most", "asked"),
    [(None, None, None), (400, None, 400), (None, 2048, 2048), (400, 2048, 400), (4096, 1024, 1024)],
)
def test_the_length_of_an_answer_is_limited_by_the_setting_and_the_model(
    wanted: int | None, most: int | None, asked: int | None
) -> None:
    """Without a limit that an error has named, none was sent: the toy model went on for minutes."""
    known = Known()
    known.most = most
    endpoint = cast(ModelEndpoint, SimpleNamespace(max_tokens=wanted))
    assert Way("m", endpoint, "schema", known).max_tokens == asked
