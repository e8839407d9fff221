"""The command that gives agents a token of a resource."""

from portico.kernel.commands import Command, Done, NoLock, register


class SignIn(Command, frozen=True, tag="agent.sign_in"):
    """Give the agents that ask for it a token of a resource, or take it back with an empty one.

    It counts for the editor that gives it; from elsewhere for all sessions that no editor has begun, which needs the
    scope `admin`.
    """

    scope = "any"
    lock = NoLock("An agent replaces its token in one step; the last one counts.")
    gives = Done
    secret = True

    resource: str
    token: str = ""
    seconds: float | None = None
    """How long it is valid, where that is known."""


register(SignIn)
