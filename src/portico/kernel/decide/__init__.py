"""Rules as pure functions: `decide(state, command, context)` returns the events of a command, or raises.

Nothing here uses the log, the clock, a process or a file: the context contains the results of all queries that a
decision needs. Effects follow the committed events, in `host/react.py`.
"""

from portico.kernel.commands import Command
from portico.kernel.decide import approval, question, session, turn
from portico.kernel.decide.decision import Context, Outcome, set_column
from portico.kernel.state import SessionState

set_column(
    "decide",
    session.change, session.rename, session.set_model, session.configure, session.archive, session.mark_read,
    session.close, session.reopen, session.truncate, session.join, session.leave, session.share,
    turn.send, turn.run, turn.resume, turn.queue, turn.edit, turn.reorder, turn.remove, turn.release,
    approval.answer, question.draft, question.answer, question.decline_sign_in,
)  # fmt: skip
"""Commands with `lock = "host"` are decided from the state that all sessions share, the others from their session's."""


def decide(state: SessionState, command: Command, context: Context) -> Outcome:
    outcome: Outcome = type(command).decide(state, command, context)
    return outcome
