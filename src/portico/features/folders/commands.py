"""The commands that change the folders of a session."""

from portico.kernel.commands import AboutSession, register


class AddFolder(AboutSession, frozen=True, tag="folder.add"):
    """Give a session one more folder: what is inside passes as in its own, so this needs the scope approve."""

    scope = "approve"

    folder: str


class RemoveFolder(AboutSession, frozen=True, tag="folder.remove"):
    """Take a folder from a session. With a replacement (which needs the scope approve), that takes its place."""

    scope = "drive"
    lock = "family"

    folder: str
    replacement: str | None = None


class ChooseFolder(AboutSession, frozen=True, tag="folder.choose"):
    """One of its session's folders that a conversation is to have, or not to have any more."""

    scope = "drive"

    folder: str
    chosen: bool = True


register(AddFolder, RemoveFolder, ChooseFolder)
