"""Decisions about what all sessions share: remembered answers, and the settings that editors push."""

from collections.abc import Sequence

from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import limits
from portico.kernel.autonomy import APPROVAL_KEYS
from portico.kernel.decide.decision import Context, HostState, Outcome
from portico.kernel.errors import BadRequest, NotFound, RateLimited
from portico.kernel.events import Grant


def add_grant(state: HostState, command: c.AddGrant, context: Context) -> Outcome:
    if not 0 < command.seconds <= limits.GRANT_SECONDS_MAX:
        raise BadRequest("A grant lasts more than 0 seconds and at most a year.", field="seconds")
    grant = new_grant(
        state,
        agent=command.agent,
        tool=command.tool,
        allow=command.allow,
        session=command.session,
        project=command.project,
        pattern=command.pattern,
        seconds=command.seconds,
        owner=context.caller.person if command.project is not None else "",
    )
    return Outcome(answer=grant, host_events=[e.GrantAdded(grant=grant, by=context.by)])


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
) -> Grant:
    """For one agent, one session or project, one tool and pattern; it always ends."""
    if (session is None) == (project is None):
        raise BadRequest("A grant is for one session or for one project.", field="session")
    if agent not in state.agents:
        names = ", ".join(map(repr, sorted(state.agents))) or "none"
        raise NotFound("agent", agent, f"There are: {names}.")
    if sum(grant.expires > state.now for grant in state.grants.values()) >= limits.GRANTS:
        raise RateLimited(f"There are {limits.GRANTS} grants; revoke some.")
    expires = state.now + int(seconds * 1000)
    return Grant(state.next_grant, agent, tool, allow, expires, session, project, pattern, list(covers), owner)


def revoke_grant(state: HostState, command: c.RevokeGrant, context: Context) -> Outcome:
    if command.grant not in state.grants:
        raise NotFound("grant", command.grant)
    return Outcome(answer=c.Done(), host_events=[e.GrantRevoked(grant=command.grant, by=context.by)])


def configure(state: HostState, command: c.ConfigureHost, context: Context) -> Outcome:
    """The rules change with the commit, and only then. False: nothing is new, and nothing is written."""
    before = state.settings
    values = command.values if command.replace else {**before, **command.values}
    changed = {key for key in {*values, *before} if values.get(key) != before.get(key)}
    if not changed:
        return Outcome(answer=False)
    if changed & APPROVAL_KEYS:
        context.require("approve")
        context.caller.require_all("These settings change what is asked in everybody's sessions")
    kept = e.ClientKept(key=SETTINGS, by=context.by, value=values, action=command.action)
    return Outcome(answer=True, host_events=[kept])


SETTINGS = "ahp.root"
"""Under which the settings that editors push are stored: the name of the first protocol that had them."""
