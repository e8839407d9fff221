"""What an ACP agent asks permission for, as one action: the command with everything that changes it, or the files."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from portico.agents.acp.action import permission_action, terminal_action
from portico.agents.acp.update import Track
from portico.agents.agent import Call
from portico.agents.terminal_commands import TerminalCommands
from portico.kernel.action import Action
from portico.workspace.jail import Jail

CWD = "/srv/app"


def asked(kind: str = "other", input: Any = None, **fields: Any) -> Action:
    """Of a call that the agent calls `kind`, with the input and whatever else it tells."""
    call = cast(Call, SimpleNamespace(ready=lambda *_, **__: None, output=lambda _: None, content=lambda _: None))
    track = Track(
        call, kind, cast(TerminalCommands, SimpleNamespace(show=lambda _: None)), own=fields.pop("own", False)
    )
    track.take({"rawInput": input, "kind": kind, **fields})
    return permission_action(track, CWD)


def ran(line: str = "", *argv: str, cwd: str = CWD, env: tuple[tuple[str, str], ...] = (), unclear: str = "") -> Action:
    return Action("shell", line or None, argv, env, cwd, unclear=unclear)


COMMANDS = {
    "a line": ({"command": "make all"}, ran("make all")),
    "under another name": ({"cmd": "make"}, ran("make")),
    "words": ({"command": ["make", "all"]}, ran("", "make", "all")),
    "a program and its arguments": ({"command": "make", "args": ["all", 7]}, ran("", "make", "all", "7")),
    "arguments under another name": ({"command": "make", "argv": ["all"]}, ran("", "make", "all")),
    "no arguments": ({"command": "make", "args": []}, ran("make")),
    "a folder": ({"command": "make", "cwd": "sub"}, ran("make", cwd=f"{CWD}/sub")),
    "a folder from the root": ({"command": "make", "workdir": "/etc"}, ran("make", cwd="/etc")),
    "a folder above": ({"command": "make", "workingDirectory": ".."}, ran("make", cwd="/srv")),
    "an environment": ({"command": "make", "env": {"A": 1}}, ran("make", env=(("A", "1"),))),
    "an environment as a list": (
        {"command": "make", "environment": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]},
        ran("make", env=(("A", "1"), ("B", "2"))),
    ),
    "an environment that is a text": ({"command": "make", "env": "A=1"}, ran("make", env=(("env", "A=1"),))),
    "words for people": ({"command": "make", "description": "build", "timeout_ms": 5}, ran("make")),
    "an empty field": ({"command": "make", "stdin": "", "more": None, "on": False}, ran("make")),
    "an unknown field": ({"command": "make", "stdin": "y"}, ran("make", unclear="fields that are not known: stdin")),
    "two commands": ({"command": "make", "cmd": "rm"}, ran("make", unclear="fields that are not known: cmd")),
    "two folders": (
        {"command": "make", "cwd": "a", "workdir": "b"},
        ran("make", cwd=f"{CWD}/a", unclear="fields that are not known: workdir"),
    ),
    "arguments that are no list": (
        {"command": "make", "args": "all"},
        ran("", "make", "all", unclear="fields that are not known: args"),
    ),
}


@pytest.mark.parametrize(("given", "expected"), COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("kind", ["execute", "read", "other"])
def test_a_command_is_a_command_whatever_the_agent_calls_it(kind: str, given: Any, expected: Action) -> None:
    assert asked(kind, given) == expected


def test_a_command_that_also_names_files_is_unclear() -> None:
    named = asked("execute", {"command": "make"}, locations=[{"path": "/etc/passwd"}])
    assert named.unclear == "fields that are not known: files beside a command"
    assert asked("execute", {"command": "make"}, title="make: harmless").unclear == ""


DIFF = {"type": "diff", "path": "a.py", "oldText": "1", "newText": "2"}
FILES: dict[str, tuple[str, Any, dict[str, Any], Action]] = {
    "a read": ("read", {"path": "a.py"}, {}, Action("read", files=("a.py",))),
    "a read of some lines": ("read", {"file_path": "a", "offset": 1, "limit": 9}, {}, Action("read", files=("a",))),
    "a read by its location": ("read", None, {"locations": [{"path": "a"}]}, Action("read", files=("a",))),
    "a read with its own location": (
        "read",
        {"path": "a"},
        {"locations": [{"path": f"{CWD}/a"}]},
        Action("read", files=("a",)),
    ),
    "a read of more than it says": (
        "read",
        {"path": "a"},
        {"locations": [{"path": "a"}, {"path": "b"}]},
        Action("read", files=("a",), unclear="it names further files"),
    ),
    "a read with content": (
        "read",
        {"path": "a", "content": "x"},
        {},
        Action("read", files=("a",), unclear="fields that are not known: content"),
    ),
    "a read that shows a change": ("read", {"path": "a.py"}, {"content": [DIFF]}, Action("write", files=("a.py",))),
    "two names for one file": (
        "read",
        {"path": "a", "file_path": "b"},
        {},
        Action("read", files=("a",), unclear="it names further files"),
    ),
    "words about a search": ("search", {"path": "s", "description": "/etc"}, {}, Action("read", files=("s",))),
    "a search": ("search", {"pattern": "x", "path": "src"}, {}, Action("read", files=("src",))),
    "a search that leads out": ("search", {"pattern": "/etc/*"}, {}, Action("read", files=("/etc/*",))),
    "a search that climbs": (
        "search",
        {"pattern": "../*", "path": "src"},
        {},
        Action("read", files=("src", "../*")),
    ),
    "a search with dots in a name": ("search", {"pattern": "a..b", "path": "s"}, {}, Action("read", files=("s",))),
    "an edit": ("edit", {"file_path": "a", "new_string": "x"}, {}, Action("write", files=("a",))),
    "an edit by its change": ("edit", {"path": "a.py"}, {"content": [DIFF]}, Action("write", files=("a.py",))),
    "an edit of another file than it says": (
        "edit",
        {"path": "b.py"},
        {"content": [DIFF]},
        Action("write", files=("a.py",), unclear="it names further files"),
    ),
    "an edit with an unknown field": (
        "edit",
        {"path": "a", "mode": 777},
        {},
        Action("write", files=("a",), unclear="fields that are not known: mode"),
    ),
    "a removal": ("delete", {"path": "a"}, {}, Action("write", files=("a",))),
    "a move": ("move", {"path": "a"}, {}, Action("write", files=("a",))),
    "a command that is not told": ("execute", {}, {}, Action("shell")),
    "a fetch": ("fetch", {"description": "look"}, {}, Action("other")),
    "an address": ("fetch", {"url": "x"}, {}, Action("other", unclear="fields that are not known: url")),
    "no kind and no name": (
        "other",
        {"path": "a"},
        {},
        Action("other", files=("a",), unclear="only its title says which tool it is"),
    ),
    "a name of its own": ("other", {"path": "a"}, {"_meta": {"x": {"toolName": "T"}}}, Action("other", files=("a",))),
    "an input that is a text": ("read", "a.py", {}, Action("read", unclear="its input is no object")),
    "one of our own tools": ("edit", {"path": "a"}, {"own": True}, Action()),
}


@pytest.mark.parametrize(("kind", "given", "told", "expected"), FILES.values(), ids=FILES)
def test_files_are_those_of_the_change_then_of_the_input_then_of_the_place(
    kind: str, given: Any, told: dict[str, Any], expected: Action
) -> None:
    assert asked(kind, given, **told) == expected


@pytest.mark.parametrize(
    ("params", "line", "argv", "env"),
    [
        ({"command": "ls"}, None, ("ls",), ()),
        ({"command": "ls", "args": ["-l"]}, None, ("ls", "-l"), ()),
        ({"command": "ls -l | wc"}, "ls -l | wc", (), ()),
        ({"command": "a b", "args": ["c"]}, None, ("a b", "c"), ()),
        ({"command": "ls", "env": [{"name": "A", "value": "1"}]}, None, ("ls",), (("A", "1"),)),
        ({"command": "ls", "args": None, "env": None}, None, ("ls",), ()),
        ({}, "", (), ()),
    ],
)
def test_a_terminal_runs_words_or_a_whole_line(
    tmp_path: Path, params: dict[str, Any], line: str | None, argv: tuple[str, ...], env: tuple[tuple[str, str], ...]
) -> None:
    assert terminal_action(params, Jail([tmp_path])) == Action("shell", line, argv, env, str(tmp_path))
