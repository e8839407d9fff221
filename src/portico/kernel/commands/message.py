"""Commands about turns and the queue: messages to an agent, and when they are sent."""

from portico.kernel.commands.answers import Busy, Offered, Queued, Steered, TurnBegun
from portico.kernel.commands.command import AboutSession, Http, NoLock
from portico.kernel.events import Json, Message, PendingKind

_ONE = "/v1/sessions/{id}"
_QUEUE = f"{_ONE}/queue"


class SendMessage(AboutSession, frozen=True, tag="message.send"):
    """Send a message."""

    scope = "drive"
    limited = True
    gives = (TurnBegun, Queued, Steered)
    http = Http("POST", f"{_ONE}/messages", 202)
    errors = ("conflict", "agent_unavailable", "quota_exceeded")
    private = frozenset({"origin", "meta", "turn", "pending", "blank", "model_config"})

    text: str
    attachments: list[Json] = []
    model: str | None = None
    busy: Busy = "queue"
    """What to do while a turn runs: `queue`, `steer` or `refuse`."""
    origin: str = "user"
    meta: Json = {}
    turn: str | None = None
    """The turn's id, where the client chooses it."""
    pending: str | None = None
    """The queued message that becomes this turn."""
    blank: bool = False
    """The text may be empty: the agent decides what that means."""
    model_config: Json = {}

    @property
    def message(self) -> Message:
        return Message(self.text, self.attachments, self.model, self.origin, self.meta, self.model_config)


class RunCommand(AboutSession, frozen=True, tag="command.run"):
    """Run a command line in the session's folder, as a turn without the agent."""

    scope = "terminal"
    limited = True
    gives = TurnBegun
    private = frozenset({"turn", "text"})

    line: str
    text: str = ""
    """What the person typed, where that is more than the line."""
    turn: str | None = None
    """The turn's id, where the client chooses it."""


class CancelTurn(AboutSession, frozen=True, tag="turn.cancel"):
    """Stop the running turn."""

    scope = "drive"
    lock = NoLock("It waits for the end of the turn, which takes the session's lock.")
    http = Http("POST", f"{_ONE}/cancel")

    turn: str | None = None


class ResumeTurn(AboutSession, frozen=True, tag="turn.resume"):
    """Resume the last turn."""

    scope = "drive"
    gives = TurnBegun
    http = Http("POST", f"{_ONE}/resume", 202)

    turn: str | None = None


class QueueMessage(AboutSession, frozen=True, tag="queue.add"):
    """Queue a message, or hold it ready for steering, without starting anything."""

    scope = "drive"
    gives = Queued
    private = frozenset({"message.origin", "message.meta", "message.model_config"})

    message: Message
    kind: PendingKind = "queue"
    pending: str | None = None
    """The message's id, where the client chooses it."""


class EditQueued(AboutSession, frozen=True, tag="queue.edit"):
    """Edit a waiting message."""

    scope = "drive"
    shows = "queue"
    http = Http("PATCH", f"{_QUEUE}/{{pending}}")
    private = frozenset({"origin", "meta", "model_config"})

    pending: str
    text: str
    attachments: list[Json] = []
    model: str | None = None
    origin: str = "user"
    meta: Json = {}
    model_config: Json = {}

    @property
    def message(self) -> Message:
        return Message(self.text, self.attachments, self.model, self.origin, self.meta, self.model_config)


class ReorderQueue(AboutSession, frozen=True, tag="queue.reorder"):
    """Put the waiting messages into another order."""

    scope = "drive"
    shows = "queue"
    http = Http("POST", f"{_QUEUE}/order")
    private = frozenset({"lenient"})

    order: list[str]
    """Named messages first, the others behind them as they were."""
    lenient: bool = False
    """A name that is not there is ignored: an editor may name a message that has just become a turn."""


class RemoveQueued(AboutSession, frozen=True, tag="queue.remove"):
    """Remove a waiting message."""

    scope = "drive"
    shows = "queue"
    http = Http("DELETE", f"{_QUEUE}/{{pending}}")

    pending: str


class SteerQueued(AboutSession, frozen=True, tag="queue.steer"):
    """Offer a waiting message to the running agent now."""

    scope = "drive"
    lock = NoLock("The agent is asked without the lock; what follows from its answer is decided under it.")
    gives = Offered
    http = Http("POST", f"{_QUEUE}/{{pending}}/steer")

    pending: str


class ReleaseQueue(AboutSession, frozen=True, tag="queue.release"):
    """Release a held queue."""

    scope = "drive"
    shows = "queue"
    http = Http("POST", f"{_QUEUE}/release")
