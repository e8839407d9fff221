"""Bad input, from the tables themselves: every field of every command with a value of another kind, left out, or
misspelt; every route of the OpenAPI document with ids of nothing, rubbish as its body and as each of its parameters.
The answer names the field and says what is wanted; nothing is a 500, and nothing happens."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from portico.kernel import commands as c
from tests.doors.standing import Standing, standing
from tests.doors.test_scopes import arguments, request

WRONG: tuple[Any, ...] = (["a", 7], {"no": "such"}, 3.5, "text", True, None)
"""Values of every kind: at least one of them does not fit any field."""


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Standing]:
    async with standing(tmp_path) as here:
        yield here


def fields(kind: type[c.Command]) -> list[msgspec.structs.FieldInfo]:
    return [field for field in msgspec.structs.fields(kind) if field.name not in kind.private]


def fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def misfits() -> Iterator[tuple[str, str, Any]]:
    for name, kind in c.COMMANDS.items():
        for field in fields(kind):
            for value in WRONG:
                if not fits(value, field.type):
                    yield name, field.name, value


def required() -> Iterator[tuple[str, str]]:
    for name, kind in c.COMMANDS.items():
        for field in fields(kind):
            if field.required:
                yield name, field.name


async def test_a_value_of_another_kind_is_named_with_its_field(here: Standing) -> None:
    tried = 0
    for name, field, value in misfits():
        said = {**arguments(c.COMMANDS[name]), field: value}
        answer = await here.http.post("/v1/commands", json={"command": name, "arguments": said})
        body = answer.json()
        assert (answer.status_code, body["code"]) == (400, "bad_request"), (name, field, value, body)
        assert body["field"].startswith(f"arguments.{field}"), (name, field, value, body)
        tried += 1
    assert tried > 4 * len(c.COMMANDS)


async def test_what_is_left_out_is_named(here: Standing) -> None:
    for name, field in required():
        said = arguments(c.COMMANDS[name])
        said.pop(field, None)
        answer = await here.http.post("/v1/commands", json={"command": name, "arguments": said})
        assert (answer.status_code, answer.json()["field"]) == (400, f"arguments.{field}"), (name, answer.text)


async def test_a_misspelt_field_is_not_passed_over(here: Standing) -> None:
    """A `modle` that is ignored runs on the dearest model."""
    for name, kind in c.COMMANDS.items():
        said = {**arguments(kind), "nosuchfield": 1}
        answer = await here.http.post("/v1/commands", json={"command": name, "arguments": said})
        assert (answer.status_code, answer.json()["field"]) == (400, "arguments.nosuchfield"), (name, answer.text)


async def test_the_routes_of_commands_take_no_rubbish(here: Standing) -> None:
    before = here.server.host.log.seq
    for name, kind in c.COMMANDS.items():
        if kind.http is None:
            continue
        method, path, _ = request(kind)
        for content in (b"[]", b'"x"', b"{", b"\xff\xfe", b"null", b"{}{}", b"[" * 2000):
            answer = await here.http.request(
                method, path, content=content, headers={"Content-Type": "application/json"}
            )
            # What is not there is told before what else is wrong; some take no body at all.
            assert answer.status_code < 500, (name, content[:10], answer.text)
            if answer.status_code >= 400:
                assert set(answer.json()) >= {"error", "code"}, (name, answer.text)
    assert here.server.host.log.seq == before


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method in ("get", "post", "put", "patch", "delete"):
                yield method.upper(), path, operation


def quiet(path: str, operation: dict[str, Any]) -> bool:
    """Streams do not end, and a stop would."""
    streams = any(
        "event-stream" in kind for answer in operation["responses"].values() for kind in answer.get("content", {})
    )
    return path.startswith("/v1/") and not streams and not path.endswith("/stop")


async def test_an_id_of_nothing_is_not_found_at_every_route(here: Standing) -> None:
    document = (await here.http.get("/openapi.json")).json()
    tried = 0
    for method, path, operation in operations(document):
        if "{" not in path or not quiet(path, operation) or method != "GET":
            continue
        filled = path.replace("{", "nosuch-").replace("}", "")
        answer = await here.http.request(method, filled)
        assert answer.status_code in (400, 404), (path, answer.text)
        assert "nosuch-" in answer.json()["error"], (path, answer.text)
        tried += 1
    assert tried >= 10


async def test_numbers_in_the_query_are_numbers(here: Standing) -> None:
    document = (await here.http.get("/openapi.json")).json()
    session = await here.start()
    tried = 0
    for method, path, operation in operations(document):
        if method != "GET" or not quiet(path, operation):
            continue
        for parameter in operation.get("parameters", ()):
            if parameter["in"] != "query" or parameter["schema"].get("type") != "integer":
                continue
            filled = path.replace("{id}", session)
            rest = {"q": "hello"} if any(each["name"] == "q" for each in operation["parameters"]) else {}
            if (await here.http.get(filled, params=rest)).status_code == 404:
                continue  # not about sessions
            for value in ("many", "-1", "1e9", "9" * 30, "0x10", ""):
                answer = await here.http.get(filled, params={**rest, parameter["name"]: value})
                assert answer.status_code == 400, (path, parameter["name"], value, answer.text)
                assert answer.json()["field"] == parameter["name"], (path, answer.text)
                tried += 1
    assert tried >= 6


async def test_a_misspelt_parameter_is_not_passed_over(here: Standing) -> None:
    """With an `arhived` that is ignored a script deletes what it should have left alone."""
    document = (await here.http.get("/openapi.json")).json()
    before, tried = here.server.host.log.seq, 0
    for method, path, _ in operations(document):
        if not path.startswith("/v1"):
            continue
        filled = path.replace("{", "nosuch-").replace("}", "")
        for text in ("nosuch=1", "nosuch", "nosuch=", "after=0&nosuch=1", "key=x&nosuch=%ff"):
            answer = await here.http.request(method, f"{filled}?{text}")
            assert answer.status_code == 400, (method, path, text, answer.text)
            assert answer.json()["field"] in ("nosuch", "after"), (method, path, text, answer.text)
            tried += 1
    assert tried > 300
    assert here.server.host.log.seq == before


async def test_the_doors_of_the_seeds_pass_over_it_as_they_always_did(here: Standing) -> None:
    for path in ("/api/test", "/sessions", "/healthz"):
        assert (await here.http.get(f"{path}?nosuch=1")).status_code == 200


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "POST", "GET"])
async def test_a_method_that_a_route_does_not_have(here: Standing, method: str) -> None:
    document = (await here.http.get("/openapi.json")).json()
    for path, item in document["paths"].items():
        if method.lower() in item or not path.startswith("/v1/"):
            continue
        filled = path.replace("{", "nosuch-").replace("}", "")
        answer = await here.http.request(method, filled)
        assert answer.status_code in (404, 405), (method, path, answer.status_code)


async def test_what_was_refused_left_nothing_behind(here: Standing, tmp_path: Path) -> None:
    sessions = (await here.http.get("/v1/sessions")).json()
    for name in ("session.start", "job.start", "automation.add", "terminal.open"):
        answer = await here.http.post(
            "/v1/commands", json={"command": name, "arguments": {"cwd": str(tmp_path / "no")}}
        )
        assert answer.status_code >= 400, answer.text
    assert (await here.http.get("/v1/sessions")).json() == sessions
