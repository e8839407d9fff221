"""Commands about projects: folders with one conversation for each agent, as the Anywhere door shows them."""

from typing import ClassVar

from msgspec import Struct

from portico.kernel.commands import Command, Done, Lock, NoLock, register


class Project(Struct, frozen=True):
    id: str
    name: str
    path: str
    added: int = 0
    worktree: bool = False
    """Each conversation works in a separate git worktree."""


class AboutProject(Command, frozen=True):
    about = "project"
    lock: ClassVar[Lock | NoLock] = "feature"

    project: str


class AddProject(Command, frozen=True, tag="project.add"):
    """Add a project."""

    scope = "drive"
    lock = "feature"
    gives = Project

    path: str
    worktree: bool = False
    """Each conversation works in a git worktree of its own."""


class ForgetProject(AboutProject, frozen=True, tag="project.forget"):
    """Forget a project; its folder and its conversations stay."""

    scope = "drive"
    gives = Done


class OpenProject(AboutProject, frozen=True, tag="project.open"):
    """The project's conversation with an agent, begun if need be."""

    scope = "drive"

    agent: str | None = None
    """Absent: the one that it has, else the one that answers first."""
    clear: bool = False
    """Clear the project first (`project.clear`), and so begin a new conversation."""


class ClearProject(AboutProject, frozen=True, tag="project.clear"):
    """Let fresh conversations take the place of a project's; the old ones stay stored."""

    scope = "drive"
    gives = Done


register(AddProject, ForgetProject, OpenProject, ClearProject)
