"""Dependencies point inward only: doors, agents, jobs, cli -> host -> log. No door knows another."""

import ast
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src/portico"

WORDS = {
    "portico",
    "portico.addresses",
    "portico.kernel.cache",
    "portico.kernel.commands",
    "portico.kernel.correlation",
    "portico.kernel.errors",
    "portico.kernel.events",
    "portico.kernel.faults",
    "portico.kernel.limits",
    "portico.limits",
    "portico.locks",
    "portico.markdown",
    "portico.redaction",
    "portico.surrogates",
    "portico.tasks",
}
"""What everybody may use. `portico` itself holds the version only."""

KERNEL_LINES = 12_000
"""With the SQLite engine. The limit may only get smaller."""

ROOMS: dict[str, set[str]] = {
    "agents": {
        "agents",
        "features.approvals",
        "features.client_servers",
        "features.sandboxes",
        "features.terminals",
        "kernel",
        "mcp",
        "models",
        "sandbox",
        "server.embedded",
        "server.home",
        "server.plugins",
        "server.settings",
        "server.settings_load",
        "workspace",
    },
    "client": {
        "client",
        "command_shapes",
        "features.approvals.commands",
        "features.automations.commands",
        "features.automations.events",
        "features.changes.commands",
        "features.chats.commands",
        "features.client_servers.commands",
        "features.configuration.commands",
        "features.drafts.commands",
        "features.drafts.shapes",
        "features.files.commands",
        "features.folders.commands",
        "features.hosts.commands",
        "features.jobs.commands",
        "features.native.commands",
        "features.notices.commands",
        "features.pairing.commands",
        "features.people.commands",
        "features.projects.commands",
        "features.sandboxes.commands",
        "features.sandboxes.shapes",
        "features.secrets.commands",
        "features.terminals.commands",
        "features.usage.shapes",
        "kernel.agent",
        "kernel.state",
        "mcp",
        "server.home",
    },
    "cluster": {
        "features.jobs.commands",
        "features.jobs.events",
        "features.jobs.secret_inputs",
        "cluster",
        "features.terminals.commands",
        "kernel",
        "server.embedded",
        "server.home",
        "server.settings",
    },
    "features.approvals": {"features.approvals", "kernel", "server.settings", "workspace"},
    "features.automations": {
        "features.approvals.regex_timeout",
        "features.automations",
        "features.jobs",
        "features.usage",
        "kernel",
        "server.home",
        "workspace",
    },
    "features.board": {"features.board", "features.people.view", "features.search", "kernel", "workspace"},
    "features.budgets": {"features.budgets", "features.usage", "kernel", "server.settings"},
    "features.changes": {"features.changes", "kernel", "server.settings", "workspace"},
    "features.chats": {"features.chats", "kernel"},
    "features.client_servers": {"features.client_servers", "kernel"},
    "features.configuration": {
        "features.configuration",
        "kernel",
        "server.home",
        "server.settings_edit",
        "server.settings_load",
    },
    "features.drafts": {"features.drafts", "features.files.commands", "features.jobs", "kernel"},
    "features.files": {"features.files", "kernel", "workspace"},
    "features.folders": {"features.folders", "kernel"},
    "features.hosts": {"features.hosts", "kernel"},
    "features.jobs": {
        "agents.agent",
        "features.jobs",
        "features.sandboxes",
        "features.secrets",
        "kernel",
        "sandbox",
        "server.settings",
        "workspace",
    },
    "features.native": {"agents.native", "features.native", "kernel"},
    "features.notices": {
        "features.jobs.commands",
        "features.jobs.events",
        "features.automations.events",
        "features.budgets.budgets",
        "features.notices",
        "kernel",
        "sandbox",
        "server.settings",
        "workspace",
    },
    "features.pairing": {
        "features.pairing",
        "server.identity",
        "features.people.people",
        "kernel",
        "server.home",
    },
    "features.people": {
        "features.jobs.commands",
        "features.jobs.events",
        "command_shapes",
        "features.files",
        "features.native.commands",
        "features.people",
        "features.terminals",
        "features.transcripts.commands",
        "kernel",
        "server.home",
        "server.settings",
        "workspace",
        "server.identity",
    },
    "features.projects": {"features.people.view", "features.projects", "kernel", "server.home", "workspace"},
    "features.readiness": {"features.readiness", "kernel"},
    "features.sandboxes": {
        "features.approvals.policy",
        "features.automations.events",
        "features.sandboxes",
        "kernel",
        "sandbox",
        "server.settings",
        "workspace",
    },
    "features.search": {
        "features.board",
        "features.people.view",
        "features.search",
        "kernel",
        "server.home",
        "workspace",
    },
    "features.secrets": {"features.secrets", "kernel", "server.home"},
    "features.terminals": {
        "features.files",
        "features.sandboxes",
        "features.terminals",
        "kernel",
        "sandbox",
        "workspace",
    },
    "features.transcripts": {"features.transcripts", "kernel"},
    "features.usage": {
        "features.jobs.commands",
        "features.jobs.events",
        "features.automations.events",
        "features.usage",
        "kernel",
    },
    "kernel": {"kernel"},
    "models": {"models", "sandbox", "server.home", "workspace"},
    "sandbox": {"sandbox"},
    "server.maintenance": {"cluster.postgres", "kernel.log", "server.maintenance"},
    "workspace": {"sandbox", "workspace"},
    "server": {
        "agents",
        "cluster",
        "command_shapes",
        "features",
        "kernel",
        "mcp",
        "models",
        "sandbox",
        "server",
        "workspace",
    },
}
"""Room -> what it may import. The doors, the command line and the test tools are outside: they may import everything,
and nothing inside imports them."""

