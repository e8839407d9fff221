"""One answer of a model as it streams in: whole in the end, or an error that says what to do."""

import json
from typing import Any

import msgspec
import pytest

from portico.agents.loop import reply as module
from portico.agents.loop.reply import CALLS_MAX, ModelError, NativeCall, Reply, TokensSpent, error_words
from portico.agents.loop.wires.chat_stream import StreamedAnswer


class Heard:
    def __init__(self) -> None:
        self.text, self.thought = "", ""
        self.answer = StreamedAnswer("the model", self._report)

    def _report(self, text: str, thought: str) -> None:
        self.text += text
        self.thought += thought

    def take(self, *frames: Any) -> bool:
        return self.answer.take([b"data: " + json.dumps(each).encode() for each in frames])


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"delta": fields, "finish_reason": finish}]}


def call(index: int = 0, **fields: Any) -> dict[str, Any]:
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    return delta(tool_calls=[{"index": index, "function": function, **fields}])


def neutral(reply: Reply) -> Reply:
    """Without the message as it came: test_messages.py is about that; reasoning is compared as it was reported."""
    return msgspec.structs.replace(reply, message=None, thought="")


REPLIES: dict[str, tuple[list[Any], Reply, str]] = {
    "a text": ([delta(content="Hel"), delta("stop", content="lo")], Reply("Hello", [], "stop"), ""),
    "thoughts": ([delta(reasoning_content="hm"), delta("stop", content="Hi")], Reply("Hi", [], "stop"), "hm"),
    "thoughts under another name": ([delta(reasoning="hm"), delta("stop")], Reply("", [], "stop"), "hm"),
    "a refusal": ([delta("stop", refusal="No.")], Reply("No.", [], "stop"), ""),
    "cut off": ([delta("length", content="Hel")], Reply("Hel", [], "length"), ""),
    "a call in pieces": (
        [call(id="c1", name="read"), call(arguments='{"a"'), call(arguments=": 1}"), delta("tool_calls")],
        Reply("", [NativeCall("c1", "read", '{"a": 1}')], "tool_calls"),
        "",
    ),
    "a call without an id": (
        [call(2, name="read", arguments="{}"), delta("tool_calls")],
        Reply("", [NativeCall("call_2", "read", "{}")], "tool_calls"),
        "",
    ),
    "a name that comes later": (
        [call(id="c1"), call(name="read"), call(name="other"), delta("stop")],
        Reply("", [NativeCall("c1", "read", "")], "stop"),
        "",
    ),
    "two calls at once": (
        [call(1, id="b", name="y"), call(0, id="a", name="x"), delta("stop")],
        Reply("", [NativeCall("a", "x", ""), NativeCall("b", "y", "")], "stop"),
        "",
    ),
    "only the first choice": (
        [{"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}, {"delta": {"content": "b"}}]}],
        Reply("a", [], "stop"),
        "",
    ),
    "nothing in a frame": ([{}, delta("stop", content="a")], Reply("a", [], "stop"), ""),
}


@pytest.mark.parametrize(("frames", "reply", "thought"), REPLIES.values(), ids=REPLIES)
@pytest.mark.parametrize("together", [True, False])
def test_an_answer_is_the_sum_of_its_frames(frames: list[Any], reply: Reply, thought: str, together: bool) -> None:
    heard = Heard()
    for chunk in [frames] if together else [[each] for each in frames]:
        assert not heard.take(*chunk)
    assert neutral(heard.answer.reply()) == reply
    assert (heard.text, heard.thought) == (reply.text, thought)


@pytest.mark.parametrize(
    ("usage", "spent"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 7}, TokensSpent(5, 7)),
        ({"prompt_tokens": 5, "prompt_tokens_details": {"cached_tokens": 3}}, TokensSpent(5, 0, 3)),
        ({"completion_tokens": 7, "cost": 0.5}, TokensSpent(0, 7, 0, 0.5)),
        ({"prompt_tokens": None, "prompt_tokens_details": None}, TokensSpent()),
    ],
)
def test_what_it_cost(usage: dict[str, Any], spent: TokensSpent) -> None:
    heard = Heard()
    heard.take(delta("stop", content="a"), {"choices": [], "usage": usage})
    assert heard.answer.reply().usage == spent


def test_the_end_of_a_stream_is_its_end() -> None:
    heard = Heard()
    assert heard.answer.take(
        [b": comment", b"event: x", b'data: {"choices": [{"delta": {"content": "a"}}]}', b"", b"data: [DONE]"]
    )
    assert neutral(heard.answer.reply()) == Reply("a", [], "")


