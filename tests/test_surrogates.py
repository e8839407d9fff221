"""Half of a surrogate pair, as JavaScript leaves it where it cuts a text, costs one character and nothing else.

A line of an agent with one was thrown away (its answer, or the question that its turn waited for); a request of an
editor was never answered; a step of a model failed with a UnicodeEncodeError, and its words came twice.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from portico import mcp
from portico.agents.acp.frames import Frames
from portico.agents.copilot import event
from portico.agents.loop.partial_json import PartialJson
from portico.agents.loop.protocol import read_answer, read_calls, read_text
from portico.agents.loop.reply import NativeCall
from portico.agents.loop.wires.chat_stream import StreamedAnswer
from portico.agents.mcp.http import HttpWire
from portico.agents.mcp.stdio import StdioWire
from portico.doors.ahp.wire import rpc
from portico.doors.portal.callbacks import _indented
from portico.features.board.activity import argument
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json, ToolSpec
from portico.kernel.state import CallPart
from portico.kernel.tool import ToolResult
from portico.server.body import decode_as
from portico.surrogates import decode, encode, repair

HALF = "a\ud83db"
WHOLE = "a\ufffdb"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r'"\ud83d"', "\ufffd"),
        (r'"\uDE00x"', "\ufffdx"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\ud83d\uD83D\uDE00"', "\ufffd😀"),
        (r'"\ude00\ud83d"', "\ufffd\ufffd"),
        (r'"\ud83d\n"', "\ufffd\n"),
        (r'"\\ud83d"', r"\ud83d"),
        (r'"\\\ud83d"', "\\\ufffd"),
        (r'"\ud7ff\ue000"', "\ud7ff\ue000"),
        ('"é😀"', "é😀"),
    ],
)
def test_what_is_read(written: str, read: str) -> None:
    assert msgspec.json.decode(repair(written)) == read
    assert decode(written.encode(), msgspec.json.decode) == read


@given(st.text())
def test_of_any_text_the_characters_stay_and_the_halves_go(text: str) -> None:
    wanted = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert msgspec.json.decode(repair(json.dumps(text))) == msgspec.json.decode(encode(text)) == wanted


@pytest.mark.parametrize("data", [b"", b"{", b'"\\ud8', b'{"a": \\ud83d}', b"\xff", b'"\\'])
def test_what_is_no_json_is_refused_as_before(data: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        decode(data, msgspec.json.decode)


def test_what_has_another_shape_is_not_read_again() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(rb'["\ud83d"]', msgspec.json.Decoder(dict).decode)


# -- every reader of what other programs write -----------------------------------------------------------------------


def written(value: object) -> bytes:
    return json.dumps(value).encode()


async def from_acp() -> object:
    lines = [written({"jsonrpc": "2.0", "id": 1, "result": {"text": HALF}}) + b"\n"]

    class Agent:
        name = "agent"

        async def read(self, limit: int) -> bytes:
            return lines.pop() if lines else b""

    async def hear(params: Json) -> None: ...

    agent: Any = Agent()
    message = await Frames(agent, hear).receive()
    return message and message["result"]["text"]


async def from_an_mcp_server() -> object:
    class Server:
        name = "server"

    server: Any = Server()
    link = StdioWire.__new__(StdioWire)
    heard: list[Json] = []

    class Listening:
        def hear(self, message: Json) -> None:
            heard.append(message)

    listening: Any = Listening()
    link._process, link._listener = server, listening
    link._take(written({"method": "said", "params": {"text": HALF}}))
    return heard and heard[0]["params"]["text"]


async def from_an_mcp_server_over_http() -> object:
    return HttpWire.__new__(HttpWire)._object(written({"text": HALF}))["text"]


async def from_an_agent_that_calls_our_tools() -> object:
    called: list[Json] = []

    class Box:
        def specs(self) -> list[ToolSpec]:
            return [ToolSpec("job_boolean_true", "", {})]

        async def call(self, name: str, arguments: Json) -> ToolResult:
            called.append(arguments)
            return ToolResult(True, "")

    box: Any = Box()
    params = {"name": "job_boolean_true", "arguments": {"argument": HALF}}
    await mcp.answer(written({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}), box)
    return called and called[0]["argument"]


async def from_a_model_that_streams() -> object:
    texts: list[str] = []
    StreamedAnswer("model", lambda text, _: texts.append(text)).take(
        [b"data: " + written({"choices": [{"delta": {"content": HALF}}]})]
    )
    return "".join(texts)


async def from_a_model_that_does_not() -> object:
    body = written({"choices": [{"message": {"content": HALF}, "finish_reason": "stop"}]})
    return StreamedAnswer("model", lambda *_: None).take_whole(body).text


async def from_the_step_of_a_model() -> object:
    return read_text(json.dumps({"actions": [{"tool": "createFile", "content": HALF}]})).actions[0].arguments["content"]


async def from_the_calls_of_a_model() -> object:
    return (
        read_calls([NativeCall("c", "createFile", json.dumps({"content": HALF}))], "").actions[0].arguments["content"]
    )


async def from_a_call_that_a_model_wrote_as_text() -> object:
    step = read_answer(json.dumps({"name": "createFile", "arguments": {"content": HALF}}), ["createFile"])
    return step.actions[0].arguments["content"]


async def from_words_that_a_model_is_writing() -> object:
    return PartialJson().feed(json.dumps({"commentary": HALF}))


async def from_copilot() -> object:
    return msgspec.json.decode(event._json({"command": HALF}))["command"]


async def from_an_editor() -> object:
    return rpc.parse(written({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"text": HALF}})).params["text"]


async def from_the_answer_of_an_editor() -> object:
    return rpc.parse(written({"jsonrpc": "2.0", "id": 1, "result": {"text": HALF}})).result["text"]


async def from_a_call_on_the_board() -> object:
    return argument(CallPart("c", "shell", input=json.dumps({"command": HALF}), ready=True))


async def from_a_call_in_the_portal() -> object:
    return msgspec.json.decode(_indented(json.dumps({"command": HALF})))["command"]


@pytest.mark.parametrize("read", [value for name, value in list(globals().items()) if name.startswith("from_")])
async def test_every_reader_takes_the_rest(read: Callable[[], Awaitable[object]]) -> None:
    assert await read() == WHOLE


class Named(msgspec.Struct):
    name: str


def test_the_body_of_a_request_is_refused_with_the_reason() -> None:
    with pytest.raises(BadRequest, match="half of a surrogate pair") as refused:
        decode_as(written({"name": HALF}), Named)
    assert refused.value.field == "body"
