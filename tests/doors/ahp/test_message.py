"""Messages on the wire and in the log: what one side says comes back as the other side can read it."""

import pytest

from portico.doors.ahp.view.message import from_wire, to_wire
from portico.doors.ahp.wire.versions import SEED, SUPPORTED, Dialect
from portico.kernel.events import Json, Message

V1 = Dialect(SEED, lambda: 0)
NEW = Dialect("1.0.0", lambda: 0)
OLD = Dialect("0.8.0", lambda: 0)
USER = {"kind": "user"}

SAID: dict[str, tuple[Json, Message]] = {
    "plain": ({"text": "hi"}, Message("hi")),
    "nothing": ({}, Message("")),
    "a model": ({"text": "hi", "model": {"id": "m"}}, Message("hi", model="m")),
    "a model with settings": (
        {"text": "hi", "model": {"id": "m", "config": {"effort": "high"}}},
        Message("hi", model="m", model_config={"effort": "high"}),
    ),
    "null means absent": ({"text": "hi", "model": None, "attachments": None, "origin": None}, Message("hi")),
    "of the system": ({"text": "hi", "origin": {"kind": "systemNotification"}}, Message("hi", origin="system")),
    "of a tool": ({"text": "hi", "origin": {"kind": "tool"}}, Message("hi", origin="tool")),
    "of an automation": ({"text": "hi", "origin": {"kind": "automation"}}, Message("hi", origin="automation")),
    "of somebody new": (
        {"text": "hi", "origin": {"kind": "robot", "name": "r"}},
        Message("hi", meta={"ahp": {"origin": {"kind": "robot", "name": "r"}}}),
    ),
    "with what we have no field for": (
        {"text": "hi", "agent": "x", "_meta": {"a": 1}},
        Message("hi", meta={"ahp": {"agent": "x", "_meta": {"a": 1}}}),
    ),
}


@pytest.mark.parametrize(("said", "message"), SAID.values(), ids=SAID)
def test_what_a_client_says_is_kept(said: Json, message: Message) -> None:
    assert from_wire(said) == message


@pytest.mark.parametrize("version", SUPPORTED)
@pytest.mark.parametrize("name", [name for name in SAID if name != "nothing"])
def test_what_was_said_comes_back(name: str, version: str) -> None:
    said = {key: value for key, value in SAID[name][0].items() if value is not None}
    told = to_wire(from_wire(said), Dialect(version, lambda: 0))
    expected = {"origin": USER, **said}
    if name == "of an automation" and not Dialect(version, lambda: 0).since("0.9.0"):
        expected["origin"] = USER  # older clients know no such origin
    assert told == expected


def test_version_1_has_text_and_attachments_only() -> None:
    message = Message("hi", model="m", origin="tool", meta={"ahp": {"agent": "x"}})
    assert to_wire(message, V1) == {"text": "hi"}


def test_model_settings_of_an_older_portico_are_shown() -> None:
    message = Message("hi", model="m", meta={"ahp": {"modelConfig": {"effort": "low"}}})
    assert to_wire(message, NEW)["model"] == {"id": "m", "config": {"effort": "low"}}


FILE = {"type": "file", "uri": "file:///a/b.py", "displayName": "b.py"}
ATTACHMENTS: dict[str, tuple[Json, Json | None, Json]] = {
    "a file of version 1": (
        FILE,
        FILE,
        {"type": "resource", "uri": "file:///a/b.py", "label": "b.py", "displayKind": "file"},
    ),
    "a folder of version 1": (
        {"type": "directory", "uri": "file:///a/b/"},
        {"type": "directory", "uri": "file:///a/b/"},
        {"type": "resource", "uri": "file:///a/b/", "label": "b", "displayKind": "directory"},
    ),
    "a resource": (
        {"type": "resource", "uri": "file:///a/c", "label": "See"},
        {"type": "file", "uri": "file:///a/c", "displayName": "See"},
        {"type": "resource", "uri": "file:///a/c", "label": "See"},
    ),
    "a resource that is a folder": (
        {"type": "resource", "uri": "file:///a", "label": "A", "displayKind": "directory"},
        {"type": "directory", "uri": "file:///a", "displayName": "A"},
        {"type": "resource", "uri": "file:///a", "label": "A", "displayKind": "directory"},
    ),
    "a resource of a kind of its own": (
        {"type": "resource", "uri": "x:/a", "label": "A", "displayKind": "symbol"},
        {"type": "file", "uri": "x:/a", "displayName": "A"},
        {"type": "resource", "uri": "x:/a", "label": "A", "displayKind": "symbol"},
    ),
    "a text without an address": (
        {"type": "simple", "label": "Note", "modelRepresentation": "words"},
        None,
        {"type": "simple", "label": "Note", "modelRepresentation": "words"},
    ),
    "one without a type": ({"label": "Note"}, None, {"type": "simple", "label": "Note"}),
    "one with a name": ({"type": "simple", "name": "N"}, None, {"type": "simple", "name": "N", "label": "N"}),
    "one with a path": (
        {"type": "simple", "path": "/x/y.py"},
        None,
        {"type": "simple", "path": "/x/y.py", "label": "y.py"},
    ),
    "one that says nothing": ({"type": "simple"}, None, {"type": "simple", "label": "attachment"}),
    "one whose address is a slash": (
        {"type": "resource", "uri": "/"},
        {"type": "file", "uri": "/", "displayName": "attachment"},
        {"type": "resource", "uri": "/", "label": "attachment"},
    ),
}


@pytest.mark.parametrize(("given", "seed", "modern"), ATTACHMENTS.values(), ids=ATTACHMENTS)
def test_an_attachment_in_both_dialects(given: Json, seed: Json | None, modern: Json) -> None:
    message = Message("hi", attachments=[given])
    assert to_wire(message, V1).get("attachments") == ([seed] if seed is not None else None)
    assert to_wire(message, NEW)["attachments"] == [modern]
    assert to_wire(message, OLD)["attachments"] == [modern]
