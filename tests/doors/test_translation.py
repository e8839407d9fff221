"""Doors translate: what changes something is a command. This reads their source, so a new door is held to it too."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src/portico"
PLACES = (ROOT / "doors", ROOT / "server")
"""The server's gate and login run before the doors: the same rules apply to them."""
PROCESS = {"server/server.py"}
"""No door: it puts the process together."""
READING = {"server/gate.py"}
"""Where the scope of a route is looked at. Commands are authorised in `host.do`, rules about reading are the view's."""
AUDITED = {"server/login.py"}
"""Where who came in is written down by the door: to become a command."""
CURSORS = {"doors/portal/live.py"}
"""Where a reader's position is kept, beside the log."""

WRITING = {"append", "append_all", "post", "put_kv", "put_blob", "audit", "compact", "delete", "expire_kv", "journal"}
CHANGING = {
    *("start", "fork", "spawn", "delete", "audit", "rename", "set_model", "configure", "archive", "mark_read", "join"),
    *("leave", "keep", "send", "resume", "truncate", "close", "reopen", "cancel", "answer", "complete", "propose"),
    *("report", "abandon", "add", "edit", "remove", "reorder", "release", "offer", "revoke", "choose", "drop"),
    *("dispose", "input", "go_on", "begin", "adopt", "append", "post", "end_turn", "kill", "deleted", "changed"),
}
OWNERS = {
    *("host", "_host", "session", "_session", "chat", "queue", "approvals", "questions", "tools", "folders", "grants"),
    *("shared", "terminals", "_terminals", "terminal", "_terminal", "lifecycle", "catalogue", "runner"),
}
"""The last name before the method: `connection.host.delete(...)`, `(await host.get(...)).send(...)`."""


def calls(tree: ast.AST) -> Iterator[tuple[str, str, int]]:
    """Whose method, which one, and where."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield _owner(node.func.value), node.func.attr, node.lineno


def _owner(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Await(value=value):
            return _owner(value)
        case ast.Call(func=ast.Attribute(value=value, attr="get" | "part" | "find")):
            return _owner(value)
        case ast.Call(func=func):
            return _owner(func)
    return ""


def found(source: str) -> list[tuple[str, str]]:
    """What a door must not do, in this source: ("writes", "log.append"), ..."""
    wrong: list[tuple[str, str]] = []
    for owner, method, _ in calls(ast.parse(source)):
        if owner in ("log", "_log") and method in WRITING:
            wrong.append(("cursor" if method == "journal" else "writes", f"{owner}.{method}"))
        elif owner in OWNERS and method in CHANGING:
            wrong.append(("changes", f"{owner}.{method}"))
        elif method in ("require", "may") and owner not in ("view", "_view"):  # rules about reading are the view's
            wrong.append(("scope", f"{owner}.{method}"))
    return wrong


def test_a_door_only_translates() -> None:
    wrong: dict[str, set[tuple[str, str]]] = {}
    for path in sorted(path for place in PLACES for path in place.rglob("*.py")):
        name = str(path.relative_to(ROOT))
        allowed = {"scope"} if name in READING else {"cursor"} if name in CURSORS else set()
        if name in AUDITED:
            allowed = {"changes"}
        faults = {each for each in found(path.read_text()) if each[0] not in allowed}
        if faults and name not in PROCESS:
            wrong[name] = faults
    assert wrong == {}


def test_the_exceptions_are_needed() -> None:
    for name in (*READING, *CURSORS):
        assert found((ROOT / name).read_text()), name


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("await app.host.log.append('host', event)", ("writes", "log.append")),
        ("self._log.put_kv(HOST, 'a', b'')", ("writes", "log.put_kv")),
        ("await connection.host.audit('x', by)", ("changes", "host.audit")),
        ("await host.delete(ident, by='x')", ("changes", "host.delete")),
        ("await (await host.get(ident)).send(message, by='x')", ("changes", "host.send")),
        ("await session.approvals.answer(ident, allow=True, by='x')", ("changes", "approvals.answer")),
        ("await host.terminals.dispose(ident, by='x')", ("changes", "terminals.dispose")),
        ("caller(request).require('files')", ("scope", "caller.require")),
        ("if who.may('admin'): pass", ("scope", "who.may")),
    ],
)
def test_what_is_looked_for_is_found(source: str, fault: tuple[str, str]) -> None:
    assert fault in [(kind, name.replace("_log", "log")) for kind, name in found(source)]


@pytest.mark.parametrize("source", ["await host.do(command, caller)", "host.log.head(channel)", "seen.add(session.id)"])
def test_what_is_no_fault_is_none(source: str) -> None:
    assert found(source) == []
