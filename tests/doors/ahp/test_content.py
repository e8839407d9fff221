"""What a tool call shows: its text, the edits it made, the terminal it ran in, the sub-agent it started."""

from typing import Any

import pytest

from portico.doors.ahp.view import names
from portico.doors.ahp.view.content import content_of, file_edit, visible
from portico.doors.ahp.wire import uri
from portico.kernel import limits
from portico.kernel.events import Json
from portico.kernel.state import Approval, CallPart


def call(output: str = "", *content: Json, done: bool = True, **fields: Any) -> CallPart:
    return CallPart("c1", "tool", output=output, content=list(content), done=done, **fields)


TEXT = {"type": "text", "text": "said"}
WHOLE: dict[str, tuple[Json, Json | None]] = {
    "text": (TEXT, TEXT),
    "text without its text": ({"type": "text"}, None),
    "a picture": ({"type": "embeddedResource", "data": "aGk=", "contentType": "image/png"},) * 2,
    "a picture without its type": ({"type": "embeddedResource", "data": "aGk="}, None),
    "a resource": ({"type": "resource", "uri": "file:///a"},) * 2,
    "a resource without an address": ({"type": "resource"}, None),
    "an edit in the protocol's words": ({"type": "fileEdit", "after": {"uri": "file:///a"}},) * 2,
    "a terminal of a client": ({"type": "terminal", "resource": "t:/1", "title": "T"},) * 2,
    "a terminal without a title": ({"type": "terminal", "resource": "t:/1"}, None),
    "a sub-agent in the protocol's words": ({"type": "subagent", "resource": "c:/1", "title": "S"},) * 2,
    "what nobody knows": ({"type": "hologram", "x": 1}, None),
    "what has no type": ({"text": "said"}, None),
    "structured": ({"type": "structured", "value": {}}, None),
}


@pytest.mark.parametrize(("given", "shown"), WHOLE.values(), ids=WHOLE)
def test_only_whole_content_of_known_kinds_is_shown(given: Json, shown: Json | None) -> None:
    assert content_of(call("", given)) == ([shown] if shown is not None else [])


@pytest.mark.parametrize(
    ("output", "content", "shown"),
    [
        ("out", [], [{"type": "text", "text": "out"}]),
        ("out", [TEXT], [TEXT]),
        (
            "out",
            [{"type": "resource", "uri": "x:/1"}],
            [{"type": "text", "text": "out"}, {"type": "resource", "uri": "x:/1"}],
        ),
        ("", [], []),
    ],
    ids=["its output", "its own text instead", "before everything else", "nothing"],
)
def test_a_call_shows_what_it_put_out(output: str, content: list[Json], shown: list[Json]) -> None:
    assert content_of(call(output, *content)) == shown


def test_a_long_output_is_a_resource_besides() -> None:
    *_, last = content_of(call("cut", blob="abc"))
    assert last == {"type": "resource", "uri": "portico-blob:/abc", "contentType": "text/plain"}


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, 0),
        (1, 1),
        (4096, 4096),
        (4097, 4096),
        (4607, 4096),
        (4608, 4608),
        (8191, 7680),
        (8192, 8192),
        (9000, 8192),
        (9216, 9216),
        (65_536, 65_536),
    ],
)
def test_live_output_grows_in_steps(size: int, shown: int) -> None:
    """AHP has no delta here, so each change carries the whole: a long output costs a few times its size."""
    assert visible(size) == shown


def test_live_output_ends_at_the_limit_of_what_is_kept() -> None:
    assert visible(10 * limits.TOOL_OUTPUT_CHARS) == visible(limits.TOOL_OUTPUT_CHARS) <= limits.TOOL_OUTPUT_CHARS


@pytest.mark.parametrize(
    ("fields", "characters"),
    [({"done": False}, 4096), ({"done": True}, 4100), ({"done": False, "approvals": ["result"]}, 4100)],
    ids=["running", "done", "its result waits"],
)
def test_what_runs_shows_its_steps_and_what_has_run_all(fields: dict[str, Any], characters: int) -> None:
    if "approvals" in fields:
        fields = {**fields, "approvals": [Approval("a1", "other", "", "", 0, [], result=True)]}
    (shown,) = content_of(call("x" * 4100, **fields))
    assert len(shown["text"]) == characters


