"""The feature `readiness`: describes and checks the agents for the whole host, and passes tokens to them."""

from typing import TYPE_CHECKING

from portico import limits
from portico.features.readiness.checks import AgentChecks
from portico.features.readiness.commands import SignIn
from portico.kernel import commands as c
from portico.kernel.agent import Authenticates
from portico.kernel.errors import BadRequest
from portico.kernel.feature import Feature, handle

if TYPE_CHECKING:
    from portico.kernel.host import Host


class Readiness(Feature):
    name = "readiness"
    commands = (SignIn,)

    def __init__(self, host: "Host") -> None:
        super().__init__(host)
        host.readiness = AgentChecks(host)

    @handle
    async def _sign_in(self, command: SignIn, caller: c.Caller) -> c.Done:
        """Pass a token to the agents that asked for it and nowhere else: not into the log, not into an error. It counts
        for the client that gave it."""
        if len(command.token) > limits.LOGIN_TOKEN_CHARS:
            raise BadRequest(f"A 'token' has at most {limits.LOGIN_TOKEN_CHARS} characters.", field="token")
        if caller.outside and not caller.client:
            caller.require("admin")  # it counts for all sessions that no editor has begun
        infos = await self.host.describe()
        asking = [info.id for info in infos if any(each.resource == command.resource for each in info.resources)]
        agents = [agent for ident in asking if isinstance(agent := self.host.agent(ident), Authenticates)]
        if not agents:
            raise BadRequest(f"Nothing here asks for a token of {command.resource!r}.", field="resource")
        for agent in agents:
            if command.token:
                await agent.authenticate(command.resource, command.token, command.seconds, caller.client)
            else:
                agent.sign_out(caller.client)
        await self.host.audit("authenticate" if command.token else "sign_out", caller.by, resource=command.resource)
        return c.Done()
