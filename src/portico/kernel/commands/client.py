"""Commands of connected clients: what they lend to a session, and what they share through it."""

from portico.kernel.commands.answers import Done
from portico.kernel.commands.command import AboutSession, Command, NoLock
from portico.kernel.events import ErrorInfo, Json, ToolSpec


class JoinSession(AboutSession, frozen=True, tag="client.join"):
    """Lend a client's tools to a session."""

    scope = "drive"

    client: str
    name: str = ""
    tools: list[ToolSpec] = []
    meta: Json = {}


class LeaveSession(AboutSession, frozen=True, tag="client.leave"):
    """Take a client's tools back."""

    scope = "drive"
    waits = True

    client: str
    abandon: bool = False
    """The calls that it runs fail now: it will not finish them."""


class ShareData(AboutSession, frozen=True, tag="client.share"):
    """Keep something that only clients understand beside a session, for all of them."""

    scope = "drive"
    lock = NoLock("It is a fact that holds in any order with others.")
    plain = True

    key: str
    value: Json | None = None
    """None takes it away."""
    action: Json = {}
    """In the form of the client, for clients of its protocol."""


class ReportContent(AboutSession, frozen=True, tag="call.report"):
    """What a call that a client runs shows so far."""

    scope = "drive"
    lock = NoLock("It replaces what the call shows, in one step.")
    gives = Done

    call: str
    client: str
    content: list[Json]


class CompleteCall(AboutSession, frozen=True, tag="call.complete"):
    """The result of a call that a client has run."""

    scope = "drive"
    lock = NoLock("A call is ended once: the check and the mark are one step.")
    gives = Done

    call: str
    client: str
    ok: bool
    output: str = ""
    error: ErrorInfo | None = None
    content: list[Json] = []
    title: str = ""
    result: Json | None = None
    """In the client's own form, if the fields above contain less."""
    confirm: bool = False
    """A person must approve it before the agent gets it."""


class IdentifyClient(Command, frozen=True, tag="client.identify"):
    """Take an id for a client; it belongs to the token that used it first."""

    scope = "any"
    lock = NoLock("Its handler locks what it reads; a known client needs no lock.")
    gives = Done
    private = frozenset({"value"})

    client: str
    value: Json = {}
    """What its door needs to know when it reconnects."""
