"""Tokens that agents need from clients: `authenticate`, and the errors and notices that ask for one.

A token goes to the agent that asked for it and nowhere else: not into the log, not into an error, not to another door.
It is valid only for the client that sent it: requests of other clients need their own token.
"""

from typing import TYPE_CHECKING

from msgspec import structs

from portico.doors.ahp.act.command import Method, optional, text, texts
from portico.doors.ahp.view import snapshots
from portico.doors.ahp.wire import rpc, uri
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.rpc import WireError
from portico.features.readiness.commands import SignIn
from portico.kernel.agent import AgentInfo, Authenticates, Resource
from portico.kernel.errors import BadRequest

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient


async def authenticate(connection: "EditorClient", params: Json) -> Json:
    resource, token = text(params, "resource"), optional(params, "token", str)
    if token is None:
        raise BadRequest("'token' is missing; an empty one takes the last one back.", field="token")
    texts(params, "scopes")
    seconds = params.get("expiresIn")
    if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0):
        raise BadRequest("'expiresIn' is a number of seconds.", field="expiresIn")
    await connection.do(SignIn(resource=resource, token=token, seconds=seconds))
    await connection.broker.describe_agents()
    return {}


def lacking(connection: "EditorClient", info: AgentInfo) -> list[Resource]:
    """The required tokens that this client has not provided to the agent, with their state."""
    agent: object = connection.host.agents.get(info.id)
    if not isinstance(agent, Authenticates):
        return []
    states = [(each, agent.sign_in_state(each.resource, connection.client_id)) for each in info.resources]
    return [structs.replace(each, state=state) for each, state in states if each.required and state != "given"]


async def check(connection: "EditorClient", provider: str | None) -> None:
    """-32007, with what to sign in to, for an agent that would not answer anyway."""
    if provider is None or provider not in connection.host.agents:
        return
    info = await connection.host.described(provider)
    lacks = lacking(connection, info)
    if lacks:
        wanted = [snapshots.metadata(each) for each in lacks]
        words = info.missing or f"{info.name} is not signed in."
        raise WireError(rpc.AUTH_REQUIRED, words, wanted if connection.dialect.seed else {"resources": wanted})


def tell(connection: "EditorClient", info: AgentInfo, channel: str = uri.ROOT) -> None:
    """Asks a client for the tokens that an agent lacks. Since 0.8 the whole metadata goes along."""
    for each in lacking(connection, info):
        if connection.dialect.seed:
            notice: Json = {"type": "notify/authRequired", "resource": each.resource, "reason": each.state}
            connection.push(rpc.notification("notification", {"notification": notice}))
        else:
            resource = snapshots.metadata(each) if connection.dialect.since("0.8.0") else each.resource
            told = {"channel": channel, "resource": resource, "reason": each.state}
            connection.push(rpc.notification("auth/required", told))


COMMANDS = {"authenticate": Method(authenticate)}
