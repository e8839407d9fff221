"""Decisions about approvals: the first valid answer wins, and its grant is part of the same commit."""

from collections.abc import Sequence

from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.decide.decision import Context, HostState, Outcome
from portico.kernel.errors import AlreadyAnswered, BadRequest, Conflict, NotFound, RateLimited
from portico.kernel.events import Json, Option
from portico.kernel.fold import find_approval
from portico.kernel.state import CallPart, SessionState

ONCE = Option("allow-once", "Allow once", True)
SESSION = Option("allow-session", "Allow in this session", True, "session")
DENY = Option("deny", "Deny", False)
OPTIONS = [ONCE, SESSION, DENY]

TIMEOUT = "timeout"
"""The `by` of a denial after a timeout. It is not a decision of a person, so it is not audited."""


def answer(state: SessionState, command: c.AnswerApproval, context: Context) -> Outcome:
    """Answer by option, or by `allow` alone (then only for this call). If the grant is refused, it stays open."""
    found = find_approval(state, command.approval)
    if found is None:
        raise NotFound("approval", command.approval)
    call, approval = found
    if approval.answered:
        raise AlreadyAnswered(f"{command.approval!r} was answered by {approval.by!r} before.")
    chosen = _choose(approval.options, command.option, command.allow)
    if command.input is not None and not approval.editable:
        raise BadRequest("This call's input cannot be edited.", field="input")
    if command.covers != "shown" and (chosen.grant == "once" or context.found is None):
        raise BadRequest(f"This answer cannot be remembered for {command.covers!r}.", field="covers")
    if context.withdrawn or state.active is None:
        raise Conflict("The turn is being cancelled: nothing of it can be approved any more.")
    grant = _grant(state, call, chosen, context)
    answered = e.ApprovalAnswered(
        turn=state.active.id,
        approval=command.approval,
        allowed=chosen.allow,
        by=context.by,
        option=chosen.id,
        reason=command.reason,
        input=command.input,
        meta=command.meta,
        grant=grant.id if grant is not None else "",
        covers=grant.covers if grant is not None else [],
    )
    remembered = [*([e.GrantAdded(grant=grant, by=context.by)] if grant is not None else []), *_audit(answered)]
    return Outcome([answered], c.Decided(command.approval, chosen.allow, context.by), remembered)


def _grant(state: SessionState, call: CallPart, chosen: Option, context: Context) -> e.Grant | None:
    """Return the grant, only for what was shown. None: the answer is for this call only, or the call has ended."""
    covers: Sequence[str] | None = context.found
    if chosen.grant == "once" or covers is None:
        return None
    return new_grant(
        context.shared,
        agent=state.agent,
        tool=call.tool,
        allow=chosen.allow,
        session=state.id if chosen.grant == "session" else None,
        project=state.cwd if chosen.grant == "project" else None,
        covers=covers,
        owner=context.owner if chosen.grant == "project" else "",
    )


def new_grant(
    state: HostState,
    *,
    agent: str,
    tool: str,
    allow: bool,
    session: str | None,
    project: str | None,
    pattern: str = "*",
    covers: Sequence[str] = (),
    seconds: float = limits.GRANT_SECONDS,
    owner: str = "",
) -> e.Grant:
    """For one agent, one session or project, one tool and pattern; it always ends."""
    if (session is None) == (project is None):
        raise BadRequest("A grant is for one session or for one project.", field="session")
    if agent not in state.agents:
        names = ", ".join(map(repr, sorted(state.agents))) or "none"
        raise NotFound("agent", agent, f"There are: {names}.")
    if sum(grant.expires > state.now for grant in state.grants.values()) >= limits.GRANTS:
        raise RateLimited(f"There are {limits.GRANTS} grants; revoke some.")
    expires = state.now + int(seconds * 1000)
    return e.Grant(state.next_grant, agent, tool, allow, expires, session, project, pattern, list(covers), owner)


def _audit(answered: e.ApprovalAnswered) -> list[e.Event]:
    """Return the audit event. It is in the same commit, so that a crash cannot separate it from the answer."""
    if answered.by == TIMEOUT:
        return []
    detail: Json = {"approval": answered.approval, "allowed": answered.allowed}
    return [e.Audited(action="approval", by=answered.by, detail=detail)]


def _choose(options: list[Option], option: str | None, allow: bool | None) -> Option:
    if option is not None:
        chosen = next((each for each in options if each.id == option), None)
        if chosen is None:
            names = ", ".join(repr(each.id) for each in options)
            raise BadRequest(f"There is no option {option!r}; choose one of {names}.", field="option")
        if allow is not None and allow is not chosen.allow:
            raise BadRequest(f"Option {option!r} contradicts 'allow'; send one of them.", field="option")
        return chosen
    if allow is None:
        raise BadRequest("Say 'allow': true or false, or name an 'option'.", field="allow")
    return next((each for each in options if each.allow is allow and each.grant == "once"), ONCE if allow else DENY)
