"""What is known of a session: the shapes that `fold` fills from its events, and the summary that lists show."""

from functools import cached_property
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from portico import events as e
from portico import limits
from portico.events import ErrorInfo, Json, Message, Option, Origin, Outcome, ToolSpec

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
    """Of reasoning, while it runs: milliseconds since the epoch."""
    took: int = 0
    """Of reasoning that has ended: milliseconds."""


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
    """The result that waits, where the client that ran the call has put it into words."""
    file: str = ""
    """The absolute path, where the approval is about one file and shows its diff."""
    files: list[str] = []
    """All files, where there are several."""
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
    """Characters that are missing in the middle of its live output, where it has got long."""
    blob: str | None = None
    content: list[Json] = []
    approvals: list[Approval] = []
    rule: str = ""
    """The policy rule that decided, when nobody was asked."""
    denied: bool = False
    """That rule said no."""
    done: bool = False
    ok: bool = False
    error: ErrorInfo | None = None
    past: str = ""
    detail: str = ""
    outcome: Outcome | None = None
    server: str = ""
    """The customization that its tool belongs to."""
    sign_in: e.SignInAsked | None = None
    """It waits for a token."""
    result: Json = {}
    """In the words of the client that ran it, where ours say less."""
    exit_code: int | None = None
    """Of the command that it ran."""
    started: int = 0
    """While it runs: milliseconds since the epoch."""
    took: int = 0
    """Of a call that has ended: milliseconds, with what it waited for."""

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
    """Where a turn stopped before it was resumed: so many parts were there, and why."""

    parts: int
    error: ErrorInfo


class StepState(Struct, omit_defaults=True):
    """A step of an agent that reports steps; see `turn.step`."""

    step: int
    model: str = ""
    parts: int = 0
    """How many parts the turn had before it."""
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
    """How many parts there were when one of them was corrected, by the position of that event in the channel."""
    asked: int = 0
    """Since when a person is waited for; 0: nobody is."""
    waited: int = 0
    """Milliseconds in which it waited for people, or for being resumed, and did not work."""
    stopped_by: str = ""
    """Who cancelled it."""

    def worked(self, now: int) -> int:
        """Milliseconds of work so far."""
        end = self.ended or now
        return max(0, end - self.started - self.waited - (end - self.asked if self.asked else 0))

    @cached_property
    def open(self) -> list[Part]:
        """Parts that have not ended, or wait for a person, in order; not encoded. A turn has thousands of parts and few
        of these, and they are read with every event."""
        return [part for part in self.parts if _is_open(part)]

    def add(self, part: Part) -> None:
        self.open.append(part)
        self.parts.append(part)

    def settle(self, part: Part) -> None:
        """After a change that may have ended it."""
        if not _is_open(part):
            self.open = [each for each in self.open if each is not part]

    def part(self, ident: str) -> Part | None:
        """Newest first: what changes is nearly always the last one."""
        for part in reversed(self.parts):  # a loop: no generator for each event
            if part.id == ident:
                return part
        return None

    @property
    def question(self) -> QuestionPart | None:
        """The one that stays when the host ends."""
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
    """What a client wants of the model besides, in its own words: agents have no word for it."""
    cwd: str = ""
    title: str = ""
    title_by_person: bool = msgspec.field(name="named", default=False)
    """A person chose the title; the agent does not change it any more."""
    uri: str | None = None
    parent: str | None = None
    promoted: bool = False
    """It began as a conversation of another session: `uri` is the name of that conversation."""
    origin: Origin | None = None
    config: Json = {}
    worktree: Json = {}
    """A git worktree of its own; see `session.started`."""
    folders: list[str] = []
    """Where it works besides `cwd`."""
    folder_subset: list[str] | None = msgspec.field(name="chosen", default=None)
    """Those of its family's folders that this conversation has; None: all of them."""
    vendor: str | None = None
    by: str = ""
    owner: str = ""
    """The person whose session this is; see `session.started`."""
    shares: dict[str, list[e.Right]] = {}
    """By person (`*`: everybody), what they may do here besides its owner."""
    created: int = 0
    modified: int = 0
    last_turn_at: int = msgspec.field(name="moved", default=0)
    """When it began, or a turn of it last began or ended. A new title or setting changes `modified` alone."""
    archived: bool = False
    draft: bool = False
    """Nothing was said in it yet, and lists leave it out until then; see `session.started`."""
    begun: int = 0
    """Where in its channel a draft became a session that everybody sees."""
    read: bool = True
    chat_flags: dict[Flag, bool] = {}
    """Of its own conversation, where they are not those of the session."""
    closed: bool = False
    queue_held: bool = msgspec.field(name="held", default=False)
    turns: list[TurnState] = []
    queue: list[PendingState] = []
    clients: list[ClientState] = []
    chat_order: list[str] = []
    """Ids of its conversations, as a person has put them."""
    client_names: dict[str, str] = {}
    """What clients call themselves, also those that have left: what they said is still here."""
    children: list[str] = []
    client_data: dict[str, Json] = msgspec.field(name="kept", default_factory=dict)
    """What clients share through us; see `client.kept`."""
    history_cut: bool = msgspec.field(name="rewound", default=False)
    """The history was cut, and no turn has begun since: whatever failed before is forgotten."""
    usage: Usage = msgspec.field(default_factory=Usage)
    ids: int = 0
    """The highest number in an id of ours."""
    pos: int = 0

    @property
    def active(self) -> TurnState | None:
        turns = self.turns
        return last if turns and (last := turns[-1]).outcome is None else None

    @property
    def last_outcome(self) -> Outcome | None:
        """How the last turn ended, unless that is forgotten."""
        return self.turns[-1].outcome if self.turns and not self.history_cut else None

    @property
    def status(self) -> Status:
        turn = self.active
        if turn is None:
            return "failed" if self.last_outcome == "failed" else "idle"
        return "waiting" if waiting(turn) else "running"

    def share(self, event: e.SessionShared) -> None:
        others = {person: rights for person, rights in self.shares.items() if person != event.person}
        self.shares = {**others, event.person: event.rights} if event.rights else others

    def turn(self, ident: str) -> TurnState | None:
        return next((turn for turn in reversed(self.turns) if turn.id == ident), None)

    def pending(self, ident: str) -> PendingState | None:
        return next((pending for pending in self.queue if pending.id == ident), None)


