"""The choice of a sandbox as clients see it, and the memory of folders, as pure functions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from portico.client.acp.options import SessionOptions
from portico.features.sandboxes.events import SandboxChosen
from portico.features.sandboxes.folders import CHOICES, FOLDERS, ChoiceAt, FolderChoices, _with, chosen_in
from portico.features.sandboxes.offer import modes_for, session_property
from portico.features.sandboxes.shapes import SandboxChoice
from portico.kernel.agent import AgentInfo
from portico.kernel.events import Record
from portico.kernel.log.sqlite import SqliteLog
from portico.sandbox.policy import MODES, Mode


def choice(mode: Mode = "off", *, required: bool = False, problem: str = "") -> SandboxChoice:
    modes = modes_for(required=required, works=not problem)
    return SandboxChoice(mode=mode, modes=modes, required=required, problem=problem)


@pytest.mark.parametrize(
    ("required", "works", "modes"),
    [
        (False, True, ["off", "project", "strict"]),
        (True, True, ["project", "strict"]),
        (False, False, ["off"]),
        (True, False, []),
    ],
)
def test_only_what_is_possible_is_offered(required: bool, works: bool, modes: list[str]) -> None:
    found = modes_for(required=required, works=works)
    assert [each.id for each in found] == modes
    assert all(each.name and each.description.endswith(".") for each in found)


@pytest.mark.parametrize(
    ("given", "enum", "default"),
    [
        (choice(), ["off", "project", "strict"], "off"),
        (choice("strict"), ["off", "project", "strict"], "strict"),
        (choice("project", required=True), ["project", "strict"], "project"),
        (choice(problem="bubblewrap is missing."), ["off"], "off"),
        (choice("project", problem="bubblewrap is missing."), ["off"], None),
    ],
)
def test_the_property_of_session_settings(given: SandboxChoice, enum: list[str], default: str | None) -> None:
    found = session_property(given)
    assert (found["enum"], found.get("default")) == (enum, default)
    assert len(found["enumLabels"]) == len(found["enumDescriptions"]) == len(enum)
    assert (given.problem in found["description"], found["sessionMutable"]) == (True, True)


@pytest.mark.parametrize(
    ("config", "sandbox", "current"),
    [
        ({}, choice(), "off"),
        ({}, choice("project"), "project"),
        ({"sandbox": "strict"}, choice("project"), "strict"),
        ({"sandbox": "nonsense"}, choice(), "off"),
    ],
)
def test_the_option_of_acp(config: dict[str, Any], sandbox: SandboxChoice, current: str) -> None:
    options = SessionOptions([AgentInfo("a", "A")], "a", "", config, sandbox)
    found = next(each for each in options.options() if each.id == "sandbox")
    assert (found.name, found.current_value) == ("Sandbox", current)
    assert [options.value("sandbox", mode) for mode in (*MODES, "yes", "")] == [*MODES, None, None]


def test_a_host_without_sandboxes_offers_none() -> None:
    options = SessionOptions([AgentInfo("a", "A")], "a", "", {})
    assert [each.id for each in options.options()] == ["approvals"]
    assert options.value("sandbox", "off") is None


@pytest.mark.parametrize(
    ("worktree", "folder"),
    [
        ({}, "/srv/one"),
        ({"path": "/trees/x", "folder": "/trees/x", "repository": "/repo"}, "/repo"),
        ({"path": "/trees/x", "folder": "/trees/x/sub/part", "repository": "/repo"}, "/repo/sub/part"),
    ],
)
def test_a_worktree_has_the_choice_of_its_repository(worktree: dict[str, str], folder: str) -> None:
    assert chosen_in("/srv/one", worktree) == folder


def test_the_memory_is_bounded() -> None:
    known: dict[str, list[ChoiceAt]] = {}
    for number in range(FOLDERS + 10):
        known = _with(known, SandboxChosen(folder=f"/{number}", mode="project", by="ada"), number)
    for number in range(CHOICES + 10):
        known = _with(known, SandboxChosen(folder="/last", mode="strict", by="ada"), number)
    assert len(known) == FOLDERS
    assert "/0" not in known
    assert [each.time for each in known["/last"]] == list(range(10, CHOICES + 10))


async def test_a_session_has_the_choice_before_its_start(tmp_path: Path) -> None:
    log = await SqliteLog.open(tmp_path / "log")
    folders = FolderChoices(log)

    def apply(records: Sequence[Record]) -> None:
        for each in records:
            folders.apply(each)

    log.on_commit(apply)
    for mode in ("project", "off", ""):
        await folders.choose("/srv/./one/", mode, "ada", 0)
    first, second, last = (each.time for each in folders._choices["/srv/one"])
    assert folders.of("/srv/one", first) is None
    assert folders.latest("/srv/one") is None, "it was forgotten"
    assert folders.latest("/srv/two") is None
    assert first <= second <= last
    read = FolderChoices(log)
    await read.read()
    assert [each.mode for each in read._choices["/srv/one"]] == ["project", "off", ""]
    await log.close()
