"""The system message: what is sent, to which models, and that its version is raised with its text."""

import hashlib
from pathlib import Path

import pytest

from portico.agents.loop import prompt
from portico.agents.loop.prompt import describe_place, is_small, system_message
from portico.agents.loop.roots import Roots
from portico.agents.loop.tools import TOOLS
from portico.testing.model import ScriptedCall, Step
from tests.agents.loop.conftest import Desk

TEXTS = {2: "db6bbf1519c2"}
"""By version: the digest of the texts. Another text needs another version, which reports can name."""


def test_another_text_has_another_version() -> None:
    text = prompt.SHORT + prompt.NATIVE + prompt.FULL
    assert TEXTS[prompt.VERSION] == hashlib.sha256(text.encode()).hexdigest()[:12]


async def test_what_is_sent(desk: Desk) -> None:
    desk.settings('[agents.loop]\nprotocol = "tools"\n[agent]\nrequire_approval = "none"\n')
    (desk.project / "src").mkdir()
    (desk.project / "AGENTS.md").write_text("Use tabs.\n")
    write = ScriptedCall(name="createFile", args={"path": "new.txt", "content": "x"})
    desk.says(Step(calls=[write]), Step(say="Done."))
    await desk.run("Look.")
    await desk.run("Again.")
    first, *others = [each.body["messages"][0]["content"] for each in desk.server.requests]
    assert first.startswith(
        f"You are a coding agent in the project {str(desk.project)!r}. Paths are relative to it.\n\nHow to work:\n"
    )
    for words in (
        "How to answer:",
        "Where you are:",
        "Platform: ",
        "Date: ",
        "Git work tree on branch ",
        "Verify: run the tests",
    ):
        assert words in first
    assert "Top level: AGENTS.md, src/." in first
    assert first.endswith("Use tabs.")
    assert set(others) == {first}  # the prompt cache stays valid although a file was created
    assert len(first) < 4000


@pytest.mark.parametrize(
    ("model", "small"),
    [
        ("gpt-5", False),
        ("qwen2.5-coder:1.5b", True),
        ("llama-3.2-3b-instruct", True),
        ("qwen3-coder-30b-a3b", False),
        ("llama3.1:70b", False),
        ("mistral-7B", True),
        ("gpt-4.1", False),
        ("claude-sonnet-4-5", False),
    ],
)
def test_small_models_get_a_short_text(model: str, small: bool) -> None:
    assert is_small(model) is small
    text = system_message("/a", TOOLS, native=True, model=model)
    assert ("How to work:" in text) is not small
    assert "approval of a person" in text


def test_where_it_is(tmp_path: Path) -> None:
    assert "The folder is empty." in describe_place(Roots(str(tmp_path), ["*"]), 0)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text("0123abc\n")
    for number in range(70):
        (tmp_path / f"{number:02}").touch()
    (tmp_path / "node_modules").mkdir()
    text = describe_place(Roots(str(tmp_path), ["*"]), 86_400_000)
    assert "Git work tree on a detached commit." in text
    assert "58, 59 and more." in text
    assert "node_modules" not in text


def test_only_allowed_folders_are_named(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/a.py").touch()
    (tmp_path / "keys").mkdir()
    text = describe_place(Roots(str(tmp_path), ["src"]), 0)
    assert ("src/a.py" in text, "keys" in text) == (True, False)
