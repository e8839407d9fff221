"""How endpoints fail and what proxies do to a stream: waits, drops, keepalives, encodings, errors in unusual places."""

import gzip
import json

from bench.difficult.case import HELLO, Asked, Case, Step, always, writes
from bench.difficult.wire import DONE, Answer, calls, chunk, fragment, frame, refuses, says, stream

SSE = {"Content-Type": "text/event-stream"}


def _once(answer: Answer, times: int = 1) -> list[Step]:
    """The endpoint answers so first, then normally."""
    return [*([always(answer)] * times), writes()]


DROPPED_TEXT = Answer([chunk({"content": "I will write"})], drops=True)


def _begins_again(asked: Asked) -> Answer:
    """The text from its beginning, and the call."""
    return calls(fragment(*asked.write()), content="I will write the file.")


def _dropped(asked: Asked) -> Answer:
    name, args = asked.write("half.txt")
    return Answer([chunk({"tool_calls": [fragment(name, args[: len(args) // 2])]})], drops=True)


def _cut_short(asked: Asked) -> Answer:
    name, args = asked.write("half.txt")
    cut = args[: args.rindex(HELLO) + 5]
    return stream(chunk({"tool_calls": [fragment(name, cut)]}), chunk(finish="length"), DONE)


def _keepalives(asked: Asked) -> Answer:
    whole = b"".join(calls(fragment(*asked.write())).body)
    noise = b": keepalive\n\n"
    lines = noise + whole.replace(b"data: ", b"event: message\r\nid: 7\r\ndata:").replace(
        b"\n\n", b"\r\n\r\n: ping\r\n\r\n"
    )
    return Answer([lines])


def _byte_by_byte(asked: Asked) -> Answer:
    name, args = asked.write(content="größer 😀 ok")
    raw = json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [fragment(name, args)]}}]}, ensure_ascii=False)
    whole = b"data: " + raw.encode() + b"\n\n" + chunk(finish="tool_calls") + DONE
    return Answer([whole[at : at + 1] for at in range(len(whole))])


def _split_surrogates(asked: Asked) -> Answer:
    name, args = asked.write(content="ok 😀")
    at = args.index("\\ud83d") + 6
    first, second = fragment(name, args[:at]), fragment(None, args[at:], ident=None)
    return stream(chunk({"tool_calls": [first]}), chunk({"tool_calls": [second]}), chunk(finish="tool_calls"), DONE)


def _empty_choices(asked: Asked) -> Answer:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "prompt_tokens_details": None}
    body = b"".join(calls(fragment(*asked.write())).body).removesuffix(DONE)
    head = frame({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]})
    return stream(head, body, frame({"choices": [], "usage": usage}), DONE)


def _whole(asked: Asked) -> Answer:
    message = {"role": "assistant", "content": None, "tool_calls": [fragment(*asked.write(), index=None)]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "gpt-4.1", "choices": [choice]}
    return Answer([json.dumps(body).encode()], headers={"Content-Type": "application/json"})


def _as(media: str) -> Step:
    def step(asked: Asked) -> Answer:
        return Answer(calls(fragment(*asked.write())).body, headers={"Content-Type": media})

    return step


def _gzip(asked: Asked) -> Answer:
    whole = gzip.compress(b"".join(calls(fragment(*asked.write())).body))
    return Answer([whole], headers={**SSE, "Content-Encoding": "gzip"})


def _moved(asked: Asked) -> Answer:
    if "moved" in asked.path:
        return writes()(asked)
    return Answer([b""], 307, {"Location": "/moved/v1/chat/completions", "Content-Type": "text/plain"})


def _huge_frame(asked: Asked) -> Answer:
    return calls(fragment(*asked.write(content="x" * 1_500_000)))


def _trailing(asked: Asked) -> Answer:
    body = b"".join(calls(fragment(*asked.write())).body).removesuffix(DONE)
    return stream(
        body,
        chunk({"content": ""}),
        frame({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}),
        DONE,
    )


