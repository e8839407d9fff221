"""What a call is about to do: one value, from which the rule decides, the card is drawn and the process is started.

The attack: a call that is judged by one thing and does another. A title that looks like a command; arguments or an
environment beside the command that nobody looked at; a folder that is not the one people think of. So an agent's
adapter says once what would happen, as an `Action`; whatever it cannot say exactly is `unclear`, and asks.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

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
