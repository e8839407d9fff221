"""No door appends to the log, spells out a scope or has a way in that is no command: read from the source and the
table of routes, so that a new door or route is in here by being there."""

import ast
from collections.abc import Iterator
from pathlib import Path

from portico import commands as c
from tests.doors import sharing
from tests.doors.standing import Standing
from tests.test_imports import ROOT

anyio_backend, shared = sharing.anyio_backend, sharing.shared

DOORS = sorted(path for path in (ROOT / "doors").rglob("*.py"))
WRITES = {"append", "append_all", "post", "put_kv"}
PROCESS = {"server.py": "the process itself: it writes down which tokens have come and gone while no host ran"}
GATE = {"gate.py", "identity.py"}
"""Who asks: they find out the caller, and hold a route's scope against it."""

NOT_COMMANDS = {
    ("POST", "/v1/commands"): "takes all of them",
    ("PATCH", "/v1/sessions/{id}"): "several commands together",
    ("POST", "/v1/sessions/import"): "session.import, with a larger body",
    ("POST", "/v1/agents/{id}/check"): "leaves nothing: an agent is started and ended again",
    ("POST", "/v1/automations/check"): "reads",
    ("POST", "/v1/entry/check"): "reads",
    ("POST", "/mcp"): "its tools are commands",
    ("POST", "/hooks/{name}"): "authorised by its signature; it becomes automation.run",
    ("POST", "/login"): "the gate's",
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
        if path.name not in PROCESS
        for function, node in calls(path)
        if function.attr in WRITES and ast.unparse(function.value).endswith("log")
    ]
    assert found == []


def test_no_door_spells_out_a_scope_that_it_checks() -> None:
    """What a command needs is in its struct, and what reading needs is in `READS`."""
    found = [
        f"{path.name}:{node.lineno} {ast.unparse(node)}"
        for path in DOORS
        if path.name not in GATE
        for function, node in calls(path)
        if function.attr in ("require", "may")
        if any(isinstance(each, ast.Constant) and each.value in set(c.SCOPES) - {"admin"} for each in node.args)
        and not ast.unparse(function.value).endswith("view")
    ]
    assert found == []


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
