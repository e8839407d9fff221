"""JSON-RPC over frames: one message per text frame, validated on input and encoded once."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from portico import limits
from portico.doors.ahp.wire.record import Json
from portico.kernel.errors import AlreadyExists, BadRequest, NotFound, PorticoError, kind
from portico.server.body import check_depth
from portico.surrogates import repair

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL = -32603
SESSION_NOT_FOUND = -32001
PROVIDER_NOT_FOUND = -32002
SESSION_EXISTS = -32003
UNSUPPORTED_VERSION = -32005
AUTH_REQUIRED = -32007
NOT_FOUND = -32008

Raw = msgspec.Raw
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


class WireError(PorticoError):
    """An error with a specific JSON-RPC code."""

    code = "bad_request"

    def __init__(self, rpc: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.rpc = rpc
        self.data = data


class Incoming(Struct, gc=False):
    """A request (with `id`), a notification (without), or a reply to a request of ours (without `method`)."""

    method: Annotated[str, Meta(min_length=1)]
    params: Json = {}
    id: int | float | str | None = None
    jsonrpc: Literal["2.0"] = "2.0"
    size: int = 0
    """Size of its frame in bytes."""
    result: Any = None
    error: Json | None = None

    @property
    def is_request(self) -> bool:
        return self.id is not None and bool(self.method)


_incoming = msgspec.json.Decoder(Incoming)


def parse(data: bytes) -> Incoming:
    """Decode a message in one step. The few that fail are replies or invalid, and are checked in detail."""
    try:
        check_depth(data, limits.JSON_DEPTH)
        incoming = _incoming.decode(data)
    except msgspec.ValidationError:
        incoming = _parse_slowly(data)
    except _BROKEN as error:
        if (whole := repair(data)) == data:
            raise WireError(PARSE_ERROR, "Parse error") from error
        return parse(whole)
    incoming.size = len(data)
    return incoming


def _parse_slowly(data: bytes) -> Incoming:
    try:
        message = _decoder.decode(repair(data))
    except _BROKEN as error:
        raise WireError(PARSE_ERROR, "Parse error") from error
    if not isinstance(message, dict):
        raise WireError(INVALID_REQUEST, "One JSON-RPC message per frame, please; batches are not taken.")
    ident = message.get("id")
    if "method" not in message and ("result" in message or "error" in message):
        failed = message.get("error")
        return Incoming("", {}, ident, result=message.get("result"), error=failed if isinstance(failed, dict) else None)
    method, params = message.get("method"), message.get("params")
    if ident is not None and (isinstance(ident, bool) or not isinstance(ident, int | float | str)):
        raise WireError(INVALID_REQUEST, "The id of a request is a number.")
    if not isinstance(method, str) or not method or message.get("jsonrpc", "2.0") != "2.0":
        raise _invalid(ident, "This is not a JSON-RPC 2.0 message.")
    if params is not None and not isinstance(params, dict):
        raise _invalid(ident, "'params' must be an object.", INVALID_PARAMS)
    return Incoming(method, params or {}, ident)


_BROKEN = (msgspec.DecodeError, UnicodeError, RecursionError, BadRequest)


def _invalid(ident: Any, message: str, code: int = INVALID_REQUEST) -> "WireError":
    error = WireError(code, message)
    error.add_note(_encoder.encode(ident).decode())
    return error


def blamed(error: WireError) -> Any:
    """The id of the broken request, where it could be read."""
    notes = getattr(error, "__notes__", [])
    return msgspec.json.decode(notes[0]) if notes else None


def reply(ident: Any, result: Any) -> bytes:
    return _encoder.encode({"jsonrpc": "2.0", "id": ident, "result": result})


def failure(ident: Any, error: PorticoError) -> bytes:
    body: Json = {"code": rpc_code(error), "message": error.message}
    data = error.data if isinstance(error, WireError) else {"field": error.field} if error.field else None
    if data is not None:
        body["data"] = data
    return _encoder.encode({"jsonrpc": "2.0", "id": ident, "error": body})


def notification(method: str, params: Any) -> bytes:
    return _encoder.encode({"jsonrpc": "2.0", "method": method, "params": params})


def request(ident: int, method: str, params: Any) -> bytes:
    return _encoder.encode({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})


def encode(value: Any) -> bytes:
    return _encoder.encode(value)


def rpc_code(error: PorticoError) -> int:
    if isinstance(error, WireError):
        return error.rpc
    if isinstance(error, NotFound):
        return {"session": SESSION_NOT_FOUND, "finished turn": SESSION_NOT_FOUND, "agent": PROVIDER_NOT_FOUND}.get(
            error.what, INVALID_PARAMS if error.what == "model" else NOT_FOUND
        )
    return kind(error).rpc


def exists(error: AlreadyExists) -> WireError:
    return WireError(SESSION_EXISTS, error.message)