def _bom(asked: Asked) -> Answer:
    return Answer([b"\xef\xbb\xbf", *calls(fragment(*asked.write())).body])


def _no_done(asked: Asked) -> Answer:
    return Answer([b"".join(calls(fragment(*asked.write())).body).removesuffix(DONE)])


def _slow(asked: Asked) -> Answer:
    name, args = asked.write()
    pieces = [fragment(name, ""), *(fragment(None, args[at : at + 20], ident=None) for at in range(0, len(args), 20))]
    return Answer([*(chunk({"tool_calls": [each]}) for each in pieces), chunk(finish="tool_calls"), DONE], gap=0.2)


IN_STREAM = stream(
    chunk({"content": ""}), frame({"error": {"message": "overloaded", "type": "server_error", "code": 503}})
)
TOO_LONG = {
    "openai": (
        400,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        {"code": "context_length_exceeded"},
    ),
    "anthropic": (400, "prompt is too long: 210000 tokens > 200000 maximum", {}),
    "llamacpp": (
        400,
        "the request exceeds the available context size, try increasing it",
        {"type": "exceed_context_size_error"},
    ),
    "413": (413, "Request Entity Too Large", {}),
}


def _too_long(kind: str) -> list[Step]:
    """Some reads fill the conversation; then it is too long once."""
    status, message, error = TOO_LONG[kind]

    def read(asked: Asked) -> Answer:
        name, args = asked.call("read", path="big.txt")
        return calls(fragment(name, json.dumps(args), ident=f"call_{asked.number}"))

    return [read, always(refuses(status, message, None, **error)), writes()]


BIG = {"big.txt": b"".join(b"line %d of a long file with many words in it\n" % number for number in range(600))}
HTML = Answer([b"<html><body><h1>502 Bad Gateway</h1></body></html>"], 502, {"Content-Type": "text/html"})
CASES = [
    Case("retry-after", _once(refuses(429, "Rate limit reached.", {"Retry-After": "1"}))),
    Case("retry-after-ms", _once(refuses(429, "Slow down.", {"retry-after-ms": "300"}))),
    Case("503-twice", _once(refuses(503, "Overloaded."), 2)),
    Case("500-about-tools", _once(refuses(500, "Failed to parse tool call arguments as JSON: jinja template error"))),
    Case("html-502", _once(HTML)),
    Case("error-in-stream", _once(IN_STREAM)),
    Case("empty-body", _once(Answer([b""]))),
    Case("empty-answer", _once(stream(chunk({"role": "assistant", "content": ""}), chunk(finish="stop"), DONE))),
    Case("finish-calls-without-calls", _once(stream(chunk({"content": None}), chunk(finish="tool_calls"), DONE))),
    Case("drop-in-text", [always(DROPPED_TEXT), _begins_again], once="I will write"),
    Case("drop-in-arguments", [_dropped, writes()], absent=["half.txt"]),
    Case("length-in-arguments", [_cut_short, writes()], absent=["half.txt"]),
    *(Case(f"too-long-{kind}", _too_long(kind), BIG) for kind in TOO_LONG),
    Case("keepalives-and-crlf", [_keepalives]),
    Case("byte-by-byte", [_byte_by_byte], made={"out.txt": "größer 😀 ok".encode()}),
    Case("split-surrogates", [_split_surrogates], made={"out.txt": "ok 😀".encode()}),
    Case("empty-choices-and-late-usage", [_empty_choices]),
    Case("whole-json", [_whole]),
    Case("content-type-plain", [_as("text/plain")]),
    Case("content-type-json", [_as("application/json")]),
    Case("gzip", [_gzip]),
    Case("redirect-307", [_moved, _moved]),
    Case("huge-frame", [_huge_frame], made={"out.txt": b"x" * 1_500_000}),
    Case("deltas-after-finish", [_trailing]),
    Case("byte-order-mark", [_bom]),
    Case("no-done", [_no_done]),
    Case("slow-arguments", [_slow]),
    Case("says-only", [always(says("Done."))], made={}),
]