RAN = {"type": "terminal", "terminal": "t7"}
SCREEN = {"type": "terminal", "resource": "ahp-terminal:/t7", "title": "Terminal", "isPty": True}


@pytest.mark.parametrize(
    ("item", "output", "fields", "shown"),
    [
        (RAN, "", {"done": False}, SCREEN),
        ({**RAN, "title": "make"}, "", {"done": False}, {**SCREEN, "title": "make"}),
        ({**RAN, "code": 3}, "", {}, {**SCREEN, "result": {"exitCode": 3}}),
        ({**RAN, "code": None}, "", {}, SCREEN),
        (RAN, "hi", {}, {**SCREEN, "result": {"preview": "hi", "truncated": False}}),
        ({**RAN, "code": 0}, "hi", {}, {**SCREEN, "result": {"exitCode": 0, "preview": "hi", "truncated": False}}),
        (RAN, "x" * 1001, {}, {**SCREEN, "result": {"preview": "x" * 1000, "truncated": True}}),
        (RAN, "hi", {"blob": "b"}, {**SCREEN, "result": {"preview": "hi", "truncated": True}}),
        (RAN, "hi", {"done": False}, SCREEN),
    ],
    ids=["runs", "titled", "code", "no code", "preview", "both", "the end of a long one", "cut already", "not yet"],
)
def test_a_terminal_leaves_its_end_behind(item: Json, output: str, fields: dict[str, Any], shown: Json) -> None:
    assert shown in content_of(call(output, item, **fields))


CHAT = uri.subagent("loop:/session-1", "c9")


@pytest.mark.parametrize(
    ("item", "seed", "shown"),
    [
        ({"session": "session-2"}, False, {"resource": "ahp-chat:/session-2", "title": "Sub-agent"}),
        ({"session": "session-2"}, True, {"resource": "ahp-chat:/session-2", "title": "Sub-agent"}),
        ({"session": "s", "uri": CHAT, "title": "Look"}, False, {"resource": CHAT, "title": "Look"}),
        ({"session": "s", "uri": CHAT}, True, {"resource": "loop:/session-1/subagent/c9", "title": "Sub-agent"}),
        ({"session": "s", "agent": "x"}, False, {"resource": "ahp-chat:/s", "title": "Sub-agent", "agentName": "x"}),
    ],
    ids=["ours", "ours in version 1", "named by the editor", "the same in version 1", "with its agent"],
)
def test_a_sub_agent_is_a_chat(item: Json, seed: bool, shown: Json) -> None:
    assert content_of(call("", {"type": "subagent", **item}), seed) == [{"type": "subagent", **shown}]


def side(name: str, path: str = "/a b.py") -> Json:
    return {"uri": "file:///a%20b.py", "content": {"uri": names.version_uri(names.DIFF, f"s/c/0/{name}", path)}}


@pytest.mark.parametrize(
    ("item", "edit"),
    [
        (
            {"path": "/a b.py", "old": "1\n2\n", "new": "1\n3\n4\n", "at": "s/c/0"},
            {"before": side("before"), "after": side("after"), "diff": {"added": 2, "removed": 1}},
        ),
        (
            {"path": "/a b.py", "new": "1\n2", "at": "s/c/0"},
            {"after": side("after"), "diff": {"added": 2, "removed": 0}},
        ),
        (
            {"path": "/a b.py", "old": "1", "new": "", "at": "s/c/0"},
            {"before": side("before"), "after": side("after"), "diff": {"added": 0, "removed": 1}},
        ),
        (
            {"path": "/a", "old": "1", "new": "2"},
            {
                "after": {"uri": "file:///a", "content": {"uri": "file:///a"}},
                "diff": {"added": 1, "removed": 1},
            },
        ),
        ({"path": "a.py", "new": "1"}, None),
        ({"path": "", "new": "1"}, None),
        ({"new": "1"}, None),
    ],
    ids=["changed", "new", "emptied", "of an older Portico", "relative", "empty path", "no path"],
)
def test_an_edit_names_both_sides(item: Json, edit: Json | None) -> None:
    assert file_edit(item) == edit
    shown = content_of(call("", {"type": "diff", **item}))
    assert shown == ([{"type": "fileEdit", **edit}] if edit is not None else [])
