"""The feature `hosts`: commands about the other hosts on this log. `Members` runs them; each is audited."""

from portico.features.hosts.commands import DrainHost, GivenUp, GiveUpHost
from portico.kernel import commands as c
from portico.kernel.feature import Feature, handle
from portico.kernel.members import Member


class Hosts(Feature):
    name = "hosts"
    commands = (DrainHost, GiveUpHost)

    @handle
    async def _drain(self, command: DrainHost, caller: c.Caller) -> Member:
        found = await self.host.members.drain(command.name)
        await self.host.audit("self.host.drained", caller.by, host=command.name)
        return found

    @handle
    async def _give_up(self, command: GiveUpHost, caller: c.Caller) -> GivenUp:
        ended = await self.host.members.give_up(command.name)
        await self.host.audit("self.host.given-up", caller.by, host=command.name, sessions=ended)
        return GivenUp(ended)