CHANGES = "changes"
"""Among what is kept: how much the session has changed in its folder, for lists."""


class Summary(Struct, omit_defaults=True):
    """What a list shows; kept for every session, stored beside its channel."""

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
    """Who began it: `token:NAME`, `client:ID`, or `task:ID` for a session of a job."""
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
    """`additions`, `deletions` and `files`, once they were counted."""
    folders: list[str] = []
    folder_subset: list[str] | None = msgspec.field(name="chosen", default=None)
    """As in the state: where it works besides `cwd`, and which of its family's folders it has."""
    model_config: Json = {}
    chat_order: list[str] = []
    last_turn_at: int = msgspec.field(name="moved", default=0)
    """As in the state."""
    interrupted: bool = False
    """Idle, and the host ended in the middle of the last turn."""
    error: str = ""
    """Why the last turn failed, as far as a list shows it."""
    owner: str = ""
    shares: dict[str, list[e.Right]] = {}
    """As in the state."""
    stopped: str = ""
    """Idle, and the last turn was cancelled: by whom."""


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
    """Whether the folder is a git work tree; without one nothing is known."""
    files: list[FileChange] = []
    cut: bool = False
    """There are more files than one answer holds."""
    note: str | UnsetType = UNSET
    """Why nothing is known, where that is so."""


def chat_flag(of: Summary | SessionState, flag: Flag) -> bool:
    return of.chat_flags.get(flag, of.read if flag == "read" else of.archived)


def is_subagent(of: Summary | SessionState) -> bool:
    """Whether an agent has started it for its own turn: nobody else talks in it."""
    return of.origin is not None and of.origin.kind == "agent"


def summarise(state: SessionState) -> Summary:
    """With every event of a session, so by position: by name it takes three times as long."""
    changes, last = state.client_data.get(CHANGES), state.last_outcome
    return Summary(
        state.id, state.agent, state.model, state.cwd, state.title, state.status, state.created, state.modified,
        state.pos, state.by, len(state.turns), len(state.queue), state.uri, state.parent, state.promoted, state.origin,
        state.archived, state.draft, state.read, state.chat_flags, state.closed, state.usage,
        {key: value for key, value in changes.items() if key != "edits"} if changes else {}, state.folders,
        state.folder_subset, state.model_config, state.chat_order, state.last_turn_at, last == "interrupted",
        _failure(state) if last == "failed" else "", state.owner, state.shares,
        state.turns[-1].stopped_by if last == "cancelled" else "",
    )  # fmt: skip


def _failure(state: SessionState) -> str:
    error = state.turns[-1].error
    return error.message[: limits.TITLE_CHARS] if error is not None else ""


def waiting(turn: TurnState) -> bool:
    """Does something in this turn wait for a person?"""
    return any(map(_waits, turn.open))


def _waits(part: Part) -> bool:
    if isinstance(part, CallPart):
        return part.approval is not None or part.sign_in is not None
    return isinstance(part, QuestionPart) and part.response is None


def _is_open(part: Part) -> bool:
    return not part.done or _waits(part)
