"""What happens in a turn: its parts, its tool calls, and what people are asked."""

from portico.kernel.events.shapes import (
    Delta,
    ErrorInfo,
    Event,
    Json,
    Message,
    Option,
    Outcome,
    PartKind,
    QuestionResponse,
    SignInReason,
)


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
    stop: str = ""
    """Why the model stopped early: `max_tokens`, `max_turn_requests` or `refusal`."""


class TurnStep(Event, frozen=True, tag="turn.step"):
    """An agent that works in steps asks its model for the next one. The same number again: another model answers, or
    the step is complete and `blob` holds it."""

    turn: str
    step: int
    model: str = ""
    blob: str | None = None
    """The hash of what was sent and of the model's message, unchanged, in the agent's own form."""


class PartStarted(Event, frozen=True, tag="part.started"):
    turn: str
    part: str
    kind: PartKind


class PartDelta(Delta, frozen=True, tag="part.delta"):
    pass


class ToolInput(Delta, frozen=True, tag="tool.input"):
    """`part` is the call's id."""


class ToolOutput(Delta, frozen=True, tag="tool.output"):
    """`part` is the call's id."""


class PartEnded(Event, frozen=True, tag="part.ended"):
    """Comes again for a part whose text turns out to be another: the last one counts."""

    turn: str
    part: str
    text: str
    replaces: int = 0
    """Characters that readers have seen of it so far, when `text` is something else; 0: it is what they have seen."""


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
    server: str = ""
    """The customization (an MCP server) that the tool belongs to."""


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
    result: Json = {}
    """Its result in its own words, where the fields above say less."""
    exit_code: int | None = None
    """Of the command that it ran, where the agent tells."""


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
    """0: it waits as long as its turn lives."""
    options: list[Option]
    path: str | None = None
    command: str | None = None
    """Verbatim: what is run, with the environment and the folder it asks for."""
    files: list[str] = []
    """All files, where there are several."""
    diff: str | None = None
    editable: bool = False
    result: bool = False
    """True: the call has run, and it is its result that waits."""
    meta: Json = {}
    why: str = ""
    """Why a person is asked: the rule that wants it, or that none lets it pass."""
    unclear: str = ""
    """Why the call cannot be judged. Only an approval of the identical call covers it."""


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
    meta: Json = {}
    """What the client said besides, in its protocol's words; others are shown it as it came."""
    grant: str = ""
    """The id of the grant that remembers this answer."""
    covers: list[str] = []
    """What that grant covers, as in `Grant.covers`."""


class SignInAsked(Event, frozen=True, tag="sign_in.asked"):
    """A running call needs somebody's token for the server that its tool belongs to."""

    turn: str
    call: str
    resource: Json
    """What the token is for, as RFC 9728 describes it."""
    reason: SignInReason = "required"
    scopes: list[str] = []


class SignInSettled(Event, frozen=True, tag="sign_in.settled"):
    """The call goes on with a token, or fails without."""

    turn: str
    call: str
    given: bool
    by: str


class QuestionAsked(Event, frozen=True, tag="question.asked"):
    turn: str
    question: str
    text: str
    fields: list[Json] = []
    """Typed questions; none means one free text answer named `answer`."""
    url: str | None = None
    people: list[str] = []
    """Who may answer: names of people, or of tokens that are nobody's. Empty: everybody who may approve."""
    evidence: list[Json] = []
    """What it is about: `{type, title, text}` with `text` or `diff`, and `{type: "image", title, data, mimeType}`."""
    expires: int | None = None
    """When it is too late to answer, in milliseconds since the epoch."""
    stays: bool = False
    """It stays open when the host ends: the host itself asks, and no agent's process waits for the answer."""


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
