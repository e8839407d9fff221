"""Rules as pure functions: `decide(state, command, context)` returns the events of a command, or raises.

Nothing here uses the log, the clock, a process or a file: the context contains the results of all queries that a
decision needs. Effects follow the committed events, in `host/react.py`.
"""

from collections.abc import Callable
from typing import Any

from portico import commands as c
from portico.host.decide import approval, host, question, session, turn
from portico.host.decide.decision import Context, HostState, Outcome, by_type
from portico.host.state import SessionState

Decide = Callable[[SessionState, Any, Context], Outcome]

DECISIONS: dict[type[c.Command], Decide] = by_type(
    "command",
    session.change, session.rename, session.set_model, session.configure, session.archive, session.share_with,
    session.unshare, session.mark_read, session.close, session.reopen, session.truncate, session.add_folder,
    session.remove_folder, session.choose_folder, session.join, session.leave, session.share, session.set_draft,
    turn.send, turn.run, turn.resume, turn.queue, turn.edit, turn.reorder, turn.remove, turn.release,
    approval.answer, question.draft, question.answer, question.decline_sign_in,
)  # fmt: skip
HOST_DECISIONS: dict[type[c.Command], Callable[[HostState, Any, Context], Outcome]] = by_type(
    "command", host.add_grant, host.revoke_grant, host.configure
)
"""Decisions about the state that all sessions share."""


def decide(state: SessionState, command: c.Command, context: Context) -> Outcome:
    return DECISIONS[type(command)](state, command, context)
