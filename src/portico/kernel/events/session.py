"""What happens to a session between its turns, and the messages that wait for it."""

from typing import Literal

from portico.kernel.events.shapes import Event, Json, Message, Origin, PendingKind, ToolSpec


class SessionStarted(Event, frozen=True, tag="session.started"):
    session: str
    agent: str
    model: str
    cwd: str
    by: str
    title: str = ""
    uri: str | None = None
    """The name a client gave it, where its protocol lets clients choose."""
    parent: str | None = None
    origin: Origin | None = None
    config: Json = {}
    worktree: Json = {}
    """A separate git worktree: path, folder, branch, base, repository."""
    folders: list[str] = []
    """Where it works besides."""
    model_config: Json = {}
    """What a client wants of the model besides, in its own words."""
    draft: bool = False
    """A draft without messages: it is listed from its first message on."""
    owner: str = ""
    """The person whose session this is. Empty: everybody's; below another session: as that one."""


Right = Literal["read", "drive", "approve"]
"""What a person may do with a session of another person. Each of them includes reading."""


class SessionShared(Event, frozen=True, tag="session.shared"):
    """These are the rights of that person from now on; without any, it is not shared with them any more."""

    person: str
    """A name, or `*` for everybody."""
    by: str
    rights: list[Right] = []


class SessionRenamed(Event, frozen=True, tag="session.renamed"):
    title: str
    by: str


class SessionModel(Event, frozen=True, tag="session.model"):
    model: str
    by: str
    agent: str | None = None
    reason: str = ""
    config: Json = {}
    """What a client wants of it besides, in its own words."""


class SessionConfigured(Event, frozen=True, tag="session.configured"):
    values: Json
    by: str
    replace: bool = False
    keeps: list[str] = []
    """With `replace`: what stays as it is, if it is not among the values."""


class FolderAdded(Event, frozen=True, tag="folder.added"):
    folder: str
    by: str
    chat: bool = False
    """Chosen for this conversation, among those of its session; from the first choice on it has no others."""


class FolderRemoved(Event, frozen=True, tag="folder.removed"):
    folder: str
    by: str
    chat: bool = False
    """Only this conversation goes without it."""
    replacement: str | None = None
    """What takes its place."""


Marked = Literal["session", "chat"]
"""What a flag is about: the session as a whole, or its own conversation, which editors list beside its other ones."""


class SessionArchived(Event, frozen=True, tag="session.archived"):
    archived: bool
    by: str
    only: Marked | None = None
    """Absent: both."""


class SessionRead(Event, frozen=True, tag="session.read"):
    read: bool
    by: str
    only: Marked | None = None


class SessionVendor(Event, frozen=True, tag="session.vendor"):
    """The agent's own id of this conversation, written as soon as it is known."""

    id: str


class SessionClosed(Event, frozen=True, tag="session.closed"):
    by: str
    reason: str = ""


class SessionReopened(Event, frozen=True, tag="session.reopened"):
    by: str


class SessionTruncated(Event, frozen=True, tag="session.truncated"):
    """History after `turn` (everything, when absent) is forgotten by the conversation; the log keeps it."""

    by: str
    turn: str | None = None


class ChatsOrdered(Event, frozen=True, tag="chats.ordered"):
    """The order in which lists show the conversations of a session, its own among them. New ones come last."""

    order: list[str]
    by: str


class ChatMoved(Event, frozen=True, tag="chat.moved"):
    """A conversation belongs to another session from now on, or becomes a separate session. Written to its own
    channel, to that of the session above it, and to that of the session that it comes to."""

    session: str
    source: str
    by: str
    to: str | None = None
    below: list[str] = []
    """All that moves along."""
    owner: str = ""
    """The owner of a separate session."""


class HistoryCopied(Event, frozen=True, tag="history.copied"):
    """A forked or seeded session begins with these finished turns (each the state of one turn)."""

    turns: list[Json]


class ChildStarted(Event, frozen=True, tag="child.started"):
    session: str
    kind: Literal["fork", "side", "agent"]
    turn: str | None = None
    call: str | None = None


class ClientJoined(Event, frozen=True, tag="client.joined"):
    """A client offers its own tools to this session."""

    client: str
    name: str = ""
    tools: list[ToolSpec] = []
    meta: Json = {}


class ClientLeft(Event, frozen=True, tag="client.left"):
    client: str
    by: str = ""
    abandon: bool = False
    """It does not finish the calls that it runs: they fail."""


class ClientKept(Event, frozen=True, tag="client.kept"):
    """Something that only clients know and share: a draft, an annotation, a reviewed file. None removes it."""

    key: str
    by: str
    value: Json | None = None
    action: Json = {}
    """The data of the client, in the form of its protocol."""


# -- the queue -------------------------------------------------------------------------------------------------


class QueueAdded(Event, frozen=True, tag="queue.added"):
    pending: str
    kind: PendingKind
    message: Message
    by: str


class QueueEdited(Event, frozen=True, tag="queue.edited"):
    pending: str
    message: Message
    by: str
    kind: PendingKind = "queue"


class QueueReordered(Event, frozen=True, tag="queue.reordered"):
    order: list[str]
    by: str


class QueueRemoved(Event, frozen=True, tag="queue.removed"):
    """`steered`: the running agent took it; `removed`: a person did. A queued message that becomes a turn
    leaves the queue with `turn.started`."""

    pending: str
    by: str
    reason: Literal["steered", "removed"] = "removed"
    kind: PendingKind = "queue"


class QueueHeld(Event, frozen=True, tag="queue.held"):
    """After a crash the queue waits for a person; any message, resume or `release` releases it."""

    held: bool
    by: str
