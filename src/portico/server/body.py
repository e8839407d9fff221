"""Request bodies and JSON: size and depth limits, errors that name the field; and the format of error responses."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico import limits
from portico.kernel.commands import Caller
from portico.kernel.errors import (
    BadRequest,
    LogUnavailable,
    PlaceAway,
    PorticoError,
    RateLimited,
    TooLarge,
    Unauthenticated,
    Unreachable,
    WrongMethod,
    kind,
)
from portico.surrogates import repair

if TYPE_CHECKING:
    from msgspec import inspect

T = TypeVar("T")
_encode = msgspec.json.Encoder().encode
_JSON = (b"content-type", b"application/json")


class EmptyBody(Struct, forbid_unknown_fields=True):
    """For commands that need nothing: an empty body or `{}`."""


class ErrorBody(Struct, omit_defaults=True):
    """What went wrong, in words, and for programs: the code of errors.py, the field that was wrong."""

    error: str
    code: str = ""
    field: str | None = None


class JsonResponse(Response):
    media_type = "application/json"

    def __init__(self, content: Any, status_code: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.status_code, self.background, self.body = status_code, None, _encode(content)
        if headers:
            self.init_headers(headers)
        else:  # the usual case: nothing to merge
            self.raw_headers = [(b"content-length", b"%d" % len(self.body)), _JSON]


def identified_caller(request: Request) -> Caller:
    """Return the caller with the idempotency key of the request, if any: a repeated command is not executed again."""
    found: Caller = request.scope["portico.caller"]
    key = request.headers.get("idempotency-key")
    if key is None:
        return found
    if not key:
        raise BadRequest("An Idempotency-Key is not empty.", field="Idempotency-Key")
    return found.asking(key)


async def read_text(request: Request) -> str:
    try:
        return (await request.body()).decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRequest(f"The body is not UTF-8 (byte {error.start}).", field="body") from None


async def read_as(request: Request, shape: type[T]) -> T:
    """Decode the body as a struct. An empty body counts as an empty object."""
    return decode_as(await request.body() or b"{}", shape)


def decode_as(data: bytes, shape: type[T]) -> T:
    if data.count(b"[") + data.count(b"{") > limits.JSON_DEPTH:
        check_depth(data)
    try:
        return msgspec.json.decode(data, type=shape)
    except msgspec.ValidationError as error:
        field = field_path(str(error))
        words = f"The body is not as expected: {error}{_choices(shape, field, str(error))}"
        raise BadRequest(words, field=field) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if repair(data) != data:
            raise BadRequest("The body has half of a surrogate pair, which is no character.", field="body") from None
        raise BadRequest(f"The body is not JSON: {error}", field="body") from None


_TO_SQUARE = bytes.maketrans(b"{}", b"[]")
_REST = bytes(set(range(256)) - set(b'"[]{}'))


def check_depth(data: bytes, limit: int = limits.JSON_DEPTH) -> None:
    """Limit the nesting before a parser recurses into it. Each round removes the innermost brackets, so brackets that
    remain after `limit` rounds were nested deeper. Only bytes methods implemented in C are used: a body may contain
    millions of brackets, and the check blocks the event loop."""
    brackets = _outside_strings(data)
    for _ in range(limit):
        before, brackets = len(brackets), brackets.replace(b"[]", b"")
        if len(brackets) == before:
            break
    if b"[]" in brackets or brackets.count(b"[") > limit:
        raise BadRequest(f"The JSON is nested deeper than {limit} levels.", field="body")


def _outside_strings(data: bytes) -> bytes:
    """Return the structural brackets, all converted to square ones. Once escapes are removed, every quote starts or
    ends a string, and two adjacent quotes can be dropped."""
    bare = data.replace(rb"\\", b"").replace(rb"\"", b"") if b"\\" in data else data
    bare = bare.translate(_TO_SQUARE, _REST).replace(b'""', b"")
    return b"".join(bare.split(b'"')[::2])


def field_path(message: str) -> str:
    """Return the field that a msgspec error is about. In `... - at `$.a.b`` the field is `a.b`. A missing or unknown
    field is named in the text. Otherwise the field is the body itself."""
    _, found, path = message.rpartition(" - at `$")
    prefix = path.rstrip("`").lstrip(".") if found else ""
    for words in ("missing required field `", "contains unknown field `"):
        if words in message:
            name = message.split(words)[1].split("`")[0]
            return f"{prefix}.{name}" if prefix else name
    return prefix or "body"


def _choices(shape: type, field: str, message: str) -> str:
    """Return the allowed values of a `Literal` field, which the msgspec error does not list."""
    if not message.startswith("Invalid enum value"):
        return ""
    from msgspec import inspect  # late import: only needed for errors

    kinds: tuple[inspect.Type, ...] = (inspect.type_info(shape),)
    for name in re.findall(r"[^.\[\]]+", field):
        kinds = tuple(each for kind in kinds for each in _within(kind, name))
    words = [repr(each) for one in kinds if isinstance(one, inspect.LiteralType) for each in one.values]
    return f". It is one of {', '.join(words)}." if words else ""


def _within(kind: "inspect.Type", name: str) -> "tuple[inspect.Type, ...]":
    """Return the types of a named child: a field, or `...` for an item of a list or a value of a mapping."""
    from msgspec import inspect

    found: inspect.Type | None = None
    match kind:
        case inspect.StructType():
            found = next((each.type for each in kind.fields if each.encode_name == name), None)
        case inspect.ListType():
            found = kind.item_type
        case inspect.DictType():
            found = kind.value_type
    return found.types if isinstance(found, inspect.UnionType) else () if found is None else (found,)


def error_body(error: PorticoError) -> ErrorBody:
    return ErrorBody(error.message, error.code, error.field)


def error_response(error: PorticoError) -> Response:
    headers = {}
    if isinstance(error, WrongMethod):
        headers["Allow"] = ", ".join(error.allowed)
    if isinstance(error, Unauthenticated):
        headers["WWW-Authenticate"] = 'Bearer realm="Portico"'  # browsers show no dialog for this scheme
    if isinstance(error, RateLimited | LogUnavailable | PlaceAway | Unreachable) or error.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(error.retry_after or 1)))
    return JsonResponse(error_body(error), kind(error).http, headers)


def too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body is over the limit of {limit} bytes.", field="body")
