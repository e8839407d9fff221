"""What the client sends for a command, and what it makes of an answer: without a host."""

import json
from typing import Any

import httpx
import pytest

from portico.client import Client
from portico.client.client import RemoteError, segment, shaped
from portico.kernel import commands as c
from portico.kernel.errors import Unreachable
from portico.kernel.events import Json
from portico.kernel.state import Summary

SUMMARY: Json = {"id": "session-1", "agent": "a", "model": "m", "cwd": "/", "title": "T", "status": "idle"}
SUMMARY |= {"created": 0, "modified": 0, "pos": 1}


class Sent:
    """The requests of one client, each answered alike."""

    def __init__(self, answer: httpx.Response | Exception) -> None:
        self.requests: list[httpx.Request] = []
        self._answer = answer

    def client(self) -> Client:
        client = Client("http://host.example", "secret")
        client._http = httpx.AsyncClient(
            transport=httpx.MockTransport(self._take), base_url=client.url, headers=client._http.headers
        )
        return client

    def _take(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


CALLS: dict[str, tuple[str, list[Any], dict[str, Any], str, str, Any]] = {
    "a path": ("fork_session", ["session-1"], {}, "POST", "/v1/sessions/session-1/fork", None),
    "a body": (
        "rename_session",
        ["session-1", "New"],
        {},
        "POST",
        "/v1/commands",
        {"command": "session.rename", "arguments": {"session": "session-1", "title": "New"}},
    ),
    "by name": (
        "rename_session",
        [],
        {"session": "session-1", "title": "New"},
        "POST",
        "/v1/commands",
        {"command": "session.rename", "arguments": {"session": "session-1", "title": "New"}},
    ),
    "no body": ("delete_session", ["session-1"], {}, "DELETE", "/v1/sessions/session-1", None),
    "a name that leads elsewhere": ("delete_session", ["../x/y"], {}, "DELETE", "/v1/sessions/%2E%2E%2Fx%2Fy", None),
}


@pytest.mark.parametrize(("method", "args", "fields", "verb", "path", "body"), CALLS.values(), ids=CALLS)
async def test_what_is_sent_for_a_command(
    method: str, args: list[Any], fields: dict[str, Any], verb: str, path: str, body: Any
) -> None:
    kind = next(each for each in c.COMMANDS.values() if method in (each.method, _snake(each.__name__)))
    if kind.http is not None and path == "/v1/commands":
        path, body = _own_route(kind, body)
    sent = Sent(httpx.Response(200, json=SUMMARY | {"kept": ""}))
    async with sent.client() as client:
        await getattr(client, method)(*args, **fields)
    (request,) = sent.requests
    assert request.url.raw_path.decode() == path
    assert request.headers["authorization"] == "Bearer secret"
    assert (json.loads(request.content) if request.content else None) == body
    if kind.http is None:
        assert request.method == "POST"
    else:
        assert request.method == kind.http.method


def _snake(name: str) -> str:
    return "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name).lstrip("_")


def _own_route(kind: type[c.Command], body: Any) -> tuple[str, Any]:
    """A command that has a route of its own goes there, without what the path says."""
    assert kind.http is not None
    said = dict(body["arguments"])
    return kind.http.path.replace("{id}", said.pop(kind.about)), said or None


async def test_the_id_of_a_request_is_sent_so_that_it_is_done_once() -> None:
    sent = Sent(httpx.Response(200, json=SUMMARY))
    async with sent.client() as client:
        await client.rename_session("session-1", "New", request="r-1")
        await client.rename_session("session-1", "New")
    assert [each.headers.get("idempotency-key") for each in sent.requests] == ["r-1", None]


@pytest.mark.parametrize(
    ("args", "fields"),
    [([], {}), (["s", "t", "more"], {}), (["s"], {"titel": "x"}), (["s", "t"], {"session": "s"})],
    ids=["too few", "too many", "an unknown one", "one twice"],
)
async def test_wrong_arguments_are_refused_before_anything_is_sent(args: list[Any], fields: dict[str, Any]) -> None:
    sent = Sent(httpx.Response(200, json=SUMMARY))
    async with sent.client() as client:
        rename: Any = client.rename_session
        with pytest.raises(TypeError):
            await rename(*args, **fields)
    assert sent.requests == []


@pytest.mark.parametrize(
    ("status", "body", "code", "message"),
    [
        (404, {"error": "There is no session.", "code": "not_found"}, "not_found", "There is no session."),
        (409, {"error": "Busy.", "code": "turn_in_progress", "field": "x"}, "turn_in_progress", "Busy."),
        (418, {"error": "Tea.", "code": "teapot"}, "internal", "Tea."),
        (500, "not json", "internal", "The host answered 500."),
        (502, ["list"], "internal", "The host answered 502."),
    ],
    ids=["known", "with a field", "an unknown code", "no JSON", "no object"],
)
async def test_an_error_of_the_host(status: int, body: Any, code: str, message: str) -> None:
    answer = httpx.Response(status, text=body) if isinstance(body, str) else httpx.Response(status, json=body)
    async with Sent(answer).client() as client:
        with pytest.raises(RemoteError) as refused:
            await client.about()
    assert (refused.value.code, refused.value.message, refused.value.status) == (code, message, status)
    assert refused.value.field == (body.get("field") if isinstance(body, dict) else None)


@pytest.mark.parametrize(
    "error", [httpx.ConnectError("refused"), httpx.ReadTimeout(""), httpx.RemoteProtocolError("x")]
)
async def test_a_host_that_does_not_answer(error: Exception) -> None:
    async with Sent(error).client() as client:
        with pytest.raises(Unreachable, match="does not answer"):
            await client.about()


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("session-1", "session-1"),
        ("a/b", "a%2Fb"),
        ("..", "%2E%2E"),
        ("a b", "a%20b"),
        ("ä", "%C3%A4"),
        ("a?b#c", "a%3Fb%23c"),
        ("%2F", "%252F"),
    ],
)
def test_a_name_is_one_part_of_a_path(name: str, part: str) -> None:
    assert segment(name) == part


@pytest.mark.parametrize(
    ("kind", "content", "answer"),
    [
        (c.SendMessage, b'{"turn": "t1"}', c.TurnBegun("t1")),
        (c.DeleteSession, b"", c.Deleted("")),
        (c.DeleteSession, b'{"kept": "the worktree"}', c.Deleted("the worktree")),
    ],
    ids=["one of several shapes", "nothing", "something"],
)
def test_an_answer_has_the_shape_that_its_command_names(kind: type[c.Command], content: bytes, answer: Any) -> None:
    assert shaped(kind, content) == answer


def test_a_session_is_answered_as_its_summary() -> None:
    found = shaped(c.RenameSession, json.dumps(SUMMARY).encode())
    assert isinstance(found, Summary)
    assert found.title == "T"
