"""Commands about the files of a session that differ from the last commit."""

from msgspec import Struct

from portico.kernel.commands import AboutSession, Done, Http, register

_ONE = "/v1/sessions/{id}"


class Committed(Struct):
    commit: str


class Discarded(Struct):
    undo: str
    """Brings the files back, until the next discard."""


class CommitChanges(AboutSession, frozen=True, tag="changes.commit"):
    """Commit changed files."""

    scope = "files"
    lock = "feature"
    gives = Committed
    http = Http("POST", f"{_ONE}/commit", 201)

    message: str
    state: str | None
    """The `state` of `GET …/uncommitted`: the folder as you have seen it. Null: its current state."""
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


register(CommitChanges, DiscardChanges, RestoreChanges)
