"""What a call is about to do: one value, from which the rule decides, the card is drawn and the process is started.

The attack: a call that is judged by one thing and does another. A title that looks like a command; arguments or an
environment beside the command that nobody looked at; a folder that is not the one people think of. So an agent's
adapter says once what would happen, as an `Action`; whatever it cannot say exactly is `unclear`, and asks.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Literal

from msgspec import Struct

from portico.host import commandline, shell_syntax

Kind = Literal["read", "write", "shell", "other"]

_QUIET_NAMES = frozenset(
    {"TERM", "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"}
    | {"LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TZ", "PYTHONUNBUFFERED", "PYTHONIOENCODING"}
    | {"AGENT_SESSION_ID"}  # goose marks each command with the name of its own session
)
_QUIET_VALUE = re.compile(r"[\w.@:+-]{0,64}\Z", re.ASCII)
_PAGERS = frozenset({"PAGER", "GIT_PAGER", "MANPAGER", "GH_PAGER"})


class Action(Struct, frozen=True, omit_defaults=True):
    """Made by the adapter of an agent, once per call. Nothing else about the call is judged."""

    kind: Kind = "other"
    """By what it does; what an agent calls it decides nothing."""
    line: str | None = None
    """A line for a shell; or `argv`."""
    argv: tuple[str, ...] = ()
    """Program and arguments, started without a shell."""
    env: tuple[tuple[str, str], ...] = ()
    """What the agent wants in the environment, beside what every command gets."""
    cwd: str = ""
    """The folder it runs in; empty: the session's."""
    files: tuple[str, ...] = ()
    """All files that it is about."""
    unclear: str = ""
    """Why it cannot be judged: then no rule and no name lets it pass."""

    @property
    def odd_env(self) -> tuple[tuple[str, str], ...]:
        """Variables that may change what a program does."""
        return tuple(each for each in self.env if not _harmless(*each))

    @property
    def text(self) -> str | None:
        """The command itself, as a shell would read it."""
        return shlex.join(self.argv) if self.argv else self.line

    def shown(self, home: str = "") -> str | None:
        """The whole command, as a person is asked: with its environment, and its folder if that is not `home`."""
        text = self.text
        if text is None:
            return None
        variables = "".join(f"{name}={shlex.quote(value)} " for name, value in self.odd_env)
        folder = f"cd {shlex.quote(self.cwd)} && " if self.cwd and self.cwd.rstrip("/") != home.rstrip("/") else ""
        return f"{folder}{variables}{text}"

    def parts(self) -> list[list[str]] | None:
        """The plain commands that it runs one after another; None when it does more than that."""
        if self.odd_env:
            return None
        return commandline.split(self.text) if self.text is not None else None

    def programs(self) -> list[list[str]] | None:
        """Every command that is started, also inside of substitutions; None when that cannot be known."""
        if self.argv:
            return shell_syntax.started(self.argv)
        return shell_syntax.commands(self.line) if self.line is not None else []

    def same(self, other: "Action") -> bool:
        """Would the same thing happen? A list of words and the line that stands for it are the same."""
        return (self.kind, self.odd_env, self.cwd, _canonical(self), self.files) == (
            other.kind,
            other.odd_env,
            other.cwd,
            _canonical(other),
            other.files,
        )


def command(line: str | Sequence[str], *, cwd: str = "", env: Mapping[str, str] | None = None) -> Action:
    """A line for a shell, or a list of words that are started as they are."""
    variables = tuple(sorted((env or {}).items()))
    if isinstance(line, str):
        return Action("shell", line, env=variables, cwd=cwd)
    return Action("shell", argv=tuple(line), env=variables, cwd=cwd)


def of(kind: str, path: str | None = None, line: str | None = None) -> Action:
    """From the few words that an agent of ours says; an unknown kind is `other`."""
    files = (path,) if path else ()
    known: Kind = kind if kind in ("read", "write", "shell") else "other"  # type: ignore[assignment]
    return Action(known, line, files=files)


def _harmless(name: str, value: str) -> bool:
    if name in _PAGERS:
        return value in ("", "cat")
    return name in _QUIET_NAMES and _QUIET_VALUE.match(value) is not None


def _canonical(action: Action) -> str | None:
    if len(action.argv) == 3 and shell_syntax.is_shell(action.argv[0]) and action.argv[1] in ("-c", "-lc"):
        return action.argv[2].strip()
    if action.argv:
        return shlex.join(action.argv)
    parts = commandline.split(action.line) if action.line is not None else None
    return shlex.join(parts[0]) if parts is not None and len(parts) == 1 else (action.line or "").strip() or None


# -- what a remembered answer covers -----------------------------------------------------------------------------

_RULE, _LINE, _PATH, _CALL = "command:", "line:", "path:", "call:"


def coverage(action: Action, paths: Iterable[str], input: str, home: str) -> list[str]:
    """What a yes for a while is about: what was shown. This program and subcommand, these files, or this very call.
    Empty: the tool, whatever it is called with (`other`)."""
    if action.text is not None:
        parts = action.parts()
        if parts and not action.unclear:
            return [_rule(words) for words in parts]
        return [f"{_LINE}{action.shown(home)}"]
    if action.kind in ("read", "write") and not action.unclear and (named := list(paths)):
        return [f"{_PATH}{each}" for each in named]
    return [f"{_CALL}{_digest(input)}"] if action.unclear or action.kind != "other" else []


def _rule(words: list[str]) -> str:
    """`npm test --watch` is about `npm test`; what has no subcommand, or an option in its place, is about itself."""
    if len(words) > 1 and not words[1].startswith("-"):
        return f"{_RULE}{shlex.join(words[:2])}"
    return f"{_LINE}{shlex.join(words)}"


def covered(covers: Iterable[str], action: Action, paths: Iterable[str], input: str, home: str) -> bool:
    known = frozenset(covers)
    if action.text is not None:
        parts = None if action.unclear else action.parts()
        if f"{_LINE}{action.shown(home)}" in known:
            return True
        return bool(parts) and all(_covers(known, words) for words in parts or ())
    if f"{_CALL}{_digest(input)}" in known:
        return True
    named = [f"{_PATH}{each}" for each in paths]
    return action.kind in ("read", "write") and not action.unclear and bool(named) and known.issuperset(named)


def _covers(known: frozenset[str], words: list[str]) -> bool:
    if f"{_LINE}{shlex.join(words)}" in known:
        return True
    wanted = f"{_RULE}{shlex.join(words[:2])}"
    return wanted in known and not commandline.starts_another(words)


def _digest(input: str) -> str:
    return sha256(input.encode("utf-8", "replace")).hexdigest()
