"""docs/reference/commands.md tells the truth about every command, and the table refuses one that lacks a column."""

import re
from pathlib import Path

import msgspec
import pytest
from tools.reference import types_of

from portico.kernel import commands as c

PAGE = Path(__file__).parents[1] / "docs/reference/commands.md"


def sections() -> dict[str, str]:
    found = re.split(r"^### `(.+?)`$", PAGE.read_text(), flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def test_every_command_and_no_other_is_described() -> None:
    assert set(sections()) == set(c.COMMANDS)


@pytest.mark.parametrize("name", list(c.COMMANDS))
def test_a_command_is_described_as_it_is(name: str) -> None:
    kind, section = c.COMMANDS[name], sections()[name]
    assert f"{c.sentence(kind)} Scope `{kind.scope}`." in section
    if kind.http is not None:
        assert f"`{kind.http.method} {kind.http.path}`" in section
    fields = {
        field: re.sub(r"\[(?:Isolation|ClientServer)\]\(#\w+\)", "object", label).replace("](#", "](events.md#")
        + (", protocol" if field in kind.private else "")
        for field, label in types_of(kind).items()
    }
    assert dict(re.findall(r"^\| `(\w+)` \| (.*?) \| .*\|$", section, flags=re.MULTILINE)) == fields


@pytest.mark.parametrize("name", list(c.COMMANDS))
def test_a_command_survives_its_bytes(name: str) -> None:
    """Forwarded or stored, it is the same command."""
    kind = c.COMMANDS[name]
    samples = {str: "x", bool: True, int: 7, float: 1.5}
    said = {
        field.name: samples.get(field.type, {"text": "x"} if field.type is not list else [])
        for field in msgspec.structs.fields(kind)
        if field.required and field.type in (str, bool, int, float)
    }
    said |= {
        field.name: [] if "list" in str(field.type) else None if "None" in str(field.type) else {"text": "x"}
        for field in msgspec.structs.fields(kind)
        if field.required and field.name not in said
    }
    command = msgspec.convert({"command": name, **said}, kind)
    assert c.decode_command(c.encode_command(command)) == command


def test_a_command_that_names_a_thing_says_whether_it_is_about_it() -> None:
    """What it is about decides who may give it; without a word it would be about the host."""

    class Silent(c.Command, frozen=True, tag="silent"):
        """It names a session."""

        scope = "read"
        lock = "host"

        session: str

    class Optional(c.Command, frozen=True, tag="optional"):
        """It may name one."""

        scope = "read"
        lock = "host"

        session: str = ""

    class Said(Silent, frozen=True, tag="said"):
        """It says so."""

        about = "session"

    with pytest.raises(TypeError, match="Silent names a session"):
        c.check_table([Silent])
    assert c.check_table([Optional, Said]) == {"optional": Optional, "said": Said}


def test_a_command_without_a_scope_a_subject_or_a_sentence_does_not_import() -> None:
    class NoScope(c.Command, frozen=True, tag="no.scope"):
        """It has a sentence."""

    class NoSentence(c.Command, frozen=True, tag="no.sentence"):
        scope = "read"

    class NoSubject(c.Command, frozen=True, tag="no.subject"):
        """It says that it is about a session and names none."""

        scope = "read"
        about = "session"

    NoSentence.__doc__ = None
    for kind in (NoScope, NoSentence, NoSubject):
        with pytest.raises(TypeError, match=kind.__name__):
            c.check_table([kind])
    with pytest.raises(TypeError, match="both called"):
        c.check_table([c.SendMessage, c.SendMessage])


def test_a_command_without_a_lock_or_a_reason_does_not_import() -> None:
    class Undeclared(c.Command, frozen=True, tag="undeclared"):
        """It declares no lock."""

        scope = "read"

    class Unexplained(c.Command, frozen=True, tag="unexplained"):
        """It needs no lock, and gives no reason."""

        scope = "read"
        lock = c.NoLock("")

    class Locked(c.Command, frozen=True, tag="locked"):
        """Many of it share one append."""

        scope = "read"
        lock = "host"
        plain = True

    refused: list[tuple[type[c.Command], str]]
    refused = [(Undeclared, "needs a lock"), (Unexplained, "the reason"), (Locked, "takes no lock")]
    for kind, words in refused:
        with pytest.raises(TypeError, match=f"{kind.__name__} .*{words}"):
            c.check_table([kind])
    for kind in c.COMMANDS.values():
        assert not isinstance(kind.lock, c.NoLock) or re.fullmatch(r"[A-Z].{20,}\.", kind.lock), kind
