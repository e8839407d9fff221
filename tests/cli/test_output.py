"""What commands print about themselves."""

import sys
from pathlib import Path

import pytest

from portico.cli.output import program


@pytest.mark.parametrize(
    ("on_path", "typed", "shown"),
    [
        (None, ".venv/bin/portico", ".venv/bin/portico"),  # a checkout after `make run`
        ("other", ".venv/bin/portico", ".venv/bin/portico"),  # another one is on the PATH
        (".venv/bin", ".venv/bin/portico", "portico"),
        (".venv/bin", "portico", "portico"),  # as a shell that found it on the PATH says it
        (None, "src/portico/__main__.py", "portico"),  # python -m portico
    ],
)
def test_hints_name_the_program_as_it_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_path: str | None, typed: str, shown: str
) -> None:
    """`make run` said "portico agents add", which a shell in a fresh checkout does not find."""
    for folder in (".venv/bin", "other"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "portico").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / on_path) if on_path else "/nonexistent")
    monkeypatch.setattr(sys, "argv", [typed])
    assert program() == shown
