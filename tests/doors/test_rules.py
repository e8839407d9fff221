"""No door appends to the log, spells out a scope or has a way in that is no command: read from the source and the
table of routes, so that a new door or route is in here by being there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from portico.kernel import commands as c
from tests.doors import sharing
from tests.doors.standing import Standing
from tests.test_imports import ROOT

anyio_backend, shared = sharing.anyio_backend, sharing.shared

DOORS = sorted(path for path in (ROOT / "doors").rglob("*.py"))
WRITES = {"append", "append_all", "post", "put_kv"}
GATE = "gate.py"
"""Finds out who asks, and holds a route's scope against it."""
CHECKS = ("require", "require_all", "may")
READING = {
    *("agent", "agents.get", "describe", "described", "readiness.check", "readiness.likely", "tools_of"),
    *(
        "find",
        "get",
        "has",
        "list",
        "summaries",
        "now",
        "default_folder",
        "turns.values",
        "clock.wait",
        "watch",
        "descendants",
    ),
    *("catalogue.get", "catalogue.in_use", "catalogue.root", "catalogue.descendants", "find_terminal", "had_terminal"),
    *(
        "log.read",
        "log.read_all",
        "log.follow",
        "log.head",
        "log.get_kv",
        "commits.on",
        "commits.on_batch",
        "log.compacted_offsets",
    ),
    *("log.epoch.encode", "members.all", "members.held", "members.owns", "members.metrics", "members.catch_up"),
    *("members.watch",),
    *("members.hear", "members.owner", "commits.failed.items", "commits.on", "commits.on_batch"),
    *("terminals.find", "terminals.list", "terminals.past", "terminals.watch", "get(session)).state.turn"),
    *("spending.unanswered", "features[Notices].visible", "features[Notices].viewing", "features[NetworkRecord].of"),
}
"""What a door asks the host besides sending commands: none of it changes anything."""
SENDING = {"do", "do_all", "commands.check_subject"}
PROCESS = {
    "server.py": {
        *("agents.update", "audit", "close", "parts.append"),
        *("members.answering", "members.listening", "members.on_held"),
    },
    "door.py": {"tools.update"},
    "broker.py": {"terminals.paces.append"},
    "login.py": {"audit"},
}
"""The process and the gate open and close the host, find its agents, and record who has logged in or out; AHP registers
the tools of its editors and how fast its readers take what terminals show."""
OWN = {"own", "lower", "encode"}
"""Tasks, which the host ends when it stops; and texts of the name `host`."""

NOT_COMMANDS = {
    ("POST", "/v1/commands"): "takes all of them",
    ("POST", "/v1/sessions/import"): "session.import, with a larger body",
    ("POST", "/v1/agents/{id}/check"): "leaves nothing: an agent is started and ended again",
    ("POST", "/v1/agents/find"): "reads what is installed",
    ("POST", "/v1/automations/check"): "reads",
    ("POST", "/v1/entry/check"): "reads",
    ("POST", "/mcp"): "its tools are commands",
    ("POST", "/hooks/{name}"): "authorised by its signature; it becomes automation.run",
    ("POST", "/login"): "the gate's",
    ("POST", "/pair"): "the gate's, with a code of device.pair",
    ("POST", "/logout"): "the gate's",
}
MAPPED = ("/api/", "/sessions", "/message", "/cancel", "/approval", "/answer", "/clear")
"""Portal and Anywhere: mappings to commands."""


def calls(path: Path) -> Iterator[tuple[ast.Attribute, ast.Call]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func, node


def test_no_door_writes_to_the_log() -> None:
    found = [
        f"{path.name}:{node.lineno}"
        for path in DOORS
        for function, node in calls(path)
        if function.attr in WRITES and ast.unparse(function.value).endswith("log")
    ]
    assert found == []


def test_no_door_checks_a_scope() -> None:
    """What a command needs is in its struct and what reading needs is in `READS`: a door asks its view by these names,
    and never the caller itself."""
    found = [
        f"{path.name}:{node.lineno} {ast.unparse(node)}"
        for path in DOORS
        if path.name != GATE
        for function, node in calls(path)
        if function.attr in CHECKS and not ast.unparse(function.value).endswith(("view", "view(request)"))
    ]
    assert found == []


def test_a_door_reads_or_sends_a_command() -> None:
    """Whatever else it calls of the host might change something behind the back of `do`."""
    found = {
        f"{path.name}:{node.lineno} {name}"
        for path in DOORS
        for function, node in calls(path)
        if (name := of_host(function)) is not None
        if name not in READING | SENDING | PROCESS.get(path.name, set()) | OWN
    }
    assert found == set()


def test_every_command_of_v1_carries_its_callers_id() -> None:
    """The header `Idempotency-Key` was ignored by a route that sent its command by itself."""
    found = [
        f"{path.name}:{node.lineno} {ast.unparse(node)}"
        for path in DOORS
        if path.parent.name == "rest"
        for function, node in calls(path)
        if function.attr == "do" and "caller(request)" in map(ast.unparse, node.args)
    ]
    assert found == []


def of_host(function: ast.Attribute) -> str | None:
    """`get` of `self._app.host.get(...)`, `features[Notices].visible` of `app.features[Notices].visible(...)`; nothing
    where it is called on something else."""
    text = ast.unparse(function)
    before, host, name = text.rpartition("host.")
    if host and (not before or before.endswith((".", "_"))):
        return name
    feature = re.search(r"\.((?:features\[|terminals\.).*)$", text)
    return feature[1] if feature is not None else None


async def test_every_route_that_changes_something_is_a_command(shared: Standing) -> None:
    """People, their tokens, hosts and retention had routes with rules of their own, which no other door had."""
    own = {(kind.http.method, kind.http.path) for kind in c.COMMANDS.values() if kind.http is not None}
    routes = {
        (method, route.path)
        for route in shared.server.gate.table
        for method in getattr(route, "methods", ())
        if method not in ("GET", "HEAD") and not route.path.startswith(MAPPED)
    }
    assert routes - own == NOT_COMMANDS.keys()
