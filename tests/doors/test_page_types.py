"""The types of the pages are those of the host, and the writer turns every form of a schema into TypeScript."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tools import page_types

from portico.doors.openapi import document
from tests.doors.standing import Standing, standing


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Standing]:
    async with standing(tmp_path) as here:
        yield here


async def test_the_file_is_current(here: Standing) -> None:
    """`python -m tools.page_types` writes it anew."""
    assert page_types.TARGET.read_text() == page_types.source(document(here.server.gate.table))


REFERENCE = {"$ref": "#/components/schemas/portico.jobs.entry.Model"}


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "string"}, "string"),
        ({"type": "integer"}, "number"),
        ({"type": "boolean"}, "boolean"),
        ({}, "unknown"),
        ({"enum": ["a", "b"]}, '"a" | "b"'),
        ({"const": "work.started"}, '"work.started"'),
        ({"type": "array", "items": {"type": "string"}}, "string[]"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        (
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
            "[string, number]",
        ),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "Record<string, number>"),
        ({"type": "object"}, "Record<string, unknown>"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "number | null"),
        (REFERENCE, "PorticoJobsEntryModel"),
    ],
)
def test_types(schema: dict[str, Any], written: str) -> None:
    shape = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    found = page_types.source(_document(shape))
    assert f"export interface Shape {{\n  value: {written};\n}}" in found


def test_a_default_of_null_is_never_sent() -> None:
    value = {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    shape = {"type": "object", "properties": {"ended": value, "a-b": {"type": "string", "default": ""}}}
    assert "  ended?: number;\n  'a-b'?: string;\n" in page_types.source(_document(shape))


def test_routes_have_the_body_they_take_and_the_answer_they_give() -> None:
    assert '"POST /shapes/{id}": { body: Shape; answer: undefined };' in page_types.source(
        _document({"type": "object"})
    )


def test_only_what_the_pages_can_reach_is_written() -> None:
    found = _document({"type": "object"})
    found["components"]["schemas"]["Elsewhere"] = {"type": "object", "properties": {}}
    assert "Elsewhere" not in page_types.source(found)


def _document(shape: dict[str, Any]) -> dict[str, Any]:
    content = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Shape"}}}}
    operation = {"requestBody": content, "responses": {"204": {}, "400": content}}
    return {
        "paths": {"/v1/shapes/{id}": {"post": operation}, "/api/x": {}},
        "components": {"schemas": {"Shape": shape}},
    }
