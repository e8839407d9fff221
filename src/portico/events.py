"""The facts that the log keeps: one tagged union of structs, the words that every room shares.

An event is never changed once it is written. A stream of deltas always ends in an event that carries the whole
content (`part.ended`, `tool.ready`, `tool.ended`), so deltas may be compacted away and readers still converge.
docs/reference/events.md describes each one; a test holds it true.

`by` says who did it: `token:NAME`, `client:ID`, `task:ID`, `job:ID`, `host`, `policy`, `timeout`. A client whose
protocol wants its own words back is `client:ID#NUMBER.TYPE`; what stands before the `#` is who it is.
"""

from typing import Any, Literal

import msgspec
from msgspec import Struct, field

Channel = str
"""`host`, `session/ID`, `task/ID`, `job/ID` or `terminal/ID`."""

HOST: Channel = "host"


def number_of(ident: str) -> int:
    """The number at the end of an id of ours, or of its channel (`session-12`, `job/job-3`); 0 where there is none."""
    tail = ident.rpartition("-")[2]
    return int(tail) if tail.isdecimal() else 0


Outcome = Literal["completed", "failed", "cancelled", "interrupted"]
PartKind = Literal["text", "reasoning", "notice"]
PendingKind = Literal["queue", "steer"]
QuestionResponse = Literal["accept", "decline", "cancel"]
Json = dict[str, Any]


class Message(Struct, frozen=True, omit_defaults=True):
    """What a person (or a job, or another agent) says to an agent."""

    text: str
    attachments: list[Json] = []
    model: str | None = None
    origin: str = "user"
    """user, agent, tool or system: AHP tells them apart."""
    meta: Json = {}


class ErrorInfo(Struct, frozen=True, omit_defaults=True):
    code: str
    message: str


class ToolSpec(Struct, frozen=True, omit_defaults=True):
    """A tool as an agent sees it."""

    name: str
    description: str = ""
    schema: Json = {}
    title: str = ""


class Origin(Struct, frozen=True, omit_defaults=True):
    """Where a child session comes from."""

    kind: Literal["fork", "side", "agent"]
    session: str
    turn: str | None = None
    call: str | None = None
    selection: Json = {}


class Option(Struct, frozen=True, omit_defaults=True):
    """One of the answers an approval offers. `grant` is what choosing it remembers."""

    id: str
    label: str
    allow: bool
    grant: Literal["once", "session", "project"] = "once"


class Event(Struct, frozen=True, omit_defaults=True, tag_field="type"):
    pass


# -- host ------------------------------------------------------------------------------------------------------


class HostStarted(Event, frozen=True, tag="host.started"):
    version: str
    pid: int


class HostStopped(Event, frozen=True, tag="host.stopped"):
    reason: str = ""


class Audited(Event, frozen=True, tag="audit"):
    """Append-only record of what matters for security (SECURITY 26). Never carries a secret."""

    action: str
    by: str
    detail: Json = {}


class Grant(Struct, frozen=True, omit_defaults=True):
    """A remembered answer. Deny beats allow; it never crosses agents; it always ends."""

    id: str
    agent: str
    tool: str
    """The tool's name, or `*`."""
    allow: bool
    expires: int
    """Milliseconds since the epoch."""
    session: str | None = None
    project: str | None = None
    """Exactly one of session and project (a folder) is set."""
    pattern: str = "*"
    """Glob over the path or command line of the call."""


class GrantAdded(Event, frozen=True, tag="grant.added"):
    grant: Grant
    by: str


class GrantRevoked(Event, frozen=True, tag="grant.revoked"):
    grant: str
    by: str


class SessionListed(Event, frozen=True, tag="session.listed"):
    """The catalogue has a new session; its own story is on its own channel."""

    session: str
    agent: str
    cwd: str
    parent: str | None = None


class SessionRemoved(Event, frozen=True, tag="session.removed"):
    """A session and its history were deleted. Its id is never used again."""

    session: str
    by: str


# -- sessions --------------------------------------------------------------------------------------------------


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
    """A git worktree of its own: path, folder, branch, base, repository."""
    folders: list[str] = []
    """Where it works besides."""


class SessionRenamed(Event, frozen=True, tag="session.renamed"):
    title: str
    by: str


class SessionModel(Event, frozen=True, tag="session.model"):
    model: str
    by: str
    agent: str | None = None
    reason: str = ""


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


class SessionArchived(Event, frozen=True, tag="session.archived"):
    archived: bool
    by: str


class SessionRead(Event, frozen=True, tag="session.read"):
    read: bool
    by: str


class SessionVendor(Event, frozen=True, tag="session.vendor"):
    """The agent's own id of this conversation, written as soon as it is known."""

    id: str


