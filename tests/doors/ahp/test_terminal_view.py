"""Terminals on the wire: what their list says, their whole state, and the action of each of their events."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from portico.doors.ahp.view import terminals
from portico.features.terminals import events as te
from portico.kernel.events import Event, Json, Record
from tests.terminals.test_state import CLIENT, data, terminal

HOST: Any = SimpleNamespace(find=lambda ident: None)
opened = partial(terminal, cwd="/w x")


def test_a_new_terminal() -> None:
    assert terminals.state(HOST, opened()) == {
        "title": "zsh",
        "cwd": "file:///w%20x",
        "cols": 80,
        "rows": 24,
        "content": [],
        "claim": CLIENT,
        "isPty": True,
        "lifecycle": {"status": "running"},
    }


@pytest.mark.parametrize(
    ("events", "life"),
    [
        ([], {"lifecycle": {"status": "running"}}),
        ([te.TerminalExited(code=3)], {"lifecycle": {"status": "exited", "exitCode": 3}, "exitCode": 3}),
        ([te.TerminalExited(code=0)], {"lifecycle": {"status": "exited", "exitCode": 0}, "exitCode": 0}),
        ([te.TerminalExited(code=None)], {"lifecycle": {"status": "exited"}}),
    ],
    ids=["running", "failed", "well", "by a signal"],
)
def test_the_end_in_its_old_and_new_form(events: list[Event], life: Json) -> None:
    shown = terminals.info(HOST, opened(*events))
    assert shown == {"resource": "ahp-terminal:/t1", "title": "zsh", "claim": CLIENT, **life}


@pytest.mark.parametrize(("uri", "name"), [(None, "ahp-terminal:/t1"), ("editor:/7", "editor:/7")])
def test_a_terminal_is_called_what_its_client_called_it(uri: str | None, name: str) -> None:
    assert terminals.info(HOST, opened(uri=uri))["resource"] == name


def test_what_it_shows_is_divided_into_commands() -> None:
    events = [
        te.TerminalDetects(),
        data("$ "),
        te.TerminalCommand(command="1", line="ls"),
        data("a\n"),
        te.TerminalCommandEnded(command="1", code=2, milliseconds=1500),
    ]
    shown = terminals.state(HOST, opened(*events))
    assert shown["supportsCommandDetection"] is True
    assert shown["content"] == [
        {"type": "unclassified", "value": "$ "},
        {
            "type": "command",
            "commandId": "1",
            "commandLine": "ls",
            "output": "a\n",
            "timestamp": 4000,
            "isComplete": True,
            "exitCode": 2,
            "durationMs": 1500,
        },
    ]


def test_a_running_command_has_no_end_yet() -> None:
    shown = terminals.state(HOST, opened(te.TerminalCommand(command="1", line="ls"), data("a")))
    (command,) = shown["content"]
    assert (command["isComplete"], "exitCode" in command, "durationMs" in command) == (False, False, False)


ACTIONS: dict[str, tuple[Event, str | None, Json]] = {
    "output": (data("hi"), "data", {"data": "hi"}),
    "a command": (
        te.TerminalCommand(command="1", line="ls"),
        "commandExecuted",
        {"commandId": "1", "commandLine": "ls", "timestamp": 5000},
    ),
    "its end": (
        te.TerminalCommandEnded(command="1", code=0, milliseconds=7),
        "commandFinished",
        {"commandId": "1", "durationMs": 7, "exitCode": 0},
    ),
    "an end without a code": (
        te.TerminalCommandEnded(command="1", code=None, milliseconds=7),
        "commandFinished",
        {"commandId": "1", "durationMs": 7},
    ),
    "commands are known": (te.TerminalDetects(), "commandDetectionAvailable", {}),
    "another size": (te.TerminalResized(cols=100, rows=30, by="me"), "resized", {"cols": 100, "rows": 30}),
    "another owner": (te.TerminalClaimed(claim=CLIENT, by="me"), "claimed", {"claim": CLIENT}),
    "another title": (te.TerminalTitled(title="make", by="me"), "titleChanged", {"title": "make"}),
    "another folder": (te.TerminalMoved(cwd="/x y"), "cwdChanged", {"cwd": "file:///x%20y"}),
    "cleared": (te.TerminalCleared(by="me"), "cleared", {}),
    "over": (te.TerminalExited(code=1), "exited", {"exitCode": 1}),
    "over by a signal": (te.TerminalExited(code=None), "exited", {}),
    "gone": (te.TerminalRemoved(by="me"), None, {}),
}


@pytest.mark.parametrize(("event", "name", "fields"), ACTIONS.values(), ids=ACTIONS)
def test_the_action_of_an_event(event: Event, name: str | None, fields: Json) -> None:
    told = terminals.actions(Record(1, "terminal/t1", 1, 5000, b"", event))
    assert [(each.name, each.fields) for each in told] == ([(name, fields)] if name else [])
    assert [each.by for each in told if each.by] == (["me"] if name and getattr(event, "by", "") else [])
