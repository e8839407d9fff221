"""The base of agents that use the MCP servers which clients bring."""

from collections.abc import Callable, Mapping

from portico.features.client_servers.commands import ClientServer

ServersOf = Callable[[str], Mapping[str, ClientServer]]


class TakesServers:
    _servers_of: ServersOf | None = None

    def take_servers(self, servers_of: ServersOf) -> None:
        """Called by the host: `servers_of` gives the servers of a session by their names."""
        self._servers_of = servers_of

    def brought(self, session: str) -> Mapping[str, ClientServer]:
        """The servers that clients brought for a session."""
        return self._servers_of(session) if self._servers_of is not None else {}
