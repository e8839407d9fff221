"""Decides which calls a remembered answer covers, and whether two actions are the same.

The attack: the approval of one call also allows another call. So an approval covers what was shown: this program and
subcommand, these files, or this call. `Breadth` can request more, never beyond the session's folder. A call that
cannot be judged (`Action.unclear`) is covered only by an approval of the identical call: its unknown fields may do
anything.
"""

import os
import shlex
from collections.abc import Iterable
from hashlib import sha256

from portico.features.approvals import commandline, shell_syntax
from portico.kernel.action import Action
from portico.kernel.events import Breadth


def subcommands(action: Action) -> list[list[str]] | None:
    """Return the plain commands that it runs one after another; None if it does more than that."""
    if action.odd_env:
        return None
    return commandline.split(action.text) if action.text is not None else None


def programs(action: Action) -> list[list[str]] | None:
    """Return every command that is started, also inside substitutions; None if that cannot be determined."""
    found = shell_syntax.started(action.argv) if action.argv else shell_syntax.commands(action.line or "")
    variables = [["export", *(f"{name}={value}" for name, value in action.odd_env)]] if action.odd_env else []
    return [*variables, *found] if found is not None else None


def same(one: Action, other: Action) -> bool:
    """Return whether two actions do the same. A list of words and the equivalent line are the same."""
    return (one.kind, one.odd_env, one.cwd, _canonical(one), one.files) == (
        other.kind,
        other.odd_env,
        other.cwd,
        _canonical(other),
        other.files,
    )


_SHELLS = frozenset(f"{folder}{name}" for folder in ("", "/bin/", "/usr/bin/") for name in ("sh", "bash", "zsh"))
"""Exactly these names: `./bash` could be any program."""


def _canonical(action: Action) -> str | None:
    if len(action.argv) == 3 and action.argv[0] in _SHELLS and action.argv[1] in ("-c", "-lc"):
        return action.argv[2].strip()
    if action.argv:
        return shlex.join(action.argv)
    plain = commandline.split(action.line) if action.line is not None else None
    return shlex.join(plain[0]) if plain is not None and len(plain) == 1 else (action.line or "").strip() or None


# -- what a remembered answer covers -----------------------------------------------------------------------------

_RULE, _LINE, _PATH, _FOLDER, _CALL = "command:", "line:", "path:", "folder:", "call:"


def coverage(action: Action, paths: Iterable[str], input: str, home: str) -> list[str]:
    """Return what a remembered approval covers: this program and subcommand, these files, or this call.
    Empty: the tool with any input (`other`)."""
    if action.unclear:
        return [_identical(action, input, home)]
    if action.text is not None:
        plain = subcommands(action)
        return [_rule(words) for words in plain] if plain else [f"{_LINE}{action.shown(home)}"]
    if action.kind in ("read", "write") and (named := list(paths)):
        return [f"{_PATH}{each}" for each in named]
    return [_identical(action, input, home)] if action.kind != "other" else []


def widened(action: Action, covers: list[str], breadth: Breadth, home: str) -> list[str] | None:
    """Return the coverage of an approval for more than was shown; None: this action has no such breadth."""
    if breadth == "shown":
        return covers
    if action.unclear:
        return None
    files = [each.removeprefix(_PATH) for each in covers if each.startswith(_PATH)]
    if not files:
        return [] if breadth == "all" and covers else None
    root = os.path.realpath(home)
    if not all(_within(path, root) for path in files):
        return None
    return sorted({f"{_FOLDER}{root if breadth == 'all' else os.path.dirname(path)}" for path in files})


def _within(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


_SCRIPTS = frozenset({"npm", "pnpm", "yarn"})
_STARTS = frozenset({"run", "exec", "dlx", "x", "compose", "config", "alias", "env", "remote", "set"})
"""Subcommands followed by another command (`uv run`, `docker exec`) or by something run later (`git config`)."""
_WITH_SUBCOMMANDS = frozenset(
    {"git", "gh", "glab", "npm", "pnpm", "yarn", "bun", "deno", "cargo", "rustup", "go", "pip", "pip3", "uv", "poetry"}
    | {"pdm", "hatch", "pipenv", "conda", "docker", "podman", "kubectl", "helm", "terraform", "dotnet", "mix", "bundle"}
    | {"composer", "swift", "flutter", "dart", "zig", "cabal", "stack", "brew", "apt", "apt-get", "systemctl", "nx"}
    | {"ruff", "alembic", "find"}
)
"""Programs with subcommands. For other programs the second word is a file (`cp a b`) or one of several targets
(`make test deploy`). The arguments after the folder of `find` only read, except the options in `starts_another`."""


def _rule(words: list[str]) -> str:
    """Return the rule for a command: `npm test` for `npm test --watch`, the script for `npm run lint`. A command with
    no subcommand (`cp a b`), with an option in its place, or that runs another command (`uv run x`) covers itself."""
    if words[0] in _SCRIPTS and words[1:2] == ["run"]:
        named = 3
    else:
        named = 0 if words[0] not in _WITH_SUBCOMMANDS or words[1:2] == [] or words[1] in _STARTS else 2
    if not named or words[1].startswith("-") or commandline.starts_another(words):
        return f"{_LINE}{shlex.join(words)}"
    return f"{_RULE}{shlex.join(words[:named])}"


def covered(
    covers: Iterable[str], action: Action, paths: Iterable[str], input: str, home: str, *, allow: bool = True
) -> bool:
    """Return whether a remembered answer covers this action. A refusal (`allow=False`) also covers unclear actions:
    they include what was refused."""
    known = frozenset(covers)
    if _identical(action, input, home) in known:
        return True
    if action.unclear and allow:
        return False
    if action.text is not None:
        plain = subcommands(action)
        if f"{_LINE}{action.shown(home)}" in known:
            return True
        return bool(plain) and all(_covers(known, words) for words in plain or ())
    named = list(paths)
    folders = [each.removeprefix(_FOLDER) for each in known if each.startswith(_FOLDER)]
    return (
        action.kind in ("read", "write")
        and bool(named)
        and all(f"{_PATH}{each}" in known or any(_within(each, folder) for folder in folders) for each in named)
    )


def _covers(known: frozenset[str], words: list[str]) -> bool:
    return f"{_LINE}{shlex.join(words)}" in known or _rule(words) in known


def _identical(action: Action, input: str, home: str) -> str:
    """Hash a call. An agent may send command and files separately from the input: an unclear call includes them."""
    beside = (action.kind, action.shown(home), *action.files) if action.unclear else ()
    text = "\0".join([input, *(each or "" for each in beside)])
    return f"{_CALL}{sha256(text.encode('utf-8', 'replace')).hexdigest()}"
