"""Dependencies point inward only: doors, agents, jobs, cli -> host -> log. No door knows another."""

import ast
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src/portico"

WORDS = {
    "portico",
    "portico.addresses",
    "portico.cache",
    "portico.commands",
    "portico.correlation",
    "portico.errors",
    "portico.events",
    "portico.faults",
    "portico.limits",
    "portico.locks",
    "portico.markdown",
    "portico.redaction",
    "portico.surrogates",
    "portico.tasks",
}
"""What everybody may use. `portico` itself holds the version only."""

CORE = (
    *("__init__.py", "cache.py", "correlation.py", "errors.py", "faults.py", "limits.py"),
    *("events/*.py", "commands/*.py", "log/*.py", "host/*.py", "host/decide/*.py"),
)
"""What one has to read to know how Portico works: everything else is a room that the application registers."""
CORE_LINES = 12_000

ROOMS: dict[str, set[str]] = {
    "log": {"log"},
    "sandbox": {"sandbox"},
    "workspace": {"sandbox", "workspace"},
    "host": {"host", "log"},
    "approvals": {"approvals", "settings", "host", "workspace"},
    "sandboxes": {
        "sandboxes",
        "automation.events",
        "sandbox",
        "approvals.policy",
        "host",
        "log.log",
        "settings",
        "workspace",
    },
    "changes": {"changes", "settings", "host", "workspace"},
    "terminals": {"terminals", "sandbox", "sandboxes", "files", "host", "log.listeners", "log.log", "workspace"},
    "files": {"files", "host", "workspace"},
    "people": {
        "people",
        "command_shapes",
        "files",
        "home",
        "host",
        "native.commands",
        "settings",
        "terminals",
        "workspace",
    },
    "projects": {"projects", "home", "people.view", "host", "log.feed", "workspace"},
    "queries": {"queries", "people.view", "host", "log.log", "workspace"},
    "usage": {"usage", "automation.events", "host"},
    "budgets": {"budgets", "host", "usage", "settings"},
    "secrets": {"secrets", "home", "host"},
    "pairing": {"pairing", "home", "host", "people.identity", "people.people"},
    "drafts": {"drafts", "files.commands", "host", "jobs"},
    "native": {"native", "agents.native", "host"},
    "notices": {"notices", "automation.events", "sandbox", "budgets.budgets", "host", "settings", "workspace"},
    "configuration": {"configuration", "home", "host", "settings_edit", "settings_load"},
    "chats": {"chats", "host"},
    "client_servers": {"client_servers", "host"},
    "transcripts": {"transcripts", "host", "log.sqlite.schema"},
    "maintenance": {"maintenance", "log"},
    "cluster": {"cluster", "home", "host", "log", "settings", "terminals.commands"},
    "agents": {
        "agents",
        "approvals",
        "client_servers",
        "sandbox",
        "sandboxes",
        "host",
        "terminals",
        "workspace",
        "models",
        "mcp",
        "plugins",
        "settings",
        "settings_load",
        "home",
    },
    "jobs": {"jobs", "sandbox", "sandboxes", "host", "log.log", "workspace", "agents.agent", "secrets", "settings"},
    "automation": {
        *("automation", "host", "log.log", "workspace", "jobs", "home"),
        *("approvals.regex_timeout", "usage"),
    },
    "client": {
        "client",
        "command_shapes",
        "automation.commands",
        "automation.events",
        "changes.commands",
        "chats.commands",
        "client_servers.commands",
        "configuration.commands",
        "drafts.commands",
        "drafts.shapes",
        "files.commands",
        "native.commands",
        "notices.commands",
        "pairing.commands",
        "projects.commands",
        "sandboxes.commands",
        "sandboxes.shapes",
        "secrets.commands",
        "terminals.commands",
        "host.agent",
        "host.state",
        "home",
        "mcp",
        "usage.shapes",
    },
    "models": {"models", "sandbox", "workspace", "home"},
}
"""Room -> the rooms it may import from. The doors, the CLI and the test doubles stand outside and may use them all,
but nothing inside may use them."""

DOORS = {path.stem for path in (ROOT / "doors").iterdir() if path.is_dir() and not path.name.startswith("_")}


def modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if "__pycache__" not in path.parts)