DOORS = {path.stem for path in (ROOT / "doors").iterdir() if path.is_dir() and not path.name.startswith("_")}


def modules() -> list[Path]:
    return sorted(path for path in ROOT.rglob("*.py") if "__pycache__" not in path.parts)


def name_of(path: Path) -> str:
    return ".".join(("portico", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")


def imported(path: Path) -> set[str]:
    """The modules of ours that this file imports, anywhere; `from a import b` counts as `a.b` if b is a module."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            module = node.module or ""
            found |= {_module(module, alias.name) for alias in node.names}
    return {name for name in found if name == "portico" or name.startswith("portico.")}


def _module(package: str, name: str) -> str:
    """The module that `from package import name` is about."""
    if package == "portico" and name == "__version__":
        return "portico.__version__"
    below = ROOT.joinpath(*package.split(".")[1:], name)
    return f"{package}.{name}" if below.is_dir() or below.with_suffix(".py").is_file() else package


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
        if f"{name_of(path)}.".startswith(f"portico.{room}.") and (found := foreign(path, ROOMS[room]))
    }
    assert wrong == {}


def test_the_kernel_imports_nothing_else() -> None:
    wrong = {
        name_of(path): found
        for path in modules()
        if f"{name_of(path)}.".startswith("portico.kernel.")
        and (found := {name for name in imported(path) if f"{name}.".removeprefix("portico.")[:7] != "kernel."})
        - {"portico", "portico.__version__"}
    }
    assert wrong == {}


def test_the_kernel_is_read_in_a_day() -> None:
    assert _lines(ROOT / "kernel") <= KERNEL_LINES


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
    """A new folder declares what it may import, and the documentation describes it."""
    outside = {"doors", "cli", "testing", "features"}
    found = {path.parent.name for path in ROOT.glob("*/__init__.py")} - outside
    found |= {f"features.{path.parent.name}" for path in ROOT.glob("features/*/__init__.py")}
    assert found == {room for room in ROOMS if room != "server.maintenance"}
    for page in ("docs/architecture.md", "CONTRIBUTING.md"):
        text = (ROOT.parents[1] / page).read_text()
        named = {room: room.rpartition(".")[2] for room in ROOMS}
        assert [room for room, name in named.items() if not re.search(rf"[`/]{name}/`", text)] == []


def test_the_words_that_everybody_uses_use_nobody() -> None:
    for name in (
        "kernel/errors",
        "kernel/limits",
        "limits",
        "locks",
        "kernel/faults",
        "redaction",
        "surrogates",
        "kernel/cache",
    ):
        assert imported(ROOT / f"{name}.py") <= WORDS
    for path in (ROOT / "kernel/events").glob("*.py"):
        found = {name for name in imported(path) if not name.startswith("portico.kernel.events.")}
        assert found <= WORDS - {"portico.kernel.commands"} | {"portico.kernel"}
    for path in (ROOT / "kernel/commands").glob("*.py"):
        found = {name for name in imported(path) if not name.startswith("portico.kernel.commands.")}
        assert found <= WORDS | {"portico.kernel"}


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
