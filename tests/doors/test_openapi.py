"""The document is made from the routes, so it can only be wrong in its form; this is where that is held."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from portico.doors.openapi import document, template
from portico.doors.openapi_examples import EXAMPLES
from portico.doors.openapi_page import page
from portico.doors.openapi_schema import public_names, tidy
from portico.server.route import Route
from tests.doors.standing import Standing, standing


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Standing]:
    async with standing(tmp_path) as here:
        yield here


def operations(found: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, each) for path, methods in found["paths"].items() for method, each in methods.items()]


async def test_every_route_and_error_is_in_the_document(here: Standing) -> None:
    table = here.server.gate.table
    found = document(table)
    for route in table:
        if isinstance(route, Route):
            for method in route.methods:
                operation = found["paths"][template(route.path)][method.lower()]
                assert operation["x-scope"] == route.scope
                assert operation["summary"], f"{route.path} has no summary"
                for code in route.doc.get("errors", []):
                    assert code in operation["description"]


async def test_the_form(here: Standing) -> None:
    found = document(here.server.gate.table)
    assert found["openapi"] == "3.1.0"
    names = [operation["operationId"] for _, _, operation in operations(found)]
    assert len(names) == len(set(names))
    for path, _, operation in operations(found):
        declared = [each["name"] for each in operation["parameters"] if each["in"] == "path"]
        assert declared == re.findall(r"\{(\w+)\}", path)
    references = re.findall(r"#/components/(\w+)/([\w.]+)", str(found))
    assert all(name in found["components"][kind] for kind, name in references)


async def test_every_route_says_what_it_answers_with(here: Standing) -> None:
    """Only the pages' catch-all and the like have no shape: they name their content type or a bare status instead."""
    for path, method, operation in operations(document(here.server.gate.table)):
        good = [answer for status, answer in operation["responses"].items() if status < "400"]
        assert good or path == "/api/{rest}", f"{method} {path} says nothing about its answer"
        for answer in good:
            for media, content in answer.get("content", {}).items():
                assert content["schema"], f"{method} {path} has an answer of {media} without a shape"
        assert "default" not in operation["responses"]


async def test_the_page_names_every_path_and_runs_nothing(here: Standing) -> None:
    table = here.server.gate.table
    text = page(document(table))
    assert all(template(route.path) in text for route in table if isinstance(route, Route))
    assert "<script" not in text
    assert {route.path for route in here.server.doors["openapi"].routes} == {"/openapi.json", "/openapi"}


def everywhere(schema: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every object of a document with its place."""
    if isinstance(schema, list):
        return [found for at, each in enumerate(schema) for found in everywhere(each, f"{path}/{at}")]
    if not isinstance(schema, dict):
        return []
    return [(path, schema), *(found for key, each in schema.items() for found in everywhere(each, f"{path}/{key}"))]


async def test_generators_understand_the_schemas(here: Standing) -> None:
    """Three generators failed on 0.2: at `items: false`, at a default outside its enum, and at names with dots."""
    found = document(here.server.gate.table)
    schemas = found["components"]["schemas"]
    for path, schema in everywhere(found):
        assert schema.get("items") is not False, path
        fields = schema.get("properties")
        if schema.get("type") == "object" and not isinstance(fields, dict):
            assert "additionalProperties" in schema, path
    for name, schema in schemas.items():
        assert name.isidentifier(), name
        assert schema["title"] == name
        for field, each in schema.get("properties", {}).items():
            assert "default" not in each, f"{name}.{field}"
            assert field != name.lower(), name
    assert found["servers"] == [{"url": "/", "description": "This host."}]


async def test_a_body_is_required_where_a_field_of_it_is(here: Standing) -> None:
    found = document(here.server.gate.table)
    bodies = {each["operationId"]: each["requestBody"] for _, _, each in operations(found) if "requestBody" in each}
    needed = {name: body["required"] for name, body in bodies.items()}
    assert needed["post_v1_sessions_by_id_messages"] is True
    assert (needed["post_v1_sessions"], needed["post_v1_sessions_by_id_cancel"]) == (False, False)


async def test_the_examples_are_valid(here: Standing) -> None:
    found = document(here.server.gate.table)
    known = {each["operationId"]: each for _, _, each in operations(found)}
    for name, example in EXAMPLES.items():
        content = known[name]["requestBody"]["content"]["application/json"]
        assert content["examples"] == {"example": {"value": example}}
        Draft202012Validator({**content["schema"], "components": found["components"]}).validate(example)


async def test_the_document_names_the_address_of_the_host(tmp_path: Path) -> None:
    for flag, value in (("server.public_url", "https://portico.example/base/"), ("server.root_path", "/base")):
        async with standing(tmp_path / flag, flags={flag: value}) as other:
            [server] = (await other.http.get("/openapi.json")).json()["servers"]
            assert server["url"] == value.rstrip("/")


@pytest.mark.parametrize(
    ("schemas", "names"),
    [
        ({"Model": {}}, ["Model"]),
        ({"portico.kernel.agent.Model": {}, "portico.features.jobs.entry.Model": {}}, ["AgentModel", "EntryModel"]),
        ({"portico.a.agent.Model": {}, "AgentModel": {}}, ["AAgentModelShape", "AgentModel"]),
        ({"portico.a.one.X": {}, "portico.b.one.X": {}}, ["OneX", "BOneXShape"]),
        ({"Agents": {"properties": {"agents": {}}}}, ["AgentsAnswer"]),
        ({"portico.a.big_thing.X": {}}, ["BigThingX"]),
    ],
)
def test_public_names(schemas: dict[str, Any], names: list[str]) -> None:
    assert [*public_names(schemas).values()] == names


@pytest.mark.parametrize(
    ("schema", "tidied"),
    [
        ({"type": "object"}, {"type": "object", "additionalProperties": True}),
        ({"type": "object", "additionalProperties": False}, {"type": "object", "additionalProperties": False}),
        ({"type": "array", "prefixItems": [{}], "items": False}, {"type": "array", "prefixItems": [{}]}),
        ({"$ref": "#/components/schemas/a.B"}, {"$ref": "#/components/schemas/Public"}),
        ({"enum": ["a"], "default": "a"}, {"enum": ["a"], "default": "a"}),
        (
            {"properties": {"default": {"default": True}, "items": {"default": ""}}},
            {
                "properties": {
                    "default": {"x-default": True, "description": "Default: `true`."},
                    "items": {"x-default": ""},
                }
            },
        ),
        (
            {"properties": {"n": {"default": 3, "description": "How many."}}},
            {"properties": {"n": {"x-default": 3, "description": "How many. Default: `3`."}}},
        ),
    ],
)
def test_a_tidy_schema(schema: dict[str, Any], tidied: dict[str, Any]) -> None:
    assert tidy(schema, {"a.B": "Public"}) == tidied
