"""`portico do`: any command from words of a command line, each as its field wants it."""

import io
import json
import sys
from typing import Any

import pytest

from portico.cli.do import parse
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest, NotFound
from tests.cli.fake_host import FakeHost

SAID: dict[str, tuple[str, list[str], c.Command]] = {
    "a text": (
        "session.rename",
        ["session=s", "title=A better title"],
        c.RenameSession(session="s", title="A better title"),
    ),
    "a text with an equals sign": (
        "session.rename",
        ["session=s", "title=a=b"],
        c.RenameSession(session="s", title="a=b"),
    ),
    "an empty text": ("session.rename", ["session=s", "title="], c.RenameSession(session="s", title="")),
    "a text that looks like JSON": (
        "session.rename",
        ["session=s", "title={x"],
        c.RenameSession(session="s", title="{x"),
    ),
    "a number as a text": ("session.rename", ["session=s", "title=7"], c.RenameSession(session="s", title="7")),
    "a yes": ("session.archive", ["session=s", "archived=true"], c.ArchiveSession(session="s", archived=True)),
    "a no": ("session.archive", ["session=s", "archived=0"], c.ArchiveSession(session="s", archived=False)),
    "a list": ("queue.reorder", ["session=s", 'order=["a","b"]'], c.ReorderQueue(session="s", order=["a", "b"])),
    "an object": (
        "session.configure",
        ["session=s", 'values={"mode": "plan"}'],
        c.ConfigureSession(session="s", values={"mode": "plan"}),
    ),
}


@pytest.mark.parametrize(("name", "values", "command"), SAID.values(), ids=SAID)
def test_words_become_a_command(name: str, values: list[str], command: c.Command) -> None:
    assert parse(name, values) == command


@pytest.mark.parametrize(
    ("name", "values", "field", "words"),
    [
        ("session.rename", [], "session", "'session' is missing"),
        ("session.rename", ["session=s"], "title", "'title' is missing"),
        ("session.rename", ["session=s", "title"], "title", "'title' is none of them"),
        ("session.rename", ["session=s", "titel=x"], "titel", "takes session=... title=..."),
        ("session.archive", ["session=s", "archived=perhaps"], "archived", "archived='perhaps'"),
        ("queue.reorder", ["session=s", "order=a"], "order", "order='a'"),
        ("session.start", ["uri=x:/1"], "uri", "is none of them"),
    ],
    ids=["nothing", "half", "no equals sign", "a slip", "neither yes nor no", "no list", "a field of another door"],
)
def test_what_is_wrong_is_named(name: str, values: list[str], field: str, words: str) -> None:
    with pytest.raises(BadRequest) as refused:
        parse(name, values)
    assert words in refused.value.message
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("name", "hint"), [("session.renam", "Did you mean 'session.rename'?"), ("zzz", "`portico do` lists them.")]
)
def test_a_command_that_there_is_not(name: str, hint: str) -> None:
    with pytest.raises(NotFound, match="There is no command") as refused:
        parse(name, [])
    assert hint in refused.value.message


def test_a_long_text_comes_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("two\nlines"))
    assert parse("session.rename", ["session=s", "title=-"]) == c.RenameSession(session="s", title="two\nlines")


def test_the_list_says_what_each_takes(fake: FakeHost) -> None:
    rows = {row[0]: row[1:] for row in fake.run("do").rows}
    assert rows["session.rename"][:2] == ["drive", "session=... title=..."]
    assert set(rows) == set(c.COMMANDS)
    told: Any = json.loads(fake.run("do", "--json").out)
    assert told["session.rename"]["scope"] == "drive"
    assert fake.asked == []
