"""The document is made from the routes, so it can only be wrong in its form; this is where that is held."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from portico.doors.openapi import document, template
from portico.doors.openapi_page import page
from portico.doors.route import Route
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
