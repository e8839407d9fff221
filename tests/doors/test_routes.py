"""Routes from handlers: what one returns is encoded, and what it says it returns stands in the document."""

from typing import Any, cast

import msgspec
import pytest
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from portico.doors.portal.answer import Endpoints, Refused, api, moment, working_directory
from portico.server.app import App
from portico.server.route import Endpoint, Route
from portico.server.routes import Routes


class Shown(Struct):
    number: int


APP = cast(App, None)


def one(routes: Routes) -> Route:
    (route,) = routes.table
    assert isinstance(route, Route)
    return route


async def answered(route: Route, path: str = "/x") -> tuple[int, str, Any]:
    assert route.endpoint is not None
    request = Request({"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b""})
    response = await route.endpoint(request)
    body = bytes(response.body)
    kind = response.headers["content-type"]
    return response.status_code, kind, msgspec.json.decode(body) if kind == "application/json" else body.decode()


async def test_what_a_handler_returns_is_the_answer() -> None:
    routes = Routes(APP)

    @routes("/x", "read", "Shows it.")
    async def show(request: Request) -> Shown:
        return Shown(7)

    route = one(routes)
    assert (route.path, route.scope, route.methods, route.summary) == ("/x", "read", ("GET",), "Shows it.")
    assert route.doc == {"answer": Shown}
    assert await answered(route) == (200, "application/json", {"number": 7})
    assert await show(cast(Request, None)) == Shown(7), "the handler itself is left as it was"


async def test_the_status_of_the_document_is_the_answers() -> None:
    routes = Routes(APP)

    @routes("/x", "drive", "Makes it.", methods=("POST",), body=Shown, status=201, codes=["conflict"])
    async def make(request: Request) -> Shown:
        return Shown(7)

    route = one(routes)
    assert (await answered(route))[0] == 201
    assert route.doc == {"body": Shown, "status": 201, "codes": ["conflict"], "answer": Shown}


async def test_a_response_of_ones_own_goes_out_as_it_is() -> None:
    routes = Routes(APP)

    @routes("/x", "read", "As text.", media="text/plain")
    async def show(request: Request) -> Response:
        return PlainTextResponse("hi")

    assert one(routes).doc == {"media": "text/plain"}
    assert await answered(one(routes)) == (200, "text/plain; charset=utf-8", "hi")


async def test_routes_stand_in_the_order_of_their_handlers() -> None:
    routes = Routes(APP)
    for path in ("/b", "/a", "/{rest:path}"):

        @routes(path, "read", "")
        async def show(request: Request) -> Shown:
            return Shown(7)

    assert [route.path for route in routes.table] == ["/b", "/a", "/{rest:path}"]


async def test_an_answer_may_be_made_elsewhere() -> None:
    asked: list[Any] = []

    def near(app: App, endpoint: Endpoint) -> Endpoint:
        async def there(request: Request) -> Response:
            asked.append(request.scope["path"])
            return await endpoint(request)

        return there

    routes = Routes(APP)

    @routes("/x", "read", "", near=near, limited=True, max_body=5)
    async def show(request: Request) -> Shown:
        return Shown(7)

    assert (await answered(one(routes)))[2] == {"number": 7}
    assert asked == ["/x"]
    assert (one(routes).limited, one(routes).max_body) == (True, 5)


class Answers(Endpoints):
    @api("old/path", "new/path", scope="read", summary="Two names.", errors=["NotHere"])
    async def find(self, request: Request) -> Shown:
        if request.scope["path"] == "/api/old/path":
            raise Refused("NotHere")
        return Shown(7)

    def helper(self) -> None:
        """No endpoint."""

    @api("either", scope="read", summary="One or the other.")
    async def either(self, request: Request) -> Shown | Refused:
        return Shown(8)


def test_methods_of_the_portal_are_routes_under_all_their_names() -> None:
    table = Answers().table()
    assert [(route.path, route.methods) for route in table] == [
        ("/api/old/path", ("GET", "POST")),
        ("/api/new/path", ("GET", "POST")),
        ("/api/either", ("GET", "POST")),
    ]
    assert (table[0].doc["answer"], table[0].doc["errors"]) == (Shown, ["NotHere"])
    assert table[2].doc["answer"] == (Shown, Refused)


@pytest.mark.parametrize(
    ("number", "path", "status", "body"),
    [
        (0, "/api/old/path", 200, {"error": "NotHere"}),
        (1, "/api/new/path", 200, {"number": 7}),
        (1, "/api/new/path/", 404, {"error": "Unknown API endpoint"}),
    ],
    ids=["an error of ours has status 200", "an answer", "a slash at the end is another path"],
)
async def test_what_the_portal_answers(number: int, path: str, status: int, body: Any) -> None:
    found = await answered(Answers().table()[number], path)
    assert (found[0], found[2]) == (status, body)


@pytest.mark.parametrize(
    ("path", "test", "code"),
    [
        ("relative", False, "WorkingDirectoryNotAbsolutePath"),
        ("", False, "WorkingDirectoryNotAbsolutePath"),
        ("/with\0zero", False, "WorkingDirectoryNotAbsolutePath"),
        (r"C:\work", False, "WorkingDirectoryNotAbsolutePath"),
        (r"C:\work", True, "WorkingDirectoryNotExists"),
        (r"\\share\work", True, "WorkingDirectoryNotExists"),
        ("/nonexistent", False, "WorkingDirectoryNotExists"),
        ("/etc/hostname", False, "WorkingDirectoryNotExists"),
        ("/" + "x" * 5000, False, "WorkingDirectoryNotExists"),
    ],
    ids=[
        "relative",
        "empty",
        "a zero",
        "of Windows",
        "of Windows in a test",
        "a share",
        "not there",
        "a file",
        "too long",
    ],
)
def test_what_cannot_be_a_working_directory(path: str, test: bool, code: str) -> None:
    with pytest.raises(Refused) as refused:
        working_directory(path, test)
    assert refused.value.code == code


def test_a_working_directory_is_whole() -> None:
    assert str(working_directory("/usr/../usr", False)) == "/usr/../usr"


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (1_800_000_000_999, "2027-01-15T08:00:00.999Z"),
    ],
)
def test_a_moment_as_javascript_writes_it(milliseconds: int, text: str) -> None:
    assert moment(milliseconds) == text
