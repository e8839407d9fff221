"""Edits of files as they are: line endings, encodings, several changes, and what was read before."""

import json
from typing import Any

import pytest

from portico.kernel.events import Json
from portico.testing.model import ScriptedCall, Step
from tests.agents.loop.conftest import Desk, calls

FREE = '[agents.loop]\nprotocol = "tools"\n[agent]\nrequire_approval = "none"\n'


def uses(tool: str, **arguments: Any) -> Step:
    return Step(calls=[ScriptedCall(name=tool, args=json.dumps(arguments))])


READ = uses("readFiles", files=["a.txt"])
EDITS: dict[str, tuple[bytes, Json, bytes]] = {
    "CRLF": (b"a\r\nb\r\nc\r\n", {"search": "a\nb", "replace": "x\ny"}, b"x\r\ny\r\nc\r\n"),
    "CRLF in the search": (b"a\r\nb\r\n", {"search": "a\r\nb", "replace": "x\r\ny"}, b"x\r\ny\r\n"),
    "CRLF by content": (b"a\r\nb\r\n", {"content": "a\nx\n"}, b"a\r\nx\r\n"),
    "CRLF by a diff": (b"a\r\nb\r\n", {"diff": "@@ -1,2 +1,2 @@\n a\n-b\n+x\n"}, b"a\r\nx\r\n"),
    "mixed": (b"a\r\nb\nc\r\n", {"search": "a", "replace": "x"}, b"x\r\nb\nc\r\n"),
    "Latin-1": ("é\nb\n".encode("latin-1"), {"search": "b", "replace": "ö"}, "é\nö\n".encode("latin-1")),
    "UTF-16": ("é\nb\n".encode("utf-16"), {"search": "b", "replace": "ö"}, "é\nö\n".encode("utf-16")),
    "a byte order mark": (b"\xef\xbb\xbfa\nb\n", {"search": "a\nb", "replace": "x"}, b"\xef\xbb\xbfx\n"),
    "no newline at the end": (b"a\nb", {"search": "b", "replace": "x"}, b"a\nx"),
    "every place": (b"a b a\na\n", {"search": "a", "replace": "x", "all": True}, b"x b x\nx\n"),
    "several": (
        b"a\nb\nc\n",
        {"edits": [{"search": "a", "replace": "x"}, {"search": "c", "replace": "z"}]},
        b"x\nb\nz\n",
    ),
    "names of other agents": (b"a\nb\n", {"old_string": "a", "new_string": "x", "replace_all": False}, b"x\nb\n"),
    "several with names of other agents": (b"a\n", {"edits": [{"oldText": "a", "newText": "x"}]}, b"x\n"),
    "whitespace": (b"a  \nb\n", {"search": "a\nb", "replace": "x"}, b"x\n"),
}


@pytest.mark.parametrize(("before", "edit", "after"), EDITS.values(), ids=EDITS)
async def test_an_edit_keeps_how_a_file_is_written(desk: Desk, before: bytes, edit: Json, after: bytes) -> None:
    desk.settings(FREE)
    (desk.project / "a.txt").write_bytes(before)
    desk.says(READ, uses("editFile", path="a.txt", **edit), Step(say="Done."))
    turn = await desk.run("Edit.")
    assert [call.ok for call in calls(turn)] == [True, True], calls(turn)[-1].output
    assert (desk.project / "a.txt").read_bytes() == after
    shown = calls(turn)[0].output
    assert "\r" not in shown
    assert ("encoding:" in shown) is not before.startswith((b"a", b"\xef"))


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"edits": [{"search": "a", "replace": "x"}, {"search": "zz", "replace": "y"}]}, "Edit 2 of 2, none was made"),
        ({"edits": []}, "'edits' is empty"),
        ({"search": "a", "replace": "x", "content": "y"}, "takes one of"),
        ({"search": "b", "replace": "b"}, "change nothing"),
        ({"search": "q", "replace": "x", "all": True}, "does not occur"),
    ],
)
async def test_an_edit_that_does_not_fit_changes_nothing(desk: Desk, edit: Json, words: str) -> None:
    desk.settings(FREE)
    (desk.project / "a.txt").write_text("a\nb\n")
    desk.says(READ, uses("editFile", path="a.txt", **edit), Step(say="Done."))
    turn = await desk.run("Edit.")
    assert words in calls(turn)[1].output
    assert (desk.project / "a.txt").read_text() == "a\nb\n"


@pytest.mark.parametrize("changed", [False, True])
async def test_what_an_earlier_turn_read_need_not_be_read_again(desk: Desk, changed: bool) -> None:
    desk.settings(FREE)
    (desk.project / "ä b.txt").write_text("a\n")
    desk.says(uses("readFiles", files=["ä b.txt"]), Step(say="Read."))
    await desk.run("Read.")
    if changed:
        (desk.project / "ä b.txt").write_text("a\nnew\n")
    desk.says(uses("editFile", path="ä b.txt", search="a", replace="x"), Step(say="Done."))
    (call,) = calls(await desk.run("Edit."))
    assert call.ok is not changed
    assert ("has changed since you read it" in call.output) is changed


