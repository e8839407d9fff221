"""Rules as pure functions: `decide(state, command, context)` gives the events that a command becomes, or raises.

Nothing here touches the log, the clock, a process or a file: what has to be asked of the world first was asked
before and stands in the context. The effects follow from the committed events, in `host/react.py`.
"""

from collections.abc import Callable
from typing import Any

from portico import commands as c
from portico.host.decide import approval, host, question, session, turn
from portico.host.decide.decision import Context, HostState, Outcome
from portico.host.state import SessionState

Decide = Callable[[SessionState, Any, Context], Outcome]

DECISIONS: dict[type[c.Command], Decide] = {
    c.ChangeSession: session.change,
    c.RenameSession: session.rename,
    c.SetModel: session.set_model,
    c.ConfigureSession: session.configure,
    c.ArchiveSession: session.archive,
    c.ShareSession: session.share_with,
    c.UnshareSession: session.unshare,
    c.MarkRead: session.mark_read,
    c.CloseSession: session.close,
    c.ReopenSession: session.reopen,
    c.TruncateSession: session.truncate,
    c.AddFolder: session.add_folder,
    c.RemoveFolder: session.remove_folder,
    c.ChooseFolder: session.choose_folder,
    c.JoinSession: session.join,
    c.LeaveSession: session.leave,
    c.ShareData: session.share,
    c.SetDraft: session.set_draft,
    c.SendMessage: turn.send,
    c.RunCommand: turn.run,
    c.ResumeTurn: turn.resume,
    c.QueueMessage: turn.queue,
    c.EditQueued: turn.edit,
    c.ReorderQueue: turn.reorder,
    c.RemoveQueued: turn.remove,
    c.ReleaseQueue: turn.release,
    c.AnswerApproval: approval.answer,
    c.DraftAnswer: question.draft,
    c.AnswerQuestion: question.answer,
    c.DeclineSignIn: question.decline_sign_in,
}

HOST_DECISIONS: dict[type[c.Command], Callable[[HostState, Any, Context], Outcome]] = {
    c.AddGrant: host.add_grant,
    c.RevokeGrant: host.revoke_grant,
    c.ConfigureHost: host.configure,
}
"""About what all sessions share."""


def decide(state: SessionState, command: c.Command, context: Context) -> Outcome:
    return DECISIONS[type(command)](state, command, context)
