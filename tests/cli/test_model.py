"""`portico model offer`: a toy for whoever has no model, never without a yes."""

from pathlib import Path

import pytest

from tests.cli.terminal import TerminalCommand
from tests.process import inside


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without any model, on a machine without any endpoint."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # no agents either
    home = tmp_path / "home"
    (home / "models").mkdir(parents=True)
    return home


def models(home: Path) -> list[str]:
    return [each.name for each in (home / "models").iterdir()]


def test_without_a_terminal_it_prints_the_command(home: Path) -> None:
    said = inside(home, "model", "offer")
    assert (said.returncode, said.stdout) == (0, "")
    assert "a toy that only chats: smollm2-135m" in said.stderr
    assert "For real work add an agent" in said.stderr
    assert "98 MB" in said.stderr
    assert said.stderr.count("\n") == 1
    assert said.stderr.endswith("portico model offer --yes\n")
    assert models(home) == []


def test_on_a_terminal_the_answer_is_no_unless_one_says_yes(home: Path) -> None:
    with TerminalCommand(home, "model", "offer") as command:
        assert "98 MB" in command.expect(r"Get it\? \[y/N\]")
        command.enter("\n")
        assert command.finish()[0] == 0
    assert models(home) == ["offered"]
    with TerminalCommand(home, "model", "offer") as command:
        assert command.finish() == (0, "")  # asked once


def test_whoever_has_a_model_is_not_asked(home: Path) -> None:
    (home / "models/mine.gguf").write_bytes(b"GGUF")
    assert inside(home, "model", "offer").stderr == ""


def test_the_toy_alone_says_what_it_is(home: Path) -> None:
    """Once it was there, `make run` said nothing any more, and people took it for a model that works."""
    for name in ("smollm2-135m.gguf", "offered"):
        (home / "models" / name).write_bytes(b"GGUF")
    said = inside(home, "model", "offer").stderr
    assert said.count("\n") == 1
    assert said.startswith("The only model here is a toy: it chats and does no work. For real work add an agent (`")


def test_whoever_has_a_real_agent_is_not_asked(home: Path, tmp_path: Path) -> None:
    """A machine with opencode on it was offered a toy."""
    program = tmp_path / "bin" / "opencode"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert inside(home, "model", "offer", PATH=f"{program.parent}:/usr/bin:/bin").stderr == ""
