"""The state of a session: the structs that `fold` fills from its events, and the summary that lists show."""

from functools import cached_property
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.events import ErrorInfo, Json, Message, Option, Origin, Outcome, ToolSpec

Status = Literal["idle", "running", "waiting", "failed"]
"""`waiting`: an approval or a question needs a person; `failed`: idle, and the last turn failed."""
Flag = Literal["read", "archived"]


class Usage(Struct, omit_defaults=True):
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0
    model: str = ""


class TextPart(Struct, tag_field="part", tag="text", omit_defaults=True):
    id: str
    kind: e.PartKind
    text: str = ""
    done: bool = False
    started: int = 0
    """Start of reasoning, while it runs: milliseconds since the epoch."""
    took: int = 0
    """Duration of finished reasoning: milliseconds."""


class Approval(Struct, omit_defaults=True):
    id: str
    kind: str
    title: str
    input: str
    expires: int
    options: list[Option]
    path: str | None = None
    command: str | None = None
    diff: str | None = None
    editable: bool = False
    result: bool = False
    answered: bool = False
    allowed: bool = False
    by: str = ""
    option: str | None = None
    reason: str = ""
    meta: Json = {}
    proposed: Json = {}
    """The result that waits for approval, as the client that ran the call reported it."""
    file: str = ""
    """The absolute path, if the approval is about one file and shows its diff."""
    files: list[str] = []
    """All files, if there are several."""
    why: str = ""
    """Why a person is asked."""
    unclear: str = ""
    """Why the call cannot be judged."""
    grant: str = ""
    """The id of the grant that remembers the answer."""
    covers: list[str] = []
    """What that grant covers."""


class CallPart(Struct, tag_field="part", tag="call", omit_defaults=True):
    id: str
    tool: str
    title: str = ""
    kind: str = "other"
    owner: str | None = None
    parent: str | None = None
    meta: Json = {}
    input: str = ""
    ready: bool = False
    output: str = ""
    left_out: int = 0
    """Number of characters omitted in the middle of long live output."""
    blob: str | None = None
    content: list[Json] = []
    approvals: list[Approval] = []
    rule: str = ""
    """The policy rule that decided, if no person was asked."""
    denied: bool = False
    """That rule denied the call."""
    done: bool = False
    ok: bool = False
    error: ErrorInfo | None = None
    past: str = ""
    detail: str = ""
    outcome: Outcome | None = None
    server: str = ""
    """The customization that the tool belongs to."""
    sign_in: e.SignInAsked | None = None
    """Set while the call waits for a token."""
    result: Json = {}
    """The original result of the client that ran it, if the other fields contain less."""
    exit_code: int | None = None
    """The exit code of the command that it ran."""
    started: int = 0
    """Start, while it runs: milliseconds since the epoch."""
    took: int = 0
    """Duration of a finished call: milliseconds, including the time it waited."""

    @property
    def approval(self) -> Approval | None:
        """The approval that waits."""
        return next((a for a in self.approvals if not a.answered), None)


class QuestionPart(Struct, tag_field="part", tag="question", omit_defaults=True):
    id: str
    text: str
    fields: list[Json] = []
    url: str | None = None
    answers: Json = {}
    response: e.QuestionResponse | None = None
    by: str = ""
    people: list[str] = []
    evidence: list[Json] = []
    expires: int | None = None
    stays: bool = False

    @property
    def done(self) -> bool:
        return self.response is not None


Part = TextPart | CallPart | QuestionPart


class Stop(Struct, omit_defaults=True):
    """Where a turn stopped before it was resumed: the number of parts, and the reason."""

    parts: int
    error: ErrorInfo


class StepState(Struct, omit_defaults=True):
    """A step of an agent that reports steps; see `turn.step`."""

    step: int
    model: str = ""
    parts: int = 0
    """Number of parts that the turn had before it."""
    blob: str | None = None


class TurnState(Struct, omit_defaults=True, dict=True):
    id: str
    message: Message
    by: str
    started: int
    pos: int
    """Where the turn (or its latest resume) begins in the channel."""
    parts: list[Part] = []
    usage: Usage | None = None
    ended: int | None = None
    outcome: Outcome | None = None
    error: ErrorInfo | None = None
    resumes: int = 0
    stops: list[Stop] = []
    steps: list[StepState] = []
    corrections: dict[int, int] = {}
    """Number of parts at the time of each correction, by the position of that event in the channel."""
    asked: int = 0
    """Since when the turn waits for a person; 0: it does not wait."""
    waited: int = 0
    """Milliseconds that it waited for people or to be resumed."""
    stopped_by: str = ""
    """Who cancelled it."""

    def worked(self, now: int) -> int:
        """Milliseconds of work so far."""
        end = self.ended or now
        return max(0, end - self.started - self.waited - (end - self.asked if self.asked else 0))

    @cached_property
    def open(self) -> list[Part]:
        """Parts that have not ended, or wait for a person, in order; not encoded. Cached, because every event reads
        them: a turn has thousands of parts, but few open ones."""
        return [part for part in self.parts if _is_open(part)]

    def add(self, part: Part) -> None:
        self.open.append(part)
        self.parts.append(part)

    def settle(self, part: Part) -> None:
        """Update `open` after a change that may have ended the part."""
        if not _is_open(part):
            self.open = [each for each in self.open if each is not part]

    def part(self, ident: str) -> Part | None:
        """Find a part, newest first: changes are nearly always in the last one."""
        for part in reversed(self.parts):  # a loop: no generator for each event
            if part.id == ident:
                return part
        return None

    @property
    def question(self) -> QuestionPart | None:
        """The question that stays open when the host stops."""
        return next((part for part in self.parts if isinstance(part, QuestionPart) and part.stays), None)

    @property
    def resumable(self) -> bool:
        return self.outcome in ("failed", "interrupted")


