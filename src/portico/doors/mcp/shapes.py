"""What tools return: small objects, as much of a session as a model can use."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from portico.features.jobs.state import JobSummary
from portico.kernel.events import Json
from portico.kernel.state import CallPart, FileChange, QuestionPart, SessionState, TextPart, TurnState

TURNS = 20
"""How many of the last turns are shown."""
CHARS = 20_000
"""Maximum length of an answer, a diff or a tool output: as much as a model can use."""


class ShownAgent(Struct):
    id: str
    name: str
    models: list[str]
    missing: str | None
    """What a person must do before it works; null: it is ready."""


class AgentList(Struct):
    agents: list[ShownAgent]


class ShownSession(Struct):
    id: str
    title: str
    agent: str
    status: str


class ShownSessions(Struct):
    sessions: list[ShownSession]


class StartedSession(Struct):
    session: str
    agent: str
    model: str


class OpenRequest(Struct, omit_defaults=True):
    """A request of the agent that waits for an answer: an approval or a question."""

    approval: str | UnsetType = UNSET
    """The id of the approval."""
    question: str | UnsetType = UNSET
    """The id of the question."""
    tool: str = ""
    title: str = ""
    command: str = ""
    path: str = ""
    diff: str = ""
    input: str = ""
    text: str = ""
    fields: list[Json] = []


class SessionStanding(Struct, omit_defaults=True):
    """The state of a session after a call."""

    session: str
    status: Literal["idle", "running", "waiting"]
    """`waiting`: the agent waits for an answer, see `needs`."""
    needs: list[OpenRequest] | UnsetType = UNSET
    outcome: str | UnsetType | None = UNSET
    """How the last turn ended."""
    answer: str | UnsetType = UNSET
    """The text of the last turn."""
    error: str = ""
    note: str = ""


class ShownCall(Struct):
    tool: str
    title: str
    outcome: str | None
    output: str


class ShownTurn(Struct):
    turn: str
    prompt: str
    answer: str
    calls: list[ShownCall]
    outcome: str | None


class WaitingMessage(Struct):
    pending: str
    text: str


class SessionTurns(SessionStanding, omit_defaults=True, kw_only=True):
    turns: list[ShownTurn] | UnsetType = UNSET
    queue: list[WaitingMessage] = []


class SessionChanges(Struct, omit_defaults=True):
    """The files that the turns of a session changed."""

    session: str
    git: bool
    """false: the folder is not a git work tree, and changes are unknown."""
    files: list[FileChange] | UnsetType = UNSET
    more: bool = False
    """There are more files than one result can contain."""
    diff: str = ""
    note: str = ""


class AnsweredQuestion(Struct):
    question: str


class RunJob(Struct, omit_defaults=True):
    """A run of a job. `works` has its steps, `result` what its file declares."""

    id: str
    name: str
    status: str
    started: int
    cwd: str
    ended: int | None = None
    error: str = ""
    reason: str = ""
    waits_for: str = "person"
    origin: str | None = None
    works: list[Json] = []
    owner: str = ""
    result: Any = None
    artifacts: list[Json] = []
    branch: str = ""


class JobList(Struct):
    jobs: list[str]
    """The names of the jobs that can be run."""
    history: list[RunJob]
    """The latest runs."""


class ShownAutomation(Struct):
    name: str
    enabled: bool
    when: str
    next: list[int]
    id: str


class AutomationList(Struct):
    automations: list[ShownAutomation]


def run_of(summary: JobSummary) -> RunJob:
    return msgspec.convert(msgspec.to_builtins(summary), RunJob)


def is_resting(state: SessionState) -> bool:
    """Whether nothing runs and no queued message starts next, or a person is needed."""
    if state.active is not None:
        return bool(needs_of(state.active))
    return not state.queue or state.queue_held or state.closed


def is_waiting(state: SessionState, pending: str) -> bool:
    """Whether a queued message will start a turn, without an answer of a person."""
    if state.pending(pending) is None or state.closed:
        return False
    return not state.queue_held if state.active is None else not needs_of(state.active)


def has_settled(state: SessionState, turn: str) -> bool:
    """Whether a turn has ended or needs a person."""
    found = state.turn(turn)
    return found is None or found.outcome is not None or bool(needs_of(found))


def needs_of(turn: TurnState) -> list[OpenRequest]:
    """Return the requests that wait for a person."""
    needs: list[OpenRequest] = []
    for part in turn.parts:
        if isinstance(part, CallPart) and (waiting := part.approval) is not None:
            need = OpenRequest(approval=waiting.id, tool=part.tool, title=waiting.title)
            need.command, need.path = (waiting.command or "")[:CHARS], (waiting.path or "")[:CHARS]
            need.diff, need.input = (waiting.diff or "")[:CHARS], (waiting.input or "")[:CHARS]
            needs.append(need)
        elif isinstance(part, QuestionPart) and not part.done:
            needs.append(OpenRequest(question=part.id, text=part.text, fields=msgspec.to_builtins(part.fields)))
    return needs


def standing(state: SessionState, note: str = "", turn: str | None = None) -> SessionStanding:
    """`turn`: show the outcome and the answer of this one, not of the last."""
    shown = SessionStanding(state.id, "idle", note=note)
    if state.active is not None:
        shown.needs = needs_of(state.active)
        shown.status = "waiting" if shown.needs else "running"
    last = state.turn(turn) if turn is not None else state.turns[-1] if state.turns else None
    if last is not None and last is not state.active:
        shown.outcome, shown.answer = last.outcome, answer_of(last)
        shown.error = last.error.message if last.error is not None else ""
    return shown


def conversation(state: SessionState) -> SessionTurns:
    now = standing(state)
    return SessionTurns(
        **{name: getattr(now, name) for name in now.__struct_fields__},
        turns=[_turn(turn) for turn in state.turns[-TURNS:]],
        queue=[WaitingMessage(each.id, each.message.text[:CHARS]) for each in state.queue],
    )


def answer_of(turn: TurnState) -> str:
    texts = [part.text for part in turn.parts if isinstance(part, TextPart) and part.kind == "text"]
    return "\n\n".join(texts)[-CHARS:]


def _turn(turn: TurnState) -> ShownTurn:
    calls = [
        ShownCall(part.tool, part.title, part.outcome, part.output[:1000])
        for part in turn.parts
        if isinstance(part, CallPart)
    ]
    return ShownTurn(turn.id, turn.message.text[:CHARS], answer_of(turn), calls, turn.outcome)
