"""Recover the progress of a task after its host ended, from its channel and its sessions: the work of the agent, the
finished checks, and the open question. The task continues in the next process; nothing is repeated."""

from msgspec import Struct

from portico.features.jobs import events as je
from portico.features.jobs.check import Checked
from portico.features.jobs.entry import Ask, Leaf
from portico.features.jobs.step import AskDo, FlowStep
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import TurnState


class Worked(Struct):
    """The work that the agent has done."""

    session: Session
    turn: TurnState
    model: str


class QuestionPlace(Struct):
    """The session and turn of a question to a person, open or answered."""

    session: Session
    turn: str
    ended: bool = False
    """The task is done with the session."""


class Resumed(Struct):
    open: list[tuple[Session, je.TaskSessionStarted]]
    """Sessions that the task has not ended."""
    opened: list[Session]
    """All sessions in which agents worked or judged. Their changes count as changes of the task."""
    worked: Worked | None = None
    question: QuestionPlace | None = None
    retry: int = 0
    values: dict[str, str] = {}
    """What the agent had reported before that work."""
    checks: dict[str, Checked] = {}
    """Results of the steps after it."""


async def resumed(host: Host, task: str, leaf: Leaf) -> Resumed | None:
    """Return the progress of a task. None: there is nothing to reuse, and it starts again."""
    by = f"task:{task}"
    started: dict[str, je.TaskSessionStarted] = {}
    ended: set[str] = set()
    unsettled: set[str] = set()
    prompted: je.TaskPrompted | None = None
    checks: dict[str, Checked] = {}
    for record in await host.log.read(f"task/{task}", 0, 10_000):
        match record.event:
            case je.TaskEnded():
                return None
            case je.TaskSessionStarted() as event:
                started[event.session] = event
                unsettled.add(event.session)
            case je.TaskSessionEnded(session=ident):
                ended.add(ident)
            case je.TaskPrompted() as event:
                prompted, checks, unsettled = event, {}, set()
            case je.TaskDecided(check=str(key)) as event if key:
                reason = event.reason.removeprefix("[CRITERIA] ")
                checks[key] = Checked(event.passed is True, reason, event.output or event.evidence, event.exit_code)
                if key != "end":
                    unsettled = set()
    sessions = [(await host.get(ident), event) for ident, event in started.items() if host.has(ident)]
    asking = {session.id: turn for session, _ in sessions for turn in session.state.turns if turn.question is not None}
    found = Resumed(
        open=[(session, event) for session, event in sessions if session.id not in ended],
        opened=[session for session, _ in sessions if any(turn.by == by for turn in session.state.turns)],
        checks=checks,
    )
    for session, _ in sessions:
        turn = asking.get(session.id) if session.id in unsettled else None
        if turn is not None and turn.outcome in (None, "completed"):  # otherwise it was withdrawn
            found.question = QuestionPlace(session, turn.id, session.id in ended)
    if prompted is not None:
        found.retry, found.values = prompted.retry, prompted.values
        found.worked = _worked(sessions, prompted, by)
    asks = isinstance(leaf, Ask) or (isinstance(leaf, FlowStep) and isinstance(leaf.do, AskDo))
    return found if (found.question if asks else found.worked) is not None else None


def _worked(sessions: list[tuple[Session, je.TaskSessionStarted]], prompted: je.TaskPrompted, by: str) -> Worked | None:
    for session, event in sessions:
        if session.id == prompted.session:
            turns = [turn for turn in session.state.turns if turn.by == by][prompted.prompts :]
            if turns and turns[0].outcome == "completed":
                return Worked(session, turns[0], event.model)
    return None
