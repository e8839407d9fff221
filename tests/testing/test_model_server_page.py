"""The reference page is true: its examples parse, and no field or route is missing."""

import re
from pathlib import Path

import msgspec
import pytest
import yaml
from starlette.applications import Starlette
from starlette.routing import Route

from portico.testing.model import Error, First, ModelRule, ModelServer, Script, ScriptedCall, ScriptedUsage, Step
from portico.testing.model.script import find

PAGE = (Path(__file__).parents[2] / "docs/reference/model-server.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("example", blocks("json"))
def test_an_example_is_a_script(example: str) -> None:
    assert find(example).steps


@pytest.mark.parametrize("example", blocks("yaml"))
def test_a_file_is_a_script(example: str) -> None:
    assert msgspec.convert(yaml.safe_load(example), Script).rules


@pytest.mark.parametrize("struct", [Step, ScriptedCall, Error, First, ScriptedUsage, ModelRule, Script])
def test_every_field_is_described(struct: type[msgspec.Struct]) -> None:
    for field in msgspec.structs.fields(struct):
        assert re.search(rf"\b{field.encode_name}\b", PAGE), f"{struct.__name__}.{field.encode_name}"


def test_every_route_is_described() -> None:
    app = ModelServer().app
    assert isinstance(app, Starlette)

    for route in app.routes:
        assert isinstance(route, Route)
        assert route.path.partition("{")[0] in PAGE
