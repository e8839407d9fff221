"""Commands about files inside the jail."""

from typing import Literal

from portico.kernel.commands import Command, Done, NoLock, register

Encoding = Literal["utf-8", "base64"]
WriteMode = Literal["truncate", "append", "insert"]


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


register(WriteFile, CopyFile, MoveFile, DeleteFile, MakeFolder)
