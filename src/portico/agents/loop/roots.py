"""Which part of a project the built-in agent may touch: `agent.allowed_roots`, relative to the project. Folders that
were added to the session are open to it besides, by their absolute paths.

The attack: a model (or a file that it reads) names a path outside, or a link inside an allowed folder that leads out.
So every path is made absolute below the project and then walked by the jail, whose roots are the allowed folders.
"""

import os
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from portico.kernel.errors import BadRequest, Forbidden, NotFound
from portico.workspace.files import Files
from portico.workspace.jail import Jail
from portico.workspace.replacement import fold

EVERYTHING = "*"
NAMES_MAX = 10_000
"""Of a folder in which a similar name is looked for: some milliseconds."""
_PLAIN = re.compile(r"[A-Za-z0-9_.]*")


def nowhere(allowed: Sequence[str], projects: Sequence[Path]) -> str:
    """What is wrong with the setting: names that are folders of none of the projects. Empty: nothing."""
    absent = [each for each in allowed if each != EVERYTHING and not any(_has(of, each) for of in projects)]
    if not absent or not projects:
        return ""
    names, where = ", ".join(map(repr, absent)), ", ".join(map(str, projects))
    return f"agent.allowed_roots: no folder {names} in {where}: correct it, or make the folder."


def _has(project: Path, name: str) -> bool:
    folder = _inside(project, name)
    return folder is not None and folder.is_dir()


def _inside(project: Path, name: str) -> Path | None:
    """One that leads out of the project is refused, not followed."""
    try:
        return Jail([project]).resolve(name)
    except (NotFound, Forbidden, BadRequest):
        return None


def _similar(folder: Path, name: str) -> str:
    try:
        with os.scandir(folder) as entries:
            names = [each.name for each in islice(entries, NAMES_MAX)]
    except OSError:
        return name
    wanted = fold(name)
    same = [each for each in names if fold(each) == wanted]
    return same[0] if len(same) == 1 else name


class Roots:
    """The allowed folders of one project, as they are now."""

    def __init__(self, project: str, allowed: Sequence[str], folders: Sequence[str] | None = None) -> None:
        """`folders`: all that the session has, where it is not just the project."""
        self.project = Path(os.path.realpath(project))
        given = [Path(os.path.realpath(each)) for each in folders] if folders is not None else [self.project]
        own: list[Path] = []
        if self.project in given:
            own = [self.project] if EVERYTHING in allowed else self._folders(allowed)
        self.jail = Jail([*own, *(each for each in given if each != self.project and each.is_dir())])
        self.files = Files(self.jail)

    def _folders(self, allowed: Sequence[str]) -> list[Path]:
        folders = [folder for each in allowed if (folder := _inside(self.project, each)) is not None]
        if not folders:
            names = ", ".join(map(repr, allowed)) or "nothing"
            raise Forbidden(f"agent.allowed_roots allows {names}, and none of it is a folder of this project.")
        return folders

    def within(self, path: str) -> str:
        """As `at`; a path of the project outside the allowed folders is refused with that reason."""
        whole = Path(os.path.normpath(self.at(path)))
        if whole.is_relative_to(self.project) and not any(whole.is_relative_to(root) for root in self.jail.roots):
            allowed = ", ".join(repr(self.name(root)) for root in self.jail.roots)
            raise Forbidden(f"{self.name(whole)!r} is outside of what agent.allowed_roots allows: {allowed}.")
        return self.at(path)

    def at(self, path: str) -> str:
        """The path as the jail takes it: a relative one starts at the project, not at the first root."""
        return path if path.startswith("/") else f"{self.project}/{path}"

    def has(self, path: str) -> bool:
        """Whether the path exists. The jail checks what it is and whether it may be read."""
        return os.path.lexists(self.at(path))

    def similar(self, path: str) -> str:
        """The path of an existing file whose name differs only in how signs are written (spaces, quotes, accents), or
        the path as it is. Models write plain spaces and composed letters; files from other systems have others."""
        if path.startswith("/") or ".." in path.split("/") or self.has(path):
            return path
        folder, found = self.project, []
        for part in path.split("/"):
            if not os.path.lexists(folder / part) and _PLAIN.fullmatch(part) is None:
                part = _similar(folder, part)
            folder = folder / part
            found.append(part)
        return "/".join(found)

    def name(self, path: str | Path) -> str:
        """The short name that a model and a person see."""
        whole = Path(path)
        return whole.relative_to(self.project).as_posix() if whole.is_relative_to(self.project) else str(whole)

    def check(self, path: str) -> str:
        """The canonical short name of a path that may be touched; raises Forbidden for any other."""
        return self.name(self.jail.resolve(self.within(path)))

    def parts(self) -> list[tuple[str, Jail]]:
        """Each allowed folder with a separate jail, and the prefix that its names get."""
        return [
            ("" if root == self.project else f"{self.name(root)}/", Jail([root]))
            for root in self.jail.roots
            if root.is_dir()
        ]
