"""Closes the open parts of a turn at its end: everything that starts ends exactly once."""

from portico.kernel import events as e
from portico.kernel.events import ErrorInfo, Outcome
from portico.kernel.state import CallPart, Part, SessionState, TextPart
from portico.kernel.tool_output import cut


def closing(state: SessionState, outcome: Outcome, by: str) -> list[e.Event]:
    """Return the events that close everything open in the active turn, except the turn."""
    turn = state.active
    if turn is None:
        return []
    return [event for part in turn.parts for event in _close(turn.id, part, outcome, by)]


def _close(turn: str, part: Part, outcome: Outcome, by: str) -> list[e.Event]:
    if isinstance(part, CallPart):
        return [*_answers(turn, part, outcome, by), *_end_call(turn, part, outcome)]
    if part.done:
        return []
    if isinstance(part, TextPart):
        return [e.PartEnded(turn=turn, part=part.id, text=part.text)]
    return [e.QuestionAnswered(turn=turn, question=part.id, response="cancel", by=by)]


def _answers(turn: str, call: CallPart, outcome: Outcome, by: str) -> list[e.Event]:
    """Close open approvals, also of an ended call: a cancelled agent may end a call before the answer."""
    return [
        e.ApprovalAnswered(turn=turn, approval=approval.id, allowed=False, by=by, reason=outcome)
        for approval in call.approvals
        if not approval.answered
    ]


def _end_call(turn: str, part: CallPart, outcome: Outcome) -> list[e.Event]:
    if part.done:
        return []
    reason: Outcome = "cancelled" if outcome == "completed" else outcome
    end = e.ToolEnded(
        turn=turn,
        call=part.id,
        ok=False,
        output=cut(part.output, part.left_out),
        content=part.content,
        error=ErrorInfo(reason, f"The turn ended ({outcome}) before this call did."),
        outcome=reason,
    )
    return [end]
