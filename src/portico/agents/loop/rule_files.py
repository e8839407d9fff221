"""Files that people write for agents: rules, skills and commands, of a project and of the user.

The attack: a rule in a downloaded project includes a private file, whose text then goes to a model; or it includes
itself. So every file is read through the jail of its folder, and includes are bounded in depth and size.
"""

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from portico.agents.loop.roots import Roots
from portico.kernel.errors import PorticoError
from portico.workspace.files import Files
from portico.workspace.jail import Jail

DEPTH_MAX = 4
"""Of includes in includes."""
CHARS_MAX = 48_000
"""Of one file with everything that it includes: 12,000 tokens."""
NAMES_MAX = 50
USER_FOLDER = "rules"
"""Folder of Portico's home with the user's own rules, skills and commands."""
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_INCLUDE = re.compile(r"(?<![^\s])@((?:\.{0,2}/)?[\w.-]+(?:/[\w.-]+)*)")


class RuleFolder:
    """A folder with such files. `path` arguments are relative to it."""

    def __init__(self, files: Files, base: Path, label: str = "") -> None:
        self._files = files
        self._base = base
        self.label = label
        """Before the names of its files: `~` for the user's own."""

    def has(self, path: str) -> bool:
        return os.path.lexists(self._base / path)

    async def read(self, path: str, limit: int = CHARS_MAX) -> str:
        """The text of a file; empty where there is none, or it may not be read."""
        if not self.has(path):  # the usual case: not worth a thread before each call of the model
            return ""
        try:
            found = await self._files.read_text(str(self._base / path), limit=limit)
        except PorticoError:
            return ""
        cut = f"\n[cut: read {self.name(path)} for the rest]" if found.cut else ""
        return "" if found.binary else found.text.removeprefix("\ufeff").replace("\r\n", "\n") + cut

    async def names(self, path: str) -> list[str]:
        """What is in a folder; links are named too, the jail checks where they lead."""
        if not self.has(path):
            return []
        try:
            found = await self._files.list(str(self._base / path))
        except PorticoError:
            return []
        return sorted(entry.name for entry in found.entries)[:NAMES_MAX]

    async def whole(self, path: str, limit: int = CHARS_MAX) -> str:
        """The text of a file with its includes (`@other.md`), each once."""
        return await self._whole(path, limit, 0, {posixpath.normpath(path)})

    async def _whole(self, path: str, limit: int, depth: int, seen: set[str]) -> str:
        text = await self.read(path, limit)
        if depth >= DEPTH_MAX or "@" not in text:
            return text
        left = limit - len(text)
        pieces: list[str] = []
        at = 0
        for match in _includes(text):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), match[1].rstrip(".")))
            if target in seen or target.startswith("..") or left <= 0:
                continue
            included = await self._whole(target, left, depth + 1, seen | {target})
            if included:
                seen.add(target)
                left -= len(included)
                pieces += [text[at : match.start()], f"\n[{self.name(target)}]\n{included.strip()}\n"]
                at = match.end()
        return "".join([*pieces, text[at:]])

    def name(self, path: str) -> str:
        return f"{self.label}{path}"


def of_project(roots: Roots) -> RuleFolder:
    return RuleFolder(roots.files, roots.project)


def of_user(home: Path) -> RuleFolder | None:
    """The user's own; None where there are none."""
    folder = home / USER_FOLDER
    if not folder.is_dir():
        return None
    base = Path(os.path.realpath(folder))
    return RuleFolder(Files(Jail([base])), base, "~/")


def _includes(text: str) -> Iterator["re.Match[str]"]:
    """Not inside code: `@decorator` there is no include."""
    code = [match.span() for match in _CODE.finditer(text)]
    for match in _INCLUDE.finditer(text):
        if not any(start <= match.start() < end for start, end in code):
            yield match