class SessionCrashed(Event, frozen=True, tag="session.crashed"):
    """Between turns the agent's process ended; the next turn starts it again."""

    error: ErrorInfo


class SessionClosed(Event, frozen=True, tag="session.closed"):
    by: str
    reason: str = ""


class SessionReopened(Event, frozen=True, tag="session.reopened"):
    by: str


class SessionTruncated(Event, frozen=True, tag="session.truncated"):
    """History after `turn` (everything, when absent) is forgotten by the conversation; the log keeps it."""

    by: str
    turn: str | None = None


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


class ClientKept(Event, frozen=True, tag="client.kept"):
    """Something that only clients know and share: a draft, an annotation, a reviewed file. None removes it."""

    key: str
    by: str
    value: Json | None = None
    action: Json = {}
    """What the client said, in its own protocol's words."""


# -- turns -----------------------------------------------------------------------------------------------------


class TurnStarted(Event, frozen=True, tag="turn.started"):
    turn: str
    message: Message
    by: str
    pending: str | None = None
    """The queued message that became this turn."""


class TurnResumed(Event, frozen=True, tag="turn.resumed"):
    """The last turn failed or was interrupted; it goes on, keeping its parts."""

    turn: str
    by: str


class TurnEnded(Event, frozen=True, tag="turn.ended"):
    turn: str
    outcome: Outcome
    error: ErrorInfo | None = None
    by: str = "agent"


class PartStarted(Event, frozen=True, tag="part.started"):
    turn: str
    part: str
    kind: PartKind


class Delta(Event, frozen=True):
    """A piece of something that grows. Pieces of one part that wait for the same commit become one."""

    turn: str
    part: str
    text: str


class PartDelta(Delta, frozen=True, tag="part.delta"):
    pass


class ToolInput(Delta, frozen=True, tag="tool.input"):
    """`part` is the call's id."""


class ToolOutput(Delta, frozen=True, tag="tool.output"):
    """`part` is the call's id."""


class PartEnded(Event, frozen=True, tag="part.ended"):
    turn: str
    part: str
    text: str


class UsageReported(Event, frozen=True, tag="usage"):
    """Adds to the turn's usage, except `total`: a report that replaces what was reported before."""

    turn: str
    model: str = ""
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0
    total: bool = False


# -- tool calls ------------------------------------------------------------------------------------------------


class ToolStarted(Event, frozen=True, tag="tool.started"):
    turn: str
    call: str
    tool: str
    title: str = ""
    kind: str = "other"
    """read, edit, delete, move, search, execute, think, fetch or other."""
    owner: str | None = None
    """The client that contributed the tool and runs it."""
    parent: str | None = None
    meta: Json = {}


class ToolReady(Event, frozen=True, tag="tool.ready"):
    """The input is complete. What happens next is an approval, a decision or the run."""

    turn: str
    call: str
    input: str
    """JSON text."""
    title: str = ""


class ToolDecided(Event, frozen=True, tag="tool.decided"):
    """Nobody was asked: a policy or a grant decided, and this is the rule."""

    turn: str
    call: str
    allowed: bool
    by: str
    rule: str


class ToolContent(Event, frozen=True, tag="tool.content"):
    """Replaces the structured content of a running call (diffs, terminals, sub-agents)."""

    turn: str
    call: str
    content: list[Json]
    by: str = ""


class ToolEnded(Event, frozen=True, tag="tool.ended"):
    turn: str
    call: str
    ok: bool
    output: str = ""
    blob: str | None = None
    """The hash of the whole output where `output` was cut."""
    content: list[Json] = []
    error: ErrorInfo | None = None
    title: str = ""
    detail: str = ""
    outcome: Outcome = "completed"
    by: str = ""
    """The client that ran the tool and said so."""


# -- approvals and questions -----------------------------------------------------------------------------------


class ApprovalAsked(Event, frozen=True, tag="approval.asked"):
    turn: str
    approval: str
    call: str
    tool: str
    title: str
    kind: str
    """read, write, shell or other."""
    input: str
    expires: int
    options: list[Option]
    path: str | None = None
    command: str | None = None
    diff: str | None = None
    editable: bool = False
    result: bool = False
    """True: the call has run, and it is its result that waits."""
    meta: Json = {}


class ApprovalAnswered(Event, frozen=True, tag="approval.answered"):
    turn: str
    approval: str
    allowed: bool
    by: str
    """A person's `token:` or `client:`, or `timeout`, `host` (interrupted), `turn` (cancelled)."""
    option: str | None = None
    reason: str = ""
    input: str | None = None
    """The input as the person edited it."""


