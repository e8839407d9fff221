"""Every verb says what it does, shows an example and can speak JSON."""

from pathlib import Path
from typing import Any

import pytest
import typer

from portico.cli import VERBS, build
from tests.process import inside, portico


def commands(group: Any = None, path: tuple[str, ...] = ()) -> list[tuple[str, Any]]:
    """Every command of the whole command line with its full name."""
    group = group or typer.main.get_command(build())
    found: list[tuple[str, Any]] = []
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            found += commands(command, (*path, name))
        else:
            found.append((" ".join((*path, name)), command))
    return found


def test_every_verb_is_there() -> None:
    names = {name.split()[0] for name, _ in commands()}
    assert names == set(VERBS)
    assert {name for name, _ in commands() if name.startswith("sessions ")} == {
        f"sessions {verb}"
        for verb in (
            *("list", "show", "tail", "resume", "changes", "share", "export", "import", "delete"),
            *("found", "adopt", "native"),
        )
    }
    assert {name for name, _ in commands() if name.startswith("token ")} == {
        f"token {verb}" for verb in ("new", "list", "revoke")
    }


@pytest.mark.parametrize(("name", "command"), commands())
def test_every_verb_has_an_example_of_itself_and_words_for_every_option(name: str, command: Any) -> None:
    assert f"Example: portico {name}" in command.help
    for parameter in command.params:
        if parameter.name != "help":
            assert parameter.help, f"{name}: {parameter.name}"


@pytest.mark.parametrize("group", [(), ("sessions",), ("jobs",), ("agents",), ("log",), ("notices",), ("inbox",)])
def test_no_line_of_a_list_of_verbs_is_cut(tmp_path: Path, group: tuple[str, ...]) -> None:
    shown = inside(tmp_path / "home", *group, "--help").stdout
    assert "Commands:" in shown
    assert "..." not in shown.partition("Commands:")[2]


PROTOCOLS = ("model-server", "acp", "mcp", "sandbox run")
"""Verbs that speak a protocol of their own to programs, or print what another program prints."""


@pytest.mark.parametrize(("name", "command"), [each for each in commands() if each[0] not in PROTOCOLS])
def test_every_verb_speaks_json(name: str, command: Any) -> None:
    assert any("--json" in parameter.opts for parameter in command.params)


def test_help_and_wrong_use(tmp_path: Path) -> None:
    helped = portico(tmp_path / "home", "--help")
    assert helped.returncode == 0
    for verb in VERBS:
        assert verb in helped.stdout
    assert "\x1b" not in helped.stdout
    assert helped.stdout.isascii(), "without a terminal there are no boxes either"
    for wrong in (["nosuch"], ["serve", "--port", "many"], ["token", "new"], ["serve", "--script-delay", "-1"]):
        done = inside(tmp_path / "home", *wrong)
        assert done.returncode == 2, wrong
        assert "Traceback" not in done.stderr
        assert done.stderr.isascii()
        assert "Error: " in done.stderr


def test_version(tmp_path: Path) -> None:
    from portico import __version__

    assert portico(tmp_path / "home", "version").stdout == f"portico {__version__}\n"
    assert (
        inside(tmp_path / "home", "--version").stdout
        == inside(tmp_path / "home", "-V").stdout
        == f"portico {__version__}\n"
    )
    assert f'"portico": "{__version__}"' in inside(tmp_path / "home", "version", "--json").stdout
