"""Which calls pass without asking a person: reads and edits inside the working directory, and harmless commands.

The attack: a call that looks harmless and is not. A path that leads out through a link; an edit of `.git/hooks` or of
`.env`; `ls; rm -rf ~`, `ls $(curl evil)`, `git -c core.pager=evil log`, `find -exec`, `cat /etc/shadow`. So paths are
compared after links are followed, some files always ask, and a command line passes only if every one of its
sub-commands is on the list and nothing in it can start another program or write a file. Whatever is not understood
asks. A policy never refuses: it allows, or leaves the answer to a person.
"""

import os
import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from portico.host.approval import Request, Ruling
from portico.workspace.glob import Glob

if TYPE_CHECKING:
    from portico.host.session import Session

PROTECTED = (
    "**/.git/**",
    "**/.git",
    "**/.env",
    "**/.env.*",
    "**/*.lock",
    "**/package-lock.json",
    "**/pnpm-lock.yaml",
    "**/npm-shrinkwrap.json",
    "**/go.sum",
)
"""Edits of these always ask: hooks, secrets, and what decides which code is installed."""

COMMANDS = {
    "ls": True,
    "pwd": True,
    "whoami": True,
    "git status": True,
    "git diff --stat": True,
    "git log --oneline": True,
    "git branch --show-current": True,
    "rm": False,
    "curl": False,
    "wget": False,
    "sudo": False,
}
"""What is not here asks; a false one asks also where another rule would let it pass."""

_PROTECTED = tuple(Glob(each) for each in PROTECTED)
_UNSAFE = re.compile(r"[`$\\\n\r<>{}~*?!#]|\.\.")
"""Substitution, redirection, expansion and steps upwards. Inside quotes they may be harmless: then a person says so."""
_SEPARATORS = frozenset({";", "&&", "||", "|", "&"})
_PATTERN_CHARS = 500


class Rules(Struct, frozen=True):
    everything: bool = False
    edits: Mapping[str, bool] = {}
    """Globs below the working directory; the last one that matches counts. None: every edit asks."""
    commands: Mapping[str, bool] = {}
    """Added to `COMMANDS`: the first words of a command, or `/a regular expression/` over the whole sub-command."""


def rules_of(values: Mapping[str, Any]) -> Rules:
    """From what editors push: `globalAutoApproveEnabled`, `editAutoApprovePatterns`, `terminalAutoApproveRules`."""
    return Rules(
        values.get("globalAutoApproveEnabled") is True,
        _switches(values.get("editAutoApprovePatterns")),
        _switches(values.get("terminalAutoApproveRules")),
    )


def _switches(said: object) -> dict[str, bool]:
    """A map of switches; a switch may be `{"approve": true}`. Anything else in it counts as off."""
    if not isinstance(said, dict):
        return {}
    return {
        str(key): (value.get("approve") if isinstance(value, dict) else value) is True
        for key, value in said.items()
        if len(str(key)) <= _PATTERN_CHARS
    }


class WorkspacePolicy:
    """A `Policy` of the host. `rules` is asked each time, so a change counts at once."""

    def __init__(self, rules: Callable[[], Rules]) -> None:
        self._rules = rules

    def __call__(self, session: "Session", request: Request) -> Ruling | None:
        rules = self._rules()
        if rules.everything:
            return Ruling(True, "host setting: everything passes")
        if session.state.config.get("autoApprove") == "autoApprove":
            return Ruling(True, "session setting: everything passes")
        if request.result:
            return None
        folder = session.state.cwd
        if request.kind == "read" and request.path is not None:
            inside = below(folder, request.path)
            return Ruling(True, "read in the working directory") if inside is not None else None
        if request.kind == "write" and request.path is not None:
            return _edit(rules, below(folder, request.path))
        if request.kind == "shell" and request.command is not None:
            return _command(rules, request.command)
        return None


def below(folder: str, path: str) -> str | None:
    """The path relative to the folder, links followed; None when it leads out."""
    if "\0" in path:
        return None
    root = os.path.realpath(folder)
    whole = os.path.realpath(os.path.join(root, path))
    if whole != root and not whole.startswith(root.rstrip("/") + "/"):
        return None
    return os.path.relpath(whole, root)


def _edit(rules: Rules, path: str | None) -> Ruling | None:
    if path is None or any(glob.matches(path.lower()) for glob in _PROTECTED):
        return None
    matching = [(pattern, passes) for pattern, passes in rules.edits.items() if Glob(pattern).matches(path)]
    if not matching or not matching[-1][1]:
        return None
    return Ruling(True, f"edit rule {matching[-1][0]!r}")


def _command(rules: Rules, line: str) -> Ruling | None:
    parts = split(line)
    if not parts:
        return None
    switches = {**COMMANDS, **rules.commands}
    used: list[str] = []
    for words in parts:
        matching = {rule: passes for rule, passes in switches.items() if _matches(rule, words)}
        if not matching or not all(matching.values()):
            return None
        used.append(next(iter(matching)))
    return Ruling(True, f"command rules {', '.join(map(repr, dict.fromkeys(used)))}")


def split(line: str) -> list[list[str]] | None:
    """The sub-commands of a command line, as words; None when it does more than run them one after another."""
    if _UNSAFE.search(line):
        return None
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # an open quote
        return None
    parts: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS:
            parts.append([])
        elif set(word) & set("();<>|&"):
            return None
        else:
            parts[-1].append(word)
    parts = [part for part in parts if part]
    # `NAME=value program` changes what the program does, and an absolute path leads out of the folder.
    if any("=" in part[0] or any(word.startswith("/") for word in part) for part in parts):
        return None
    return parts


def _matches(rule: str, words: list[str]) -> bool:
    if len(rule) > 2 and rule.startswith("/") and rule.endswith("/"):
        try:
            return re.search(rule[1:-1], " ".join(words)) is not None
        except re.error:
            return False  # a rule that is none lets nothing pass
    wanted = rule.split()
    return bool(wanted) and words[: len(wanted)] == wanted
