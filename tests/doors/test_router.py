"""Which route a request reaches: by its path, its method and the order in which doors were added."""

from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from portico.kernel.errors import NotFound, WrongMethod
from portico.server.route import Route, Socket
from portico.server.router import Router


async def answer(request: Request) -> Response:
    return Response()


async def talk(socket: WebSocket) -> None:
    await socket.accept()


ROUTES = (
    Route("/", answer, "open"),
    Route("/v1/sessions", answer, "read"),
    Route("/v1/sessions", answer, "drive", ("POST",)),
    Route("/v1/sessions/import", answer, "admin", ("POST",)),
    Route("/v1/sessions/{id}", answer, "read"),
    Route("/v1/sessions/{id}", answer, "drive", ("PATCH",)),
    Route("/v1/sessions/{id}/events", answer, "read", stream=True),
    Route("/v1/terminals/{id}", answer, "terminal"),
    Socket("/v1/terminals/{id}", talk, "terminal"),
    Route("/v1/turns/{number:int}", answer, "read"),
    Route("/sessions/{id:path}", answer, "read"),
    Route("/api/{rest:path}", answer, "read", ("GET", "POST")),
    Route("/{rest:path}", answer, "open"),
)


def router(*routes: Route | Socket) -> Router:
    made = Router()
    for route in routes or ROUTES:
        made.add(route)
    return made


def request(path: str, method: str = "GET") -> dict[str, Any]:
    return {"type": "http", "path": path, "method": method}


@pytest.mark.parametrize(
    ("method", "path", "route", "params"),
    [
        ("GET", "/", "/", {}),
        ("GET", "/v1/sessions", "/v1/sessions", {}),
        ("POST", "/v1/sessions", "/v1/sessions", {}),
        ("HEAD", "/v1/sessions", "/v1/sessions", {}),
        ("POST", "/v1/sessions/import", "/v1/sessions/import", {}),
        ("GET", "/v1/sessions/import", "/v1/sessions/{id}", {"id": "import"}),
        ("GET", "/v1/sessions/session-1", "/v1/sessions/{id}", {"id": "session-1"}),
        ("PATCH", "/v1/sessions/session-1", "/v1/sessions/{id}", {"id": "session-1"}),
        ("GET", "/v1/sessions/session-1/events", "/v1/sessions/{id}/events", {"id": "session-1"}),
        ("GET", "/v1/turns/12", "/v1/turns/{number:int}", {"number": 12}),
        ("GET", "/sessions/a/b/c", "/sessions/{id:path}", {"id": "a/b/c"}),
        ("GET", "/sessions/", "/sessions/{id:path}", {"id": ""}),
        ("POST", "/api/copilot/anything/", "/api/{rest:path}", {"rest": "copilot/anything/"}),
        ("GET", "/assets/app.js", "/{rest:path}", {"rest": "assets/app.js"}),
        ("GET", "/v2/sessions", "/{rest:path}", {"rest": "v2/sessions"}),
        ("GET", "/v1/sessions/a/b/c", "/{rest:path}", {"rest": "v1/sessions/a/b/c"}),
        ("GET", "/v1/turns/twelve", "/{rest:path}", {"rest": "v1/turns/twelve"}),
        ("GET", "/{rest:path}", "/{rest:path}", {"rest": "{rest:path}"}),
    ],
)
def test_a_path_reaches_its_route(method: str, path: str, route: str, params: dict[str, object]) -> None:
    found, scope = router(), request(path, method)
    for _ in range(2):  # the second time from memory
        entry = found.find(scope)
        assert (entry.route.path, scope["path_params"]) == (route, params)
        assert method in entry.methods


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/sessions", ["GET", "POST"]),
        ("PUT", "/v1/sessions/session-1", ["GET", "PATCH"]),
        ("POST", "/v1/sessions/session-1/events", ["GET"]),
        ("POST", "/v1/terminals/t1", ["GET"]),
        ("DELETE", "/api/copilot", ["GET", "POST"]),
    ],
)
def test_another_method_is_refused_with_those_that_there_are(method: str, path: str, allowed: list[str]) -> None:
    with pytest.raises(WrongMethod) as refused:
        router().find(request(path, method))
    assert refused.value.allowed == allowed


@pytest.mark.parametrize("path", ["/v2/sessions", "/favicon.ico", "/v1/sessions/a/b/c"])
def test_the_catch_all_says_nothing_about_other_methods(path: str) -> None:
    """It matches every path: that a page cannot be posted to does not mean that there is one."""
    with pytest.raises(NotFound):
        router().find(request(path, "POST"))


def test_without_a_catch_all_an_unknown_path_is_not_there() -> None:
    with pytest.raises(NotFound, match="/nowhere"):
        router(Route("/v1", answer, "read")).find(request("/nowhere"))


@pytest.mark.parametrize(
    ("kind", "path", "reached"),
    [
        ("http", "/v1/terminals/t1", False),
        ("websocket", "/v1/terminals/t1", True),
    ],
)
def test_a_socket_and_a_page_may_share_a_path(kind: str, path: str, reached: bool) -> None:
    entry = router().find({"type": kind, "path": path, "method": "GET"})
    assert entry.socket is reached
    assert entry.held is reached


@pytest.mark.parametrize("path", ["/v1/sessions", "/", "/anything"])
def test_there_is_no_socket_where_there_are_only_pages(path: str) -> None:
    with pytest.raises(NotFound):
        router().find({"type": "websocket", "path": path})


def test_an_answer_that_lasts_is_held_so_that_revoking_ends_it() -> None:
    found = router()
    assert found.find(request("/v1/sessions/s1/events")).held
    assert not found.find(request("/v1/sessions/s1")).held


def test_the_first_of_two_routes_counts() -> None:
    first, second = Route("/a/{x}", answer, "read"), Route("/a/b", answer, "admin")
    assert router(first, second).find(request("/a/b")).route is first
    assert router(second, first).find(request("/a/b")).route is second


def test_what_was_remembered_gives_way_to_a_new_route() -> None:
    """A plugin's door may come after the first requests."""
    found = router(Route("/{rest:path}", answer, "open"))
    assert found.find(request("/a/b")).route.path == "/{rest:path}"
    found.add(Route("/a/b", answer, "read"))
    assert found.find(request("/a/b")).route.path == "/a/b"


@pytest.mark.parametrize(
    ("route", "taken"),
    [
        (Route("/v1/sessions", answer, "read"), "/v1/sessions"),
        (Route("/v1/sessions", answer, "read", ("DELETE",)), None),
        (Route("/v1/sessions/mine", answer, "read"), "/v1/sessions/{id}"),
        (Route("/v1/sessions/{name}", answer, "read"), "/v1/sessions/{id}"),
        (Route("/v1/sessions/{id}/notes", answer, "read"), None),
        (Route("/api/mine", answer, "read", ("POST",)), "/api/{rest:path}"),
        (Route("/mine", answer, "read"), None),
        (Socket("/v1/terminals/{id}", talk, "read"), "/v1/terminals/{id}"),
        (Socket("/v1/sessions/{id}", talk, "read"), None),
    ],
    ids=lambda each: f"{type(each).__name__} {each.path}" if isinstance(each, Route | Socket) else "",
)
def test_a_plugin_cannot_take_a_path_that_is_served(route: Route | Socket, taken: str | None) -> None:
    assert router().taken(route) == taken