def test_a_stream_that_breaks_off_may_be_asked_for_again() -> None:
    heard = Heard()
    heard.take(delta(content="Hel"))
    with pytest.raises(ModelError, match="ended before the answer did") as broken:
        heard.answer.reply()
    assert broken.value.again


@pytest.mark.parametrize(
    ("line", "words", "again"),
    [
        (b"data: no", "sent a frame that is not JSON", True),
        (b"data: \xff", "sent a frame that is not JSON", True),
        (b"data: []", "sent a frame that is not JSON", True),
        (b'data: {"error": {"message": "overloaded"}}', "failed in mid-stream: overloaded", True),
        (b'data: {"error": "overloaded"}', "failed in mid-stream: overloaded", True),
    ],
)
def test_a_frame_that_is_none(line: bytes, words: str, again: bool) -> None:
    heard = Heard()
    with pytest.raises(ModelError, match=words) as broken:
        heard.answer.take([b'data: {"choices": [{"delta": {"content": "a"}}]}', line])
    assert broken.value.again is again
    assert heard.text == "a"  # what was said before is heard


def test_an_answer_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ANSWER_MAX", 10)
    Heard().take(delta(content="x" * 10))
    for more in (delta(content="x"), delta(reasoning="x"), call(arguments="x")):
        heard = Heard()
        heard.take(delta(content="x" * 10))
        with pytest.raises(ModelError, match="does not stop"):
            heard.take(more)


def test_calls_have_a_bound() -> None:
    heard = Heard()
    heard.take(*(call(index, name="x") for index in range(CALLS_MAX)))
    heard.take(call(0, arguments="{}"))
    with pytest.raises(ModelError, match=f"more than {CALLS_MAX} tools"):
        heard.take(call(CALLS_MAX, name="x"))


def test_a_server_that_does_not_stream_is_heard_as_one_frame() -> None:
    heard = Heard()
    message = {
        "content": "Hi",
        "reasoning": "hm",
        "tool_calls": [
            {"id": "a", "function": {"name": "x", "arguments": "{}"}},
            {"id": "b", "function": {"name": "y"}},
        ],
    }
    body = {"choices": [{"message": message, "finish_reason": None}], "usage": {"prompt_tokens": 1}}
    reply = neutral(heard.answer.take_whole(json.dumps(body).encode()))
    assert reply == Reply("Hi", [NativeCall("a", "x", "{}"), NativeCall("b", "y", "")], "stop", TokensSpent(1))
    assert (heard.text, heard.thought) == ("Hi", "hm")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"no", "not JSON"),
        (b"[" * 5000, "not JSON"),
        (b'{"error": {"message": "busy"}}', "busy"),
        (b"{}", "ended before"),
    ],
)
def test_a_whole_answer_that_is_none(body: bytes, words: str) -> None:
    with pytest.raises(ModelError, match=words) as broken:
        Heard().answer.take_whole(body)
    assert broken.value.again


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("busy", "busy"),
        ({"message": "busy"}, "busy"),
        ({"code": 7}, "{'code': 7}"),
        (None, "None"),
        ("x" * 900, "x" * 300),
    ],
)
def test_an_endpoints_own_words(error: Any, words: str) -> None:
    assert error_words(error) == words


SPREAD = [b'data: {"choices": [{"delta":', b'data: {"content": "Hello"},', b'data: "finish_reason": "stop"}]}', b""]


@pytest.mark.parametrize("chunks", [[SPREAD], [[each] for each in SPREAD], [[each + b"\r" for each in SPREAD]]])
def test_an_event_over_several_lines_is_one_event(chunks: list[list[bytes]]) -> None:
    heard = Heard()
    for lines in chunks:
        heard.answer.take(lines)
    assert (neutral(heard.answer.reply()), heard.text) == (Reply("Hello", [], "stop"), "Hello")


@pytest.mark.parametrize("lines", [SPREAD[:1], SPREAD[:2], [b"data: {nothing"], [b"data: }"]])
def test_an_event_that_is_not_complete_is_an_error(lines: list[bytes]) -> None:
    with pytest.raises(ModelError, match="not JSON"):
        Heard().answer.take([*lines, b""])


@pytest.mark.parametrize(
    ("code", "message", "again", "too_long"),
    [(500, "the engine died", True, False), (400, "maximum context length is 8192 tokens", False, True)],
)
def test_an_error_without_an_object_around_it(code: int, message: str, again: bool, too_long: bool) -> None:
    """vLLM sends it so in a stream; its text was lost in "ended before the answer did"."""
    heard = Heard()
    with pytest.raises(ModelError, match=message) as raised:
        heard.take(delta(content="Hel"), {"object": "error", "message": message, "type": "X", "code": code})
    assert (raised.value.again, raised.value.too_long, heard.text) == (again, too_long, "Hel")