class PendingState(Struct, omit_defaults=True):
    id: str
    kind: e.PendingKind
    message: Message
    by: str


class ClientState(Struct, omit_defaults=True):
    id: str
    name: str = ""
    tools: list[ToolSpec] = []
    meta: Json = {}


class SessionState(Struct, omit_defaults=True):
    id: str
    agent: str = ""
    model: str = ""
    model_config: Json = {}
    """Further model options of a client, in its own format. Agents have no format for them."""
    cwd: str = ""
    title: str = ""
    title_by_person: bool = msgspec.field(name="named", default=False)
    """A person chose the title; the agent no longer changes it."""
    uri: str | None = None
    parent: str | None = None
    promoted: bool = False
    """It started as a conversation of another session: `uri` is the name of that conversation."""
    origin: Origin | None = None
    config: Json = {}
    worktree: Json = {}
    """Its separate git worktree; see `session.started`."""
    folders: list[str] = []
    """Folders in which it works, in addition to `cwd`."""
    folder_subset: list[str] | None = msgspec.field(name="chosen", default=None)
    """The folders of its family that this conversation uses; None: all."""
    vendor: str | None = None
    by: str = ""
    owner: str = ""
    """The person whose session this is; see `session.started`."""
    shares: dict[str, list[e.Right]] = {}
    """The rights of other people than the owner, by person (`*`: everyone)."""
    created: int = 0
    modified: int = 0
    last_turn_at: int = msgspec.field(name="moved", default=0)
    """When it was created, or its last turn started or ended. A new title or setting changes only `modified`."""
    archived: bool = False
    draft: bool = False
    """It has no message yet, and lists omit it until then; see `session.started`."""
    begun: int = 0
    """The position in its channel at which a draft became a listed session."""
    read: bool = True
    chat_flags: dict[Flag, bool] = {}
    """Flags of its main conversation that differ from those of the session."""
    closed: bool = False
    queue_held: bool = msgspec.field(name="held", default=False)
    turns: list[TurnState] = []
    queue: list[PendingState] = []
    clients: list[ClientState] = []
    chat_order: list[str] = []
    """Ids of its conversations, in the order that a person chose."""
    client_names: dict[str, str] = {}
    """Names of clients, also of those that have left: their messages are still shown."""
    children: list[str] = []
    client_data: dict[str, Json] = msgspec.field(name="kept", default_factory=dict)
    """Data that clients share through the host; see `client.kept`."""
    history_cut: bool = msgspec.field(name="rewound", default=False)
    """The history was cut, and no turn has started since: earlier failures are ignored."""
    usage: Usage = msgspec.field(default_factory=Usage)
    ids: int = 0
    """The highest number in an id that the host created."""
    features: dict[str, Any] = {}
    """The slices of features, by their names; see `Feature.slice`."""
    unknown: list[str] = []
    """Types of events that were not folded, because their feature is missing. When it is back, all are folded again."""
    pos: int = 0

    @property
    def active(self) -> TurnState | None:
        turns = self.turns
        return last if turns and (last := turns[-1]).outcome is None else None

    @property
    def last_outcome(self) -> Outcome | None:
        """The outcome of the last turn, unless the history was cut after it."""
        return self.turns[-1].outcome if self.turns and not self.history_cut else None

    @property
    def status(self) -> Status:
        turn = self.active
        if turn is None:
            return "failed" if self.last_outcome == "failed" else "idle"
        return "waiting" if any(map(_waits, turn.open)) else "running"

    def share(self, event: e.SessionShared) -> None:
        others = {person: rights for person, rights in self.shares.items() if person != event.person}
        self.shares = {**others, event.person: event.rights} if event.rights else others

    def turn(self, ident: str) -> TurnState | None:
        return next((turn for turn in reversed(self.turns) if turn.id == ident), None)

    def pending(self, ident: str) -> PendingState | None:
        return next((pending for pending in self.queue if pending.id == ident), None)


