"""Rules of the remembered answers that are added and revoked by command, and of the settings that editors share.

An answer to an approval adds its grant in its own commit (`kernel/decide/approval.py`).
"""

from portico import limits
from portico.features.approvals.commands import AddGrant, ConfigureHost, RevokeGrant
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.autonomy import APPROVAL_KEYS
from portico.kernel.decide.approval import new_grant
from portico.kernel.decide.decision import Context, HostState, Outcome, set_column
from portico.kernel.errors import BadRequest, NotFound
from portico.kernel.shared_state import SETTINGS


def add_grant(state: HostState, command: AddGrant, context: Context) -> Outcome:
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


def revoke_grant(state: HostState, command: RevokeGrant, context: Context) -> Outcome:
    if command.grant not in state.grants:
        raise NotFound("grant", command.grant)
    return Outcome(answer=c.Done(), host_events=[e.GrantRevoked(grant=command.grant, by=context.by)])


def configure(state: HostState, command: ConfigureHost, context: Context) -> Outcome:
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


set_column("decide", add_grant, revoke_grant, configure)
