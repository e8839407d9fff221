"""JSON-RPC frames: what is read, what is refused with which code, and whose fault it is said to be."""

from typing import Any

import msgspec
import pytest

from portico.doors.ahp.wire import rpc
from portico.doors.ahp.wire.rpc import WireError
from portico.kernel.errors import BadRequest, Conflict, Forbidden, NotFound, PorticoError


@pytest.mark.parametrize(
    ("frame", "method", "params", "ident", "is_request"),
    [
        ({"jsonrpc": "2.0", "id": 1, "method": "ping"}, "ping", {}, 1, True),
        ({"id": "a", "method": "ping", "params": {"x": 1}}, "ping", {"x": 1}, "a", True),
        ({"id": 0, "method": "ping"}, "ping", {}, 0, True),
        ({"id": 1.5, "method": "ping"}, "ping", {}, 1.5, True),
        ({"method": "said"}, "said", {}, None, False),
        ({"method": "said", "id": None}, "said", {}, None, False),
        ({"method": "said", "params": None}, "said", {}, None, False),
    ],
    ids=[
        "a request",
        "with a text as id",
        "zero is an id",
        "a fraction",
        "a notification",
        "null is no id",
        "no params",
    ],
)
def test_what_a_frame_says(frame: Any, method: str, params: Any, ident: Any, is_request: bool) -> None:
    data = msgspec.json.encode(frame)
    found = rpc.parse(data)
    assert (found.method, found.params, found.id, found.is_request) == (method, params, ident, is_request)
    assert found.size == len(data)


@pytest.mark.parametrize(
    ("frame", "result", "error"),
    [
        ({"id": 7, "result": {"a": 1}}, {"a": 1}, None),
        ({"id": 7, "result": None}, None, None),
        ({"id": 7, "error": {"code": -1, "message": "no"}}, None, {"code": -1, "message": "no"}),
        ({"id": 7, "error": "no"}, None, None),
    ],
    ids=["a result", "null is one", "an error", "an error that is none"],
)
def test_an_answer_to_a_question_of_ours(frame: Any, result: Any, error: Any) -> None:
    found = rpc.parse(msgspec.json.encode(frame))
    assert (found.method, found.id, found.is_request) == ("", 7, False)
    assert (found.result, found.error) == (result, error)


DEEP = b'{"method":"x","params":' + b'{"a":' * 200 + b"1" + b"}" * 201


@pytest.mark.parametrize(
    ("data", "code", "blamed"),
    [
        (b"", rpc.PARSE_ERROR, None),
        (b"{", rpc.PARSE_ERROR, None),
        (b"\xff", rpc.PARSE_ERROR, None),
        (DEEP, rpc.PARSE_ERROR, None),
        (b"[]", rpc.INVALID_REQUEST, None),
        (b'[{"id":1,"method":"a"}]', rpc.INVALID_REQUEST, None),
        (b'"ping"', rpc.INVALID_REQUEST, None),
        (b"{}", rpc.INVALID_REQUEST, None),
        (b'{"id":1}', rpc.INVALID_REQUEST, 1),
        (b'{"id":1,"method":7}', rpc.INVALID_REQUEST, 1),
        (b'{"id":1,"method":""}', rpc.INVALID_REQUEST, 1),  # it was taken for a reply, and never answered
        (b'{"id":1,"method":"","result":null}', rpc.INVALID_REQUEST, 1),
        (b'{"id":1,"method":"a","jsonrpc":"1.0"}', rpc.INVALID_REQUEST, 1),
        (b'{"id":true,"method":"a"}', rpc.INVALID_REQUEST, None),
        (b'{"id":[1],"method":"a"}', rpc.INVALID_REQUEST, None),
        (b'{"id":"x","method":"a","params":[1]}', rpc.INVALID_PARAMS, "x"),
        (b'{"method":"a","params":"b"}', rpc.INVALID_PARAMS, None),
    ],
    ids=lambda each: each[:40].decode("latin-1") if isinstance(each, bytes) else "",
)
def test_a_broken_frame_is_refused_and_named(data: bytes, code: int, blamed: Any) -> None:
    with pytest.raises(WireError) as refused:
        rpc.parse(data)
    assert (refused.value.rpc, rpc.blamed(refused.value)) == (code, blamed)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (NotFound("session", "s"), -32001),
        (NotFound("finished turn", "t"), -32001),
        (NotFound("agent", "a"), -32002),
        (NotFound("model", "m"), -32602),
        (NotFound("resource", "r"), -32008),
        (BadRequest("no"), -32602),
        (Conflict("no"), None),
        (Forbidden("no"), None),
        (WireError(-32011, "no"), -32011),
    ],
    ids=lambda each: f"{type(each).__name__}" if isinstance(each, Exception) else str(each),
)
def test_every_error_has_its_code(error: PorticoError, code: int | None) -> None:
    found = rpc.rpc_code(error)
    assert found == code if code is not None else -32768 <= found < 0


@pytest.mark.parametrize(
    ("error", "body"),
    [
        (BadRequest("no", field="x.y"), {"code": -32602, "message": "no", "data": {"field": "x.y"}}),
        (BadRequest("no"), {"code": -32602, "message": "no"}),
        (
            WireError(-32005, "old", {"supportedVersions": []}),
            {"code": -32005, "message": "old", "data": {"supportedVersions": []}},
        ),
        (WireError(-1, "no"), {"code": -1, "message": "no"}),
    ],
    ids=["a field", "no field", "data of its own", "nothing more"],
)
def test_a_failure_names_the_field(error: PorticoError, body: Any) -> None:
    assert msgspec.json.decode(rpc.failure(3, error)) == {"jsonrpc": "2.0", "id": 3, "error": body}


def test_what_is_written_is_read() -> None:
    asked = rpc.parse(rpc.request(5, "resourceRead", {"uri": "x:/1"}))
    assert (asked.id, asked.method, asked.params, asked.is_request) == (5, "resourceRead", {"uri": "x:/1"}, True)
    told = rpc.parse(rpc.notification("action", {"a": 1}))
    assert (told.method, told.params, told.is_request) == ("action", {"a": 1}, False)
    assert rpc.parse(rpc.reply(5, None)).id == 5
