"""Effects: what the host does because an event was committed, and for no other reason.

`react` is called once for every committed event of a loaded session, after the fold and before any reader has the
event. It returns immediately. Slow effects run as tasks of the session (`Session.effect`); commands that promise the
effect wait for them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from portico.kernel import events as e
from portico.kernel.decide.decision import by_type

if TYPE_CHECKING:
    from portico.kernel.session import Session


def react(session: "Session", event: e.Event) -> None:
    reaction = _REACTIONS.get(type(event))
    if reaction is not None:
        reaction(session, event)


def _turn_started(session: "Session", event: e.TurnStarted) -> None:
    if event.by != "agent":  # a sub-agent's turn is reported by the agent that runs it
        session.begin(event.turn, event.message, resumed=False)


def _turn_resumed(session: "Session", event: e.TurnResumed) -> None:
    turn = session.state.turn(event.turn)
    if turn is not None and turn.outcome is None:
        session.begin(turn.id, turn.message, resumed=True)


def _turn_ended(session: "Session", event: e.TurnEnded) -> None:
    session.forget(event.turn)


def _approval_answered(session: "Session", event: e.ApprovalAnswered) -> None:
    session.approvals.settle(event)


def _sign_in_settled(session: "Session", event: e.SignInSettled) -> None:
    call = session.running.calls.get(event.call) if session.running is not None else None
    if call is not None and call.signing_in is not None and not call.signing_in.done():
        call.signing_in.set_result(event)


def _question_answered(session: "Session", event: e.QuestionAnswered) -> None:
    session.questions.settle(event)


def _closed(session: "Session", event: e.SessionClosed) -> None:
    if session.runner.opened:
        session.effect(session.runner.release(), "release")


def _truncated(session: "Session", event: e.SessionTruncated) -> None:
    async def start_anew() -> None:
        await session.runner.forget()
        await session.go_on()

    session.effect(start_anew(), "forget")


def _tools_changed(session: "Session", event: e.ClientJoined | e.ClientLeft) -> None:
    session.runner.refresh()
    if isinstance(event, e.ClientLeft) and event.abandon:
        session.effect(session.tools.abandon(event.client), "abandon calls of")


def _folders_changed(session: "Session", event: e.FolderAdded | e.FolderRemoved) -> None:
    for each in [session] if event.chat else session.family():
        each.runner.refresh()


_REACTIONS: dict[type[e.Event], Callable[["Session", Any], None]] = by_type(
    "event",
    *(_turn_started, _turn_resumed, _turn_ended, _approval_answered, _sign_in_settled, _question_answered),
    *(_closed, _truncated, _tools_changed, _folders_changed),
)
