import json
import re

import pytest

from portico.doors.ahp.act.action_batch import BATCHED
from portico.doors.ahp.act.handlers import HANDLERS
from portico.doors.ahp.wire.actions import ACTIONS, INTRODUCED_IN, SEED_ACTIONS, dispatchable, knows
from portico.doors.ahp.wire.versions import SEED, SUPPORTED
from portico.testing.ahp.reducer import CHANNELS, SEED_CHANNELS
from tests.doors.ahp.fixtures import AHP, V1, dialect, needs_fixtures

WITHOUT_STATE = {
    "terminal/input",
    "resourceWatch/changed",
    "automation/createRequested",
    "automation/updateRequested",
    "automationRun/cancelRequested",
}


def test_every_action_has_a_reducer_or_a_reason_to_have_none() -> None:
    assert {action for handlers in CHANNELS.values() for action in handlers} == ACTIONS - WITHOUT_STATE
    assert {action for handlers in SEED_CHANNELS.values() for action in handlers} == SEED_ACTIONS - WITHOUT_STATE


def test_a_reducer_lives_on_its_own_channel() -> None:
    for channel, handlers in CHANNELS.items():
        assert all(action.startswith(f"{channel}/") for action in handlers)


def test_0_9_knows_96_actions_of_which_44_are_for_clients() -> None:
    spoken = dialect("0.9.0")
    assert sum(knows(spoken, action) for action in ACTIONS) == 96
    assert len(dispatchable(spoken)) == 44


def published(folder: str) -> set[str]:
    """The action types of a schema; version 1 names them by reference (`ActionType.SessionReady`)."""
    definitions = json.loads((AHP / folder / "schema/actions.schema.json").read_text())["$defs"]
    types = [definition.get("properties", {}).get("type", {}) for definition in definitions.values()]
    references = [re.search(r"ActionType\.(Root|Session|Terminal)(\w+)", each.get("$ref", "")) for each in types]
    named = {f"{match[1].lower()}/{match[2][0].lower()}{match[2][1:]}" for match in references if match}
    return named | {each["const"] for each in types if "/" in str(each.get("const"))}


@needs_fixtures
@pytest.mark.parametrize(("folder", "version"), [("v1-seed", SEED), ("v0.7.0", "0.7.0")])
def test_the_known_actions_are_those_of_the_schema(folder: str, version: str) -> None:
    spoken = dialect(version)
    assert {action for action in ACTIONS | SEED_ACTIONS if knows(spoken, action)} == published(folder)


@pytest.mark.parametrize("version", SUPPORTED)
def test_a_client_may_only_dispatch_what_it_knows(version: str) -> None:
    spoken = dialect(version)
    assert all(knows(spoken, action) for action in dispatchable(spoken))


@pytest.mark.parametrize(
    ("version", "action", "allowed"),
    [
        (SEED, "session/turnStarted", True),
        (SEED, "session/modelChanged", True),
        (SEED, "session/delta", False),
        (SEED, "chat/turnStarted", False),
        ("0.7.0", "chat/turnStarted", True),
        ("0.7.0", "session/turnStarted", False),
        ("0.7.0", "chat/turnComplete", False),
        ("0.7.0", "annotations/set", True),
        ("0.7.0", "session/workingDirectoryReplaced", False),
        ("0.8.0", "session/workingDirectoryReplaced", True),
        ("0.8.0", "chat/turnResume", False),
        ("0.9.0", "chat/turnResume", True),
        ("0.9.0", "automation/set", False),
        ("0.9.0", "session/mcpServerBackgroundRequested", False),
        ("1.0.0", "session/mcpServerBackgroundRequested", True),
        ("1.0.0", "future/unheardOf", False),
    ],
)
def test_who_may_dispatch_what(version: str, action: str, allowed: bool) -> None:
    assert (action in dispatchable(dialect(version))) is allowed


def test_introduced_in_names_supported_versions() -> None:
    assert set(INTRODUCED_IN) == ACTIONS
    assert set(INTRODUCED_IN.values()) <= set(SUPPORTED)
    assert not knows(V1, "future/unheardOf")


def test_everything_a_client_may_say_is_understood() -> None:
    for action in dispatchable(dialect("1.0.0")) | dispatchable(V1):
        channel, _, name = action.partition("/")
        if channel in ("session", "chat"):
            assert action in BATCHED or name in HANDLERS, action