DRAFT = "draft"
"""Key in the data that clients share: the text in the input of every page and editor until a person sends it."""
CHANGES = "changes"
"""Key in `client_data`: how much the session has changed in its folder, for lists."""


class Summary(Struct, omit_defaults=True):
    """What a list shows; in memory for every session, stored with its channel."""

    id: str
    agent: str
    model: str
    cwd: str
    title: str
    status: Status
    created: int
    modified: int
    pos: int
    by: str = ""
    """Who started it: `token:NAME`, `client:ID`, or `task:ID` for a session of a job."""
    turns: int = 0
    queued: int = 0
    uri: str | None = None
    parent: str | None = None
    promoted: bool = False
    origin: Origin | None = None
    archived: bool = False
    draft: bool = False
    read: bool = True
    chat_flags: dict[Flag, bool] = {}
    closed: bool = False
    usage: Usage = msgspec.field(default_factory=Usage)
    changes: Json = {}
    """`additions`, `deletions` and `files`, when they are known."""
    folders: list[str] = []
    folder_subset: list[str] | None = msgspec.field(name="chosen", default=None)
    """As in the state: the folders in addition to `cwd`, and the subset that it uses."""
    model_config: Json = {}
    chat_order: list[str] = []
    last_turn_at: int = msgspec.field(name="moved", default=0)
    """As in the state."""
    interrupted: bool = False
    """Idle, and the host stopped during the last turn."""
    error: str = ""
    """Why the last turn failed, cut for lists."""
    owner: str = ""
    shares: dict[str, list[e.Right]] = {}
    """As in the state."""
    stopped: str = ""
    """Who cancelled the last turn, if the session is idle since then."""
    features: dict[str, Any] = {}
    """As in the state."""
    vendor: str | None = None


class FileChange(Struct, frozen=True):
    """A file that a turn changed, as git sees it."""

    path: str
    status: Literal["added", "modified", "deleted", "renamed"]
    added: int
    removed: int
    binary: bool
    old_path: str | UnsetType = msgspec.field(default=UNSET, name="from")


class ChangeList(Struct, frozen=True):
    git: bool
    """Whether the folder is a git work tree; otherwise changes are unknown."""
    files: list[FileChange] = []
    cut: bool = False
    """There are more files than one answer can contain."""
    note: str | UnsetType = UNSET
    """Why changes are unknown, if they are."""


def chat_flag(of: Summary | SessionState, flag: Flag) -> bool:
    return of.chat_flags.get(flag, of.read if flag == "read" else of.archived)


def is_subagent(of: Summary | SessionState) -> bool:
    """Return whether an agent started it for its own turn. Only that agent writes to it."""
    return of.origin is not None and of.origin.kind == "agent"


def client_of(state: SessionState, turn: str) -> str:
    """Return the client whose token is used for a turn: the one that started the turn, or else the session."""
    found = state.turn(turn)
    for by in (found.by if found is not None else "", state.by):
        if by.startswith("client:"):
            whole = by.removeprefix("client:")
            ident, _, tail = whole.rpartition("#")  # commands of a client have `client:ID#NUMBER.TYPE`
            return ident if ident and "." in tail else whole
    return ""


def summarise(state: SessionState) -> Summary:
    """Create the summary. Runs for every event, so arguments are positional: keywords take three times as long."""
    changes, turn = state.client_data.get(CHANGES), state.turns[-1] if state.turns else None
    last = turn.outcome if turn is not None and not state.history_cut else None
    status: Status = "failed" if last == "failed" else "idle"
    if turn is not None and turn.outcome is None:
        status = "waiting" if any(map(_waits, turn.open)) else "running"
    return Summary(
        state.id, state.agent, state.model, state.cwd, state.title, status, state.created, state.modified,
        state.pos, state.by, len(state.turns), len(state.queue), state.uri, state.parent, state.promoted, state.origin,
        state.archived, state.draft, state.read, state.chat_flags, state.closed, state.usage,
        {key: value for key, value in changes.items() if key != "edits"} if changes else {}, state.folders,
        state.folder_subset, state.model_config, state.chat_order, state.last_turn_at, last == "interrupted",
        _failure(state) if last == "failed" else "", state.owner, state.shares,
        state.turns[-1].stopped_by if last == "cancelled" else "", state.features,
        state.vendor,
    )  # fmt: skip


def _failure(state: SessionState) -> str:
    error = state.turns[-1].error
    return error.message[: limits.TITLE_CHARS] if error is not None else ""


def waiting(turn: TurnState) -> bool:
    """Return whether something in this turn waits for a person."""
    return any(map(_waits, turn.open))


def _waits(part: Part) -> bool:
    if isinstance(part, CallPart):
        return part.approval is not None or part.sign_in is not None
    return isinstance(part, QuestionPart) and part.response is None


def _is_open(part: Part) -> bool:
    return not part.done or _waits(part)
