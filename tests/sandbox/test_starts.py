"""No process is started past the sandbox: a walk through the code."""

import ast

from tests.test_imports import ROOT, modules, name_of

OUTSIDE = {
    "portico.workspace.adoption": "the function through which all others start",
    "portico.sandbox.attempts": "runs inside a sandbox",
    "portico.sandbox.available": "tests bubblewrap with fixed arguments",
    "portico.sandbox.cgroup": "tests systemd with fixed arguments",
    "portico.agents.acp.check": "asks node for its version",
    "portico.agents.acp.install": "a person installs an agent",
    "portico.models.download": "a person downloads a model",
    "portico.cli.model": "a person installs the model server",
    "portico.cli.native_checks": "a person tests the own program of an agent",
    "portico.cli.service": "a person installs the service",
    "portico.cli.cluster": "a person starts a cluster for a trial",
    "portico.testing.postgres": "a server for tests",
    "portico.testing.tasks.task": "checks the result of a task that measures agents, for developers",
    "portico.testing.temporal": "a server for tests",
    "portico.testing.workflow_case": "git init in the new folder of a test of a workflow",
}
"""Modules that use `subprocess` themselves, and for whom. None of them runs what an agent chooses."""

_STARTERS = {
    "subprocess": {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
    "os": {"system", "popen", "fork", "forkpty", "posix_spawn", "posix_spawnp", "execv", "execve", "execvp", "execvpe"}
    | {"spawnv", "spawnve", "spawnvp", "spawnl", "execl", "execlp"},
    "pty": {"fork", "spawn"},
    "multiprocessing": {"Process", "Pool"},
}


def calls(tree: ast.Module) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def starts_directly(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return name in _STARTERS.get(module, ())
    return False


def test_every_process_is_started_with_a_policy() -> None:
    wrong: dict[str, list[str]] = {}
    for path in modules():
        tree = ast.parse(path.read_text())
        if found := [_where(call) for call in calls(tree) if is_past_the_sandbox(call, tree, name_of(path))]:
            wrong[name_of(path)] = found
    assert wrong == {}, "start it with adoption.spawn, Child or run, and pass the policy"


def is_past_the_sandbox(call: ast.Call, tree: ast.Module, module: str) -> bool:
    if starts_directly(call):
        return module not in OUTSIDE
    return takes_policy(call, tree) and not {"policy", "confine"} & {each.arg for each in call.keywords}


def _where(call: ast.Call) -> str:
    return f"{ast.unparse(call.func)} in line {call.lineno}"


def takes_policy(call: ast.Call, tree: ast.Module) -> bool:
    name = ast.unparse(call.func)
    if name in ("adoption.spawn", "Child.start", "pty.Terminal", "Supervisor", "check_command"):
        return name != "check_command" or len(call.args) < 3
    return any(
        (alias.asname or alias.name) == name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "portico.workspace.process"
        for alias in node.names
        if alias.name == "run"
    )


def test_every_exception_still_exists() -> None:
    direct = {name_of(path) for path in modules() if any(map(starts_directly, calls(ast.parse(path.read_text()))))}
    assert set(OUTSIDE) == direct


def test_the_walk_finds_what_it_looks_for() -> None:
    tree = ast.parse("from portico.workspace.process import run\nrun('x', cwd=1)\nimport os\nos.system('x')")
    assert [takes_policy(call, tree) for call in calls(tree)] == [True, False]
    assert [starts_directly(call) for call in calls(tree)] == [False, True]
    assert ROOT.name == "portico"
