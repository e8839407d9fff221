"""What holds for every route of /v1, found by walking the table of a built server."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from portico import limits
from portico.server.route import Route
from tests.doors.standing import Standing, problem

REFERENCE = Path(__file__).parents[3] / "docs/reference"


def _routes(here: Standing) -> list[tuple[str, Route]]:
    table = [route for route in here.server.gate.table if isinstance(route, Route) and route.path.startswith("/v1")]
    return [(method, route) for route in table for method in route.methods]


_OF_SOMETHING_THERE = ("/approvals", "/questions", "/terminals/", "/automations/", "/runs/", "/hosts/")
"""Routes of what no session is; what is not there is told first."""


def _with_body(here: Standing, ident: str) -> list[tuple[str, str]]:
    """Every route that reads a body, with the ids of something that exists."""
    bodiless = {"/v1/sessions/{id}/queue/release", "/v1/sessions/{id}/queue/{pending}/steer"}
    found = []
    for method, route in _routes(here):
        waiting = any(each in route.path for each in _OF_SOMETHING_THERE)
        if method in ("POST", "PATCH") and route.path not in bodiless and not waiting:
            found.append((method, route.path.replace("{id}", ident).replace("{pending}", "p1")))
    return found


CREATES = {("PUT", "/v1/secrets/{name}")}
"""An unknown name is a new one."""


async def test_an_unknown_id_is_not_found_on_every_route(shared: Standing) -> None:
    tried = 0
    for method, route in _routes(shared):
        if "{" in route.path and (method, route.path) not in CREATES:
            path = re.sub(r"\{[^}]*\}", "nosuch-1", route.path)
            answer = await shared.http.request(method, path, json={} if method in ("POST", "PATCH") else None)
            message = problem(answer, 404, "not_found")
            assert "'nosuch-1'" in message
            tried += 1
    assert tried > 15


def test_every_route_needs_the_scope_that_its_page_says(shared: Standing) -> None:
    pages = [(REFERENCE / name).read_text() for name in ("rest.md", "portal.md", "automation.md")]
    said = {row for page in pages for row in re.findall(r"^\| `([A-Z]+) (/v1\S*)` \| (\w+) \|", page, re.MULTILINE)}
    assert said == {(method, route.path, route.scope) for method, route in _routes(shared)}


async def test_a_wrong_body_is_refused_on_every_route_that_reads_one(shared: Standing) -> None:
    ident = await shared.start()
    routes = _with_body(shared, ident)
    assert len(routes) > 8
    for method, path in routes:
        for body in (b"{", b"nonsense", b"\xff\xfe"):
            problem(await shared.http.request(method, path, content=body), 400, "bad_request", "body")
        message = problem(await shared.http.request(method, path, json={"nosuch": 1}), 400, "bad_request", "nosuch")
        assert "nosuch" in message
        assert (await shared.http.request(method, path, json=[])).status_code == 400
        deep = b'{"config":' * (limits.JSON_DEPTH + 1) + b"1" + b"}" * (limits.JSON_DEPTH + 1)
        assert "nested" in problem(await shared.http.request(method, path, content=deep), 400, "bad_request", "body")


async def test_an_oversized_body_is_refused_on_every_route_that_reads_one(
    shared: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "BODY_BYTES", 1000)

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b" " * 100

    ident = await shared.start()
    for method, path in _with_body(shared, ident):
        if path == "/v1/sessions/import":  # has a limit of its own, ARCHIVE_BYTES
            continue
        problem(await shared.http.request(method, path, content=b" " * 1001), 413, "too_large", "body")
        problem(await shared.http.request(method, path, content=pieces()), 413, "too_large", "body")


async def test_a_wrong_method_is_refused_on_every_route(shared: Standing) -> None:
    for route in {route.path for _, route in _routes(shared)}:
        answer = await shared.http.request("PROPFIND", route.replace("{", "").replace("}", ""))
        problem(answer, 405, "wrong_method", "method")


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /v1/\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/%ff%fe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1?after=\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"NONSENSE\r\n\r\n",
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ],
)
async def test_a_broken_request_does_not_break_the_host(shared: Standing, raw: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", shared.server.port)
    writer.write(raw)
    writer.write_eof()
    async with asyncio.timeout(30):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answer == b"" or re.match(rb"HTTP/1\.[01] 4\d\d ", answer), answer
    assert b"Traceback" not in answer
    assert (await shared.http.get("/v1")).status_code == 200


async def test_a_client_that_leaves_in_the_middle_is_no_matter(shared: Standing) -> None:
    with pytest.raises(httpx.ReadTimeout):
        await shared.http.get("/v1/events", headers={"Accept": "text/event-stream"}, timeout=0.2)
    assert (await shared.http.get("/v1")).status_code == 200