class QuestionAsked(Event, frozen=True, tag="question.asked"):
    turn: str
    question: str
    text: str
    fields: list[Json] = []
    """Typed questions in AHP's form; none means one free text answer named `answer`."""
    url: str | None = None


class QuestionDrafted(Event, frozen=True, tag="question.drafted"):
    turn: str
    question: str
    field: str
    by: str
    answer: Json | None = None


class QuestionAnswered(Event, frozen=True, tag="question.answered"):
    turn: str
    question: str
    response: QuestionResponse
    by: str
    answers: Json = {}


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
    """After a crash the queue waits for a person; any message, resume or `release` lets it go on."""

    held: bool
    by: str


# -- tasks and jobs --------------------------------------------------------------------------------------------

TaskOutcome = Literal["succeeded", "failed", "stopped", "interrupted"]
WorkOutcome = Literal["succeeded", "failed", "crashed", "stopped", "interrupted"]
JobOutcome = Literal["succeeded", "failed", "canceled"]


class TaskStarted(Event, frozen=True, tag="task.started"):
    """On `task/ID`. Its prompts are turns of ordinary sessions, sent by `task:ID`."""

    task: str
    name: str
    model: str
    by: str
    input: str = ""
    job: str | None = None
    path: str = ""
    """The place in the job's tree of works."""
    attempt: int = 1
    """Above 1: the host ended in the middle of the attempt before."""
    session: str | None = None
    """The session it borrows; None: it opens its own."""


class TaskSessionStarted(Event, frozen=True, tag="task.session.started"):
    session: str
    model: str
    driving: bool


class TaskSessionEnded(Event, frozen=True, tag="task.session.ended"):
    session: str
    succeeded: bool


class TaskDecided(Event, frozen=True, tag="task.decided"):
    reason: str


class TaskEnded(Event, frozen=True, tag="task.ended"):
    task: str
    outcome: TaskOutcome
    error: str = ""
    """What went wrong, when it did not simply miss its criteria."""


class JobStarted(Event, frozen=True, tag="job.started"):
    """On `job/ID`. Carries everything that is needed to go on: the entry may change or vanish."""

    job: str
    name: str
    entry: Json
    """The validated entry, cut down to this job and the tasks it uses."""
    cwd: str
    by: str
    input: str = ""
    origin: str | None = None
    """The job that this one repeats or goes on with."""
    done: dict[str, bool] = {}
    """The outcomes it takes over from that job, by path."""


class JobResumed(Event, frozen=True, tag="job.resumed"):
    by: str


class JobSuspended(Event, frozen=True, tag="job.suspended"):
    """The host was told to stop: what was in flight did not end it, and the job goes on at the next start."""


class JobWaiting(Event, frozen=True, tag="job.waiting"):
    """A task with `onInterrupt: ask` was interrupted: the job goes on when a person says so."""

    reason: str


class JobStopping(Event, frozen=True, tag="job.stopping"):
    """Somebody cancels it; `job.ended` follows when everything has stopped, also after a crash in between."""

    by: str


class JobDecided(Event, frozen=True, tag="job.decided"):
    path: str
    reason: str


class WorkStarted(Event, frozen=True, tag="work.started"):
    path: str
    """Branch, iteration and alternative: `r.1|0#3`."""
    work: int
    """The work's id in the job."""
    task: str
    attempt: int = 1


class WorkEnded(Event, frozen=True, tag="work.ended"):
    path: str
    work: int
    task: str
    outcome: WorkOutcome
    error: str = ""


class JobEnded(Event, frozen=True, tag="job.ended"):
    job: str
    outcome: JobOutcome
    by: str
    error: str = ""


# -- terminals -------------------------------------------------------------------------------------------------


class TerminalStarted(Event, frozen=True, tag="terminal.started"):
    terminal: str
    title: str
    cwd: str
    claim: Json
    """Who owns it: `{"kind": "client", "clientId": ...}` or `{"kind": "session", "session": ID, ...}`."""
    by: str
    cols: int = 80
    rows: int = 24
    uri: str | None = None
    session: str | None = None
    """The session from which it was opened."""
    command: list[str] = []
    """Program and arguments that an agent runs in it, in place of a shell for people: it is there to be watched."""


class TerminalData(Delta, frozen=True, tag="terminal.data"):
    """What the terminal shows, without the shell's own signs. `turn` is empty, `part` is the terminal's id."""


class TerminalShown(Event, frozen=True, tag="terminal.shown"):
    """What the terminal shows up to the position `upto`, as much as its scrollback holds: written before old output is
    compacted, and at the end. Output behind `upto` follows it, or came just before."""

    upto: int
    text: str


class TerminalCommand(Event, frozen=True, tag="terminal.command"):
    """The shell began to run a line."""

    command: str
    line: str


