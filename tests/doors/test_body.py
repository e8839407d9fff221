"""Bodies and JSON from strangers: bounded, and every error names its place."""

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from portico import limits
from portico.kernel.errors import KINDS, AgentDied, BadRequest, RateLimited, WrongMethod
from portico.server.body import check_depth, decode_as, error_response


class Inner(Struct, forbid_unknown_fields=True):
    number: int


class Shape(Struct, forbid_unknown_fields=True):
    name: str
    inner: Inner | None = None
    many: list[Inner] = []


class Chosen(Struct):
    mode: Literal["chat", "agent"] | None = None
    busy: Literal["queue", "steer"] = "queue"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"mode": "fast"}', "It is one of 'agent', 'chat'."),
        (b'{"busy": "no"}', "It is one of 'queue', 'steer'."),
    ],
)
def test_a_wrong_word_is_told_the_right_ones(body: bytes, words: str) -> None:
    with pytest.raises(BadRequest) as wrong:
        decode_as(body, Chosen)
    assert wrong.value.message.endswith(words)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{}", "name"),
        (b'{"name": 1}', "name"),
        (b'{"name": "x", "more": 1}', "more"),
        (b'{"name": "x", "inner": {"number": "y"}}', "inner.number"),
        (b'{"name": "x", "inner": {}}', "inner.number"),
        (b'{"name": "x", "many": [{"number": 1}, {"number": null}]}', "many[1].number"),
        (b"", "body"),
        (b"{", "body"),
        (b"nonsense", "body"),
        (b'{"name": "\xff"}', "body"),
        (b"\xff\xfe", "body"),
        (b'{"name": "\\ud800"}', "body"),
        (b"[]", "body"),
    ],
)
def test_a_wrong_body_names_its_field(body: bytes, field: str) -> None:
    with pytest.raises(BadRequest) as error:
        decode_as(body, Shape)
    assert error.value.field == field


def _nested(depth: int) -> bytes:
    return b'{"a":' * (depth // 2) + b"[" * (depth - depth // 2) + b"]" * (depth - depth // 2) + b"}" * (depth // 2)


def test_nesting_ends_at_the_limit() -> None:
    check_depth(_nested(limits.JSON_DEPTH))
    with pytest.raises(BadRequest, match="64 levels"):
        check_depth(_nested(limits.JSON_DEPTH + 1))
    with pytest.raises(BadRequest):
        check_depth(b"[" * (limits.JSON_DEPTH + 1))


def test_brackets_in_texts_are_no_nesting() -> None:
    check_depth(json.dumps(["[" * 1000, '\\"[{' * 1000, "]" * 1000]).encode())
    check_depth(b'"' + b"[" * 1000)  # a text that never ends


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


_leaves = st.none() | st.integers() | st.text('[]{}"\\ab')


@given(
    st.recursive(_leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text('[{"\\'), inner)), st.integers(1, 5)
)
def test_the_depth_is_exact_for_any_document(document: Any, limit: int) -> None:
    data = json.dumps(document).encode()
    if _depth(document) > limit:
        with pytest.raises(BadRequest):
            check_depth(data, limit)
    else:
        check_depth(data, limit)


def test_an_error_becomes_an_answer() -> None:
    slow = error_response(RateLimited("Slow down.", retry_after=2.4))
    assert (slow.status_code, slow.headers["retry-after"]) == (429, "2")
    assert json.loads(bytes(slow.body)) == {"error": "Slow down.", "code": "rate_limited"}
    method = error_response(WrongMethod("PUT", ["GET", "POST"]))
    assert (method.status_code, method.headers["allow"]) == (405, "GET, POST")
    assert error_response(AgentDied("It is gone.")).status_code == KINDS["agent_died"].http