def name_of(path: Path) -> str:
    return ".".join(("portico", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def imported(path: Path) -> set[str]:
    """The modules of ours that this file imports, anywhere in it; `from portico import x` counts as `portico.x`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            found.add(node.module or "")
            if node.module == "portico":
                found |= {f"portico.{alias.name}" for alias in node.names}
    return {name for name in found if name == "portico" or name.startswith("portico.")}


def foreign(path: Path, allowed: set[str]) -> set[str]:
    prefixes = {f"portico.{room}" for room in allowed}
    return {
        name
        for name in imported(path) - WORDS - {"portico.__version__"}
        if not any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)
    }


@pytest.mark.parametrize("room", ROOMS)
def test_dependencies_point_inward(room: str) -> None:
    wrong = {
        name_of(path): found
        for path in modules()
        if path.relative_to(ROOT).parts[0] == room and (found := foreign(path, ROOMS[room]))
    }
    assert wrong == {}


def core() -> list[Path]:
    return [path for pattern in CORE for path in ROOT.glob(pattern)]


def test_the_core_imports_nothing_else() -> None:
    named = {name_of(path) for path in core()}
    wrong = {
        name_of(path): found
        for path in core()
        if (found := {name for name in imported(path) if name not in named | {"portico.__version__"}})
    }
    assert wrong == {}


def test_the_core_is_read_in_a_day() -> None:
    assert sum(len(path.read_text().splitlines()) for path in core()) < CORE_LINES


def test_there_is_at_least_as_much_test_code_as_code() -> None:
    """`portico.testing` is test code that ships."""
    shipped = _lines(ROOT / "testing")
    assert _lines(Path(__file__).parent) + shipped >= _lines(ROOT) - shipped


def _lines(folder: Path) -> int:
    """Of Python below; packages that real agents bring along are not ours."""
    count = 0
    for here, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "node_modules"]
        count += sum(Path(here, name).read_bytes().count(b"\n") for name in names if name.endswith(".py"))
    return count


def test_every_room_has_its_row() -> None:
    """A new folder says what it may import, and what it is for."""
    outside = {"commands", "events", "doors", "cli", "testing"}
    found = {path.parent.relative_to(ROOT).parts[0] for path in ROOT.glob("*/__init__.py")}
    assert found - outside == set(ROOMS)
    for page in ("docs/architecture.md", "CONTRIBUTING.md"):
        text = (ROOT.parents[1] / page).read_text()
        assert [room for room in ROOMS if f"`{room}/`" not in text and f"src/portico/{room}/`" not in text] == []


def test_the_words_that_everybody_uses_use_nobody() -> None:
    for name in ("errors", "limits", "locks", "faults", "redaction", "surrogates", "correlation", "cache"):
        assert imported(ROOT / f"{name}.py") <= WORDS
    for path in (ROOT / "events").glob("*.py"):
        found = {name for name in imported(path) if not name.startswith("portico.events.")}
        assert found <= WORDS - {"portico.commands"}
    for path in (ROOT / "commands").glob("*.py"):
        assert {name for name in imported(path) if not name.startswith("portico.commands.")} <= WORDS


def test_no_door_knows_another() -> None:
    wrong: dict[str, set[str]] = {}
    for path in modules():
        parts = path.relative_to(ROOT).parts
        if parts[0] == "doors" and len(parts) > 2:
            others = {f"portico.doors.{door}" for door in DOORS - {parts[1]}}
            found = {name for name in imported(path) if any(name == o or name.startswith(f"{o}.") for o in others)}
            if found:
                wrong[name_of(path)] = found
    assert wrong == {}


def test_nothing_inside_knows_a_door_or_the_cli() -> None:
    outside = ("portico.doors.", "portico.cli.", "portico.testing.")
    wrong = {
        name_of(path): found
        for path in modules()
        if path.relative_to(ROOT).parts[0] not in ("doors", "cli", "testing", "__main__.py", "start.py")
        and (found := {name for name in imported(path) if f"{name}.".startswith(outside)})
    }
    assert wrong == {}


def test_the_product_does_not_need_its_test_tools() -> None:
    """Whoever installs Portico has no pytest: only the fixtures may import it."""
    for path in modules():
        tree = ast.parse(path.read_text())
        names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
        names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        if path.name != "fixtures.py":
            assert not names & {"pytest", "hypothesis", "anyio.pytest_plugin"}, name_of(path)