class TerminalCommandEnded(Event, frozen=True, tag="terminal.command_ended"):
    command: str
    code: int | None = None
    milliseconds: int = 0


class TerminalDetects(Event, frozen=True, tag="terminal.detects"):
    """The shell reports its commands from now on."""


class TerminalResized(Event, frozen=True, tag="terminal.resized"):
    cols: int
    rows: int
    by: str


class TerminalClaimed(Event, frozen=True, tag="terminal.claimed"):
    claim: Json
    by: str


class TerminalTitled(Event, frozen=True, tag="terminal.titled"):
    title: str
    by: str


class TerminalMoved(Event, frozen=True, tag="terminal.moved"):
    cwd: str


class TerminalCleared(Event, frozen=True, tag="terminal.cleared"):
    by: str


class TerminalExited(Event, frozen=True, tag="terminal.exited"):
    code: int | None = None


class TerminalRemoved(Event, frozen=True, tag="terminal.removed"):
    by: str


AnyEvent = (
    HostStarted
    | HostStopped
    | Audited
    | GrantAdded
    | GrantRevoked
    | SessionListed
    | SessionRemoved
    | SessionStarted
    | SessionRenamed
    | SessionModel
    | SessionConfigured
    | FolderAdded
    | FolderRemoved
    | SessionArchived
    | SessionRead
    | SessionVendor
    | SessionCrashed
    | SessionClosed
    | SessionReopened
    | SessionTruncated
    | HistoryCopied
    | ChildStarted
    | ClientJoined
    | ClientLeft
    | ClientKept
    | TurnStarted
    | TurnResumed
    | TurnEnded
    | PartStarted
    | PartDelta
    | PartEnded
    | UsageReported
    | ToolStarted
    | ToolInput
    | ToolReady
    | ToolDecided
    | ToolOutput
    | ToolContent
    | ToolEnded
    | ApprovalAsked
    | ApprovalAnswered
    | QuestionAsked
    | QuestionDrafted
    | QuestionAnswered
    | QueueAdded
    | QueueEdited
    | QueueReordered
    | QueueRemoved
    | QueueHeld
    | TerminalStarted
    | TerminalData
    | TerminalShown
    | TerminalCommand
    | TerminalCommandEnded
    | TerminalDetects
    | TerminalResized
    | TerminalClaimed
    | TerminalTitled
    | TerminalMoved
    | TerminalCleared
    | TerminalExited
    | TerminalRemoved
    | TaskStarted
    | TaskSessionStarted
    | TaskSessionEnded
    | TaskDecided
    | TaskEnded
    | JobStarted
    | JobResumed
    | JobSuspended
    | JobWaiting
    | JobStopping
    | JobDecided
    | WorkStarted
    | WorkEnded
    | JobEnded
)


class Unknown(Event, frozen=True, tag="unknown"):
    """An event of a newer Portico: kept as it is, shown as it is, folded into nothing."""

    raw: Json = field(default_factory=dict)


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)


def encode(event: Event) -> bytes:
    return _encoder.encode(event)


def decode(data: bytes) -> Event:
    """One decoder for the union; a tag it does not know (data of a newer Portico) stays readable."""
    try:
        return _decoder.decode(data)
    except msgspec.ValidationError:
        return Unknown(raw=msgspec.json.decode(data))


def tag(event: Event) -> str:
    """The event's type as it stands in the log."""
    name = event.__struct_config__.tag
    assert isinstance(name, str)
    return name


class Record:
    """An event in its place: `seq` orders the whole host, `pos` numbers its channel, `time` is in milliseconds.

    `data` is what went to disk; it is decoded at most once, and a door may keep its own wire form of the record
    here (`form`), so that many readers of one door share one encoding.
    """

    __slots__ = ("_event", "_forms", "channel", "data", "pos", "seq", "time")

    def __init__(
        self, seq: int, channel: Channel, pos: int, time: int, data: bytes, event: Event | None = None
    ) -> None:
        self.seq = seq
        self.channel = channel
        self.pos = pos
        self.time = time
        self.data = data
        self._event = event
        self._forms: dict[str, Any] | None = None

    @property
    def event(self) -> Event:
        if self._event is None:
            self._event = decode(self.data)
        return self._event

    def form(self, door: str, make: Any) -> Any:
        if self._forms is None:
            self._forms = {}
        if door not in self._forms:
            self._forms[door] = make(self)
        return self._forms[door]

    def __repr__(self) -> str:
        return f"Record({self.seq}, {self.channel}:{self.pos}, {self.data.decode()})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[int, Channel, int, bytes]:
        return self.seq, self.channel, self.pos, self.data