async def test_several_edits_of_one_file_in_one_answer(desk: Desk) -> None:
    desk.settings(FREE)
    (desk.project / "a.txt").write_text("a\nb\n")
    both = [ScriptedCall(name="editFile", args={"path": "a.txt", "search": each, "replace": "x"}) for each in "ab"]
    desk.says(READ, Step(calls=both), Step(say="Done."))
    turn = await desk.run("Edit.")
    assert [call.ok for call in calls(turn)] == [True, True, True]
    assert (desk.project / "a.txt").read_text() == "x\nx\n"


SIGNS: dict[str, tuple[str, Json, str]] = {
    "curly quotes in the file": ("say “hi”, it’s\n", {"search": 'say "hi"', "replace": 'say "ho"'}, "say “ho”, it’s\n"),
    "curly quotes in the search": ("say 'hi'\n", {"search": "say ‘hi’", "replace": "say ‘ho’"}, "say 'ho'\n"),
    "no-break spaces in the file": ("a\u00a0b\nc\n", {"search": "a b\nc", "replace": "a b\nd"}, "a\u00a0b\nd\n"),
    "no-break spaces in the search": ("a b\n", {"search": "a\u202fb", "replace": "a\u202fc"}, "a c\n"),
    "decomposed in the file": ("cafe\u0301 one\n", {"search": "café one", "replace": "café two"}, "cafe\u0301 two\n"),
    "decomposed in the search": ("café one\n", {"search": "cafe\u0301 one", "replace": "cafe\u0301 two"}, "café two\n"),
    "dashes": ("1\u20132 – x\n", {"search": "1-2 - x", "replace": "1-2 - y"}, "1\u20132 – y\n"),
    "an ellipsis": ("wait… now\n", {"search": "wait... now", "replace": "wait... then"}, "wait… then\n"),
    "a zero-width space": ("a\u200bb\nc\n", {"search": "ab\n", "replace": "ab!\n"}, "a\u200bb!\nc\n"),
    "a byte order mark in the search": ("a\nb\n", {"search": "\ufeffa\nb", "replace": "x"}, "x\n"),
    "every place": ("“a” “a”\n", {"search": '"a"', "replace": '"b"', "all": True}, "“b” “b”\n"),
    "an exact place first": ('“a” "a"\n', {"search": '"a"', "replace": '"b"'}, '“a” "b"\n'),
    "tabs in the file": (
        "def f():\n\tif x:\n\t\ty()\n",
        {"search": "    if x:\n        y()", "replace": "    if x:\n        y()\n        z()"},
        "def f():\n\tif x:\n\t\ty()\n\t\tz()\n",
    ),
    "tabs in the file, two spaces": (
        "\ta:\n\t\tb\n\t\t\tc\n",
        {"search": "a:\n  b\n    c", "replace": "a:\n  b\n    d\n"},
        "\ta:\n\t\tb\n\t\t\td\n\n",
    ),
    "tabs in the search": (
        "    if x:\n        y()\n",
        {"search": "\tif x:\n\t\ty()", "replace": "\tif x:\n\t\tz()"},
        "    if x:\n        z()\n",
    ),
    "an empty file": ("", {"search": "", "replace": "x\n"}, "x\n"),
}


@pytest.mark.parametrize(("before", "edit", "after"), SIGNS.values(), ids=SIGNS)
async def test_an_edit_finds_what_is_written_in_another_form(desk: Desk, before: str, edit: Json, after: str) -> None:
    desk.settings(FREE)
    (desk.project / "a.txt").write_bytes(before.encode())
    desk.says(READ, uses("editFile", path="a.txt", **edit), Step(say="Done."))
    turn = await desk.run("Edit.")
    assert [call.ok for call in calls(turn)] == [True, True], calls(turn)[-1].output
    assert (desk.project / "a.txt").read_bytes().decode() == after


UNCLEAR: dict[str, tuple[str, Json, str]] = {
    "two places": ("“a”\n‘a’ “a”\n", {"search": '"a"', "replace": "x"}, "does not occur"),
    "half a sign": ("wait…\n", {"search": "wait..", "replace": "x"}, "does not occur"),
    "levels that do not fit": ("\ta\n\tb\n", {"search": "  a\n    b", "replace": "x"}, "does not occur"),
    "nothing in a full file": ("a\n", {"search": "", "replace": "x"}, "'search' is empty"),
}


@pytest.mark.parametrize(("before", "edit", "words"), UNCLEAR.values(), ids=UNCLEAR)
async def test_an_unclear_edit_changes_nothing(desk: Desk, before: str, edit: Json, words: str) -> None:
    desk.settings(FREE)
    (desk.project / "a.txt").write_bytes(before.encode())
    desk.says(READ, uses("editFile", path="a.txt", **edit), Step(say="Done."))
    turn = await desk.run("Edit.")
    assert words in calls(turn)[1].output
    assert (desk.project / "a.txt").read_bytes().decode() == before


async def test_an_edit_of_a_new_file_creates_it(desk: Desk) -> None:
    desk.settings(FREE)
    desk.says(uses("editFile", path="new/a.txt", search="", replace="x\n"), Step(say="Done."))
    turn = await desk.run("Edit.")
    assert (calls(turn)[0].ok, calls(turn)[0].title) == (True, "Create new/a.txt")
    assert (desk.project / "new/a.txt").read_text() == "x\n"
