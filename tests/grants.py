"""Adds and revokes remembered answers in a test, by the commands."""

from portico.features.approvals.commands import AddGrant, RevokeGrant
from portico.kernel.commands import Caller
from portico.kernel.events import Grant
from portico.kernel.services import HostServices
from tests.features import whole


async def add_grant(
    host: HostServices,
    *,
    agent: str,
    tool: str,
    allow: bool,
    by: str,
    session: str | None = None,
    project: str | None = None,
    pattern: str = "*",
) -> Grant:
    command = AddGrant(agent=agent, tool=tool, allow=allow, session=session, project=project, pattern=pattern)
    grant: Grant = await whole(host).do(command, Caller.inside(by))
    return grant


async def revoke_grant(host: HostServices, ident: str, *, by: str) -> None:
    await whole(host).do(RevokeGrant(grant=ident), Caller.inside(by))
