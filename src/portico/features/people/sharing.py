"""Sharing a session with other people: the rules of `session.share` and `session.unshare`.

What a share permits is decided in `kernel/ownership.py`.
"""

from portico import limits
from portico.features.people.commands import ShareSession, UnshareSession
from portico.features.people.people import check_person
from portico.kernel import events as e
from portico.kernel.decide.decision import Context, Outcome, set_column
from portico.kernel.errors import BadRequest, Forbidden, RateLimited
from portico.kernel.events import Json, Right
from portico.kernel.people import EVERYONE
from portico.kernel.state import SessionState


def share_with(state: SessionState, command: ShareSession, context: Context) -> Outcome:
    check_person(command.person, also=EVERYONE)
    if state.parent is not None:
        raise BadRequest(f"{state.id!r} is shared with the session above it; share that one.", field="session")
    rights: list[Right] = ["read"] if command.rights is None else list(dict.fromkeys(command.rights))
    if not rights:
        raise BadRequest("Choose at least one of read, drive, approve.", field="rights")
    if "approve" in rights and not context.caller.may("approve"):
        raise Forbidden("To let somebody approve needs the scope 'approve'.", field="rights")
    if state.shares.get(command.person) == rights:
        return Outcome()
    if command.person not in (*state.shares, EVERYONE) and len(state.shares) >= limits.SHARES:
        raise RateLimited(f"A session is shared with at most {limits.SHARES} people; share it with '*'.")
    return _shares(state, command.person, rights, context)


def unshare(state: SessionState, command: UnshareSession, context: Context) -> Outcome:
    return _shares(state, command.person, [], context) if command.person in state.shares else Outcome()


def _shares(state: SessionState, person: str, rights: list[Right], context: Context) -> Outcome:
    detail: Json = {"session": state.id, "person": person, "rights": rights}
    audited = e.Audited(action="session.shared", by=context.by, detail=detail)
    return Outcome([e.SessionShared(person=person, rights=rights, by=context.by)], host_events=[audited])


set_column("decide", share_with, unshare)
