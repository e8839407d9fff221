"""What a call is about to do: one value that the rules judge, the card shows and the process is started from.

The attack: a call that is judged by one thing and does another. A title that looks like a command; arguments or an
environment next to the command that were not reviewed; an unexpected folder. So the adapter of an agent describes
each call once, as an `Action`. If it cannot describe a call exactly, the call is `unclear` and needs approval.
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
    | {"AGENT_SESSION_ID"}  # goose sets it to its session id for each command
)
_QUIET_VALUE = re.compile(r"[\w.@:+-]{0,64}\Z", re.ASCII)
_PAGERS = frozenset({"PAGER", "GIT_PAGER", "MANPAGER", "GH_PAGER"})


class Action(Struct, frozen=True, omit_defaults=True):
    """Created by the adapter of an agent, once per call. Nothing else about the call is judged."""

    kind: Kind = "other"
    """What it does; the name that the agent uses for it has no effect."""
    line: str | None = None
    """A shell command line; alternative to `argv`."""
    argv: tuple[str, ...] = ()
    """Program and arguments, started without a shell."""
    env: tuple[tuple[str, str], ...] = ()
    """Environment variables from the agent, in addition to those of every command."""
    cwd: str = ""
    """The folder it runs in; empty: the session's."""
    files: tuple[str, ...] = ()
    """All files that it reads or writes."""
    unclear: str = ""
    """Why it cannot be judged: then no rule and no name allows it."""

    @property
    def odd_env(self) -> tuple[tuple[str, str], ...]:
        """Variables that may change what a program does."""
        return tuple(each for each in self.env if not _harmless(*each))

    @property
    def text(self) -> str | None:
        """The command itself, as a shell would read it."""
        return shlex.join(self.argv) if self.argv else self.line

    def shown(self, home: str = "") -> str | None:
        """Return the whole command as shown to a person: with its environment, and its folder if it is not `home`."""
        text = self.text
        if text is None:
            return None
        variables = "".join(f"{name}={shlex.quote(value)} " for name, value in self.odd_env)
        folder = f"cd {shlex.quote(self.cwd)} && " if self.cwd and self.cwd.rstrip("/") != home.rstrip("/") else ""
        return f"{folder}{variables}{text}"


def command(line: str | Sequence[str], *, cwd: str = "", env: Mapping[str, str] | None = None) -> Action:
    """Create the action of a shell command line, or of a list of words that is run without a shell."""
    variables = tuple(sorted((env or {}).items()))
    if isinstance(line, str):
        return Action("shell", line, env=variables, cwd=cwd)
    return Action("shell", argv=tuple(line), env=variables, cwd=cwd)


def of(kind: str, path: str | None = None, line: str | None = None) -> Action:
    """Create an action from the fields that our own agents report; an unknown kind is `other`."""
    files = (path,) if path else ()
    known: Kind = kind if kind in ("read", "write", "shell") else "other"  # type: ignore[assignment]
    return Action(known, line, files=files)


def _harmless(name: str, value: str) -> bool:
    if name in _PAGERS:
        return value in ("", "cat")
    return name in _QUIET_NAMES and _QUIET_VALUE.match(value) is not None
