"""Commands about files: those of a session that differ from the last commit, and those inside the jail."""

from typing import Literal

from portico.commands.answers import Committed, Discarded, Done
from portico.commands.command import AboutSession, Command, Http, NoLock

_ONE = "/v1/sessions/{id}"
Encoding = Literal["utf-8", "base64"]
WriteMode = Literal["truncate", "append", "insert"]


class CommitChanges(AboutSession, frozen=True, tag="changes.commit"):
    """Commit changed files."""

    scope = "files"
    lock = "feature"
    gives = Committed
    http = Http("POST", f"{_ONE}/commit", 201)

    message: str
    state: str | None
    """As `GET …/uncommitted` told it: the folder that you have seen. Null: whatever it is now."""
    paths: list[str] = []
    """None: all of them."""


class DiscardChanges(AboutSession, frozen=True, tag="changes.discard"):
    """Throw changes away."""

    scope = "files"
    lock = "feature"
    gives = Discarded
    http = Http("POST", f"{_ONE}/discard")

    state: str | None
    paths: list[str] = []


class RestoreChanges(AboutSession, frozen=True, tag="changes.restore"):
    """Take the last discard back."""

    scope = "files"
    lock = "feature"
    gives = Done
    http = Http("POST", f"{_ONE}/discard/undo", 204)

    undo: str
    paths: list[str]


class WriteFile(Command, frozen=True, tag="file.write"):
    """Write a file in a workspace or in a session's folder."""

    scope = "files"
    lock = NoLock("The check and the replacement are one step in a thread, in turn with others for the same file.")
    gives = Done

    path: str
    data: str
    encoding: Encoding = "utf-8"
    mode: WriteMode = "truncate"
    position: int = 0
    if_match: str | None = None
    create_only: bool = False


class CopyFile(Command, frozen=True, tag="file.copy"):
    """Copy a file or a folder."""

    scope = "files"
    lock = NoLock("Files are put in place atomically; the file system refuses the second of two.")
    gives = Done

    source: str
    destination: str
    fail_if_exists: bool = False


class MoveFile(Command, frozen=True, tag="file.move"):
    """Move a file or a folder."""

    scope = "files"
    lock = NoLock("Files are put in place atomically; the file system refuses the second of two.")
    gives = Done

    source: str
    destination: str
    fail_if_exists: bool = False


class DeleteFile(Command, frozen=True, tag="file.delete"):
    """Delete a file or a folder."""

    scope = "files"
    lock = NoLock("The file system deletes a file once.")
    gives = Done

    path: str
    recursive: bool = False


class MakeFolder(Command, frozen=True, tag="file.make_folder"):
    """Make a folder, and those above it."""

    scope = "files"
    lock = NoLock("The file system makes a folder once.")
    gives = Done

    path: str
