"""The protocol's published fixtures and schemas, which lie beside the repository and not in it."""

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from portico.doors.ahp.wire.versions import SEED, Dialect
from portico.testing.ahp.reducer import Channel, reduce

AHP = Path(__file__).parents[3].parent / "shared" / "ahp"
NOW = 9999

needs_fixtures = pytest.mark.skipif(not AHP.is_dir(), reason="the AHP fixtures are not beside the repository")


def dialect(version: str = "0.7.0") -> Dialect:
    return Dialect(version=version, clock=lambda: NOW)


V1 = dialect(SEED)


def load(folder: str) -> list[Any]:
    """One pytest parameter per file of a folder; none when the folder is absent."""
    return [pytest.param(json.loads(path.read_text()), id=path.stem) for path in sorted((AHP / folder).glob("*.json"))]


def bare(value: Any) -> Any:
    """Without JSON nulls: to the protocol null and absent are the same."""
    if isinstance(value, dict):
        return {key: bare(entry) for key, entry in value.items() if entry is not None}
    return [bare(entry) for entry in value] if isinstance(value, list) else value


def fold(channel: Channel, state: Any, actions: list[Any], spoken: Dialect) -> Any:
    """The state after all actions, without nulls; a reducer that changes its input fails."""
    for action in actions:
        before = copy.deepcopy((state, action))
        after = reduce(channel, state, action, spoken)
        assert (state, action) == before, "a reducer changed its input"
        state = after
    return bare(state)


def conforms(value: Any, definition: str, file: str = "state", folder: str = "v0.7.0") -> None:
    """Fail unless `value` is what a published schema calls `definition`."""
    schema = json.loads((AHP / folder / "schema" / f"{file}.schema.json").read_text())
    validator = jsonschema.Draft202012Validator({"$defs": schema["$defs"], "$ref": f"#/$defs/{definition}"})
    assert [error.message for error in validator.iter_errors(value)] == []
