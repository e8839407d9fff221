"""The command that sets the sandbox of a folder."""

from msgspec import Struct

from portico.kernel.commands import Command, Http, register


class FolderSandbox(Struct, frozen=True):
    folder: str
    mode: str
    """Empty: the default of the host."""


class ChooseSandbox(Command, frozen=True, tag="sandbox.choose"):
    """Set the sandbox of conversations that are started in a folder from now on."""

    scope = "approve"
    lock = "feature"
    gives = FolderSandbox
    http = Http("PUT", "/v1/sandbox")

    folder: str
    mode: str = ""
    """`off`, `project` or `strict`; empty: the default of the host again."""


register(ChooseSandbox)
