"""An MCP server of the settings: connected when it is first needed, and reconnected after it died."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from portico.agents.mcp.client import START_SECONDS, McpClient, ServerError
from portico.agents.mcp.sign_in import Bearer, SignInNeeded
from portico.agents.mcp.stdio import StdioConnection, StdioWire
from portico.agents.process_registry import ProcessRegistry
from portico.agents.servers import McpServer
from portico.agents.supervisor import Process, Supervisor, agent_environment
from portico.kernel.errors import AgentError
from portico.sandbox.policy import Confinement

RETRY_SECONDS = 60.0
"""After a failure: a server that is down must not hold up every turn."""

ConfineServer = Callable[[McpServer], Awaitable[Confinement]]
"""Returns how the process of a server is started."""


class RunningServer:
    """Of one conversation: servers keep what they know per connection."""

    def __init__(
        self,
        name: str,
        settings: McpServer,
        home: Path,
        cwd: str,
        confine: ConfineServer,
        bearer: Bearer | None = None,
    ) -> None:
        self.name = name
        self._settings = settings
        self._cwd = cwd
        self._bearer = bearer
        self._http: McpClient | None = None
        self._connection: StdioConnection | None = None
        self._failed_at = -RETRY_SECONDS
        self._supervisor: Supervisor[StdioConnection] | None = None
        if settings.command:
            env = agent_environment((), settings.env)
            self._supervisor = Supervisor(
                f"MCP server {name}",
                settings.command,
                env,
                Path(cwd),
                ProcessRegistry(home),
                self._greet,
                confine=lambda: confine(settings),
                start_seconds=START_SECONDS,
            )

    @property
    def resting(self) -> bool:
        """It failed a moment ago and is not retried yet."""
        return time.monotonic() - self._failed_at < RETRY_SECONDS

    async def connect(self) -> McpClient:
        """A client that has shaken hands; raises AgentError when the server does not answer."""
        try:
            client = await self._connect()
            async with asyncio.timeout(START_SECONDS):
                await client.tools()
            return client
        except TimeoutError:
            self._failed_at = time.monotonic()
            raise ServerError(f"It did not answer within {START_SECONDS:g} seconds.") from None
        except SignInNeeded:
            raise  # it answers as soon as the user signs in
        except AgentError:
            self._failed_at = time.monotonic()
            raise

    async def _connect(self) -> McpClient:
        if self._supervisor is not None:
            self._connection = await self._supervisor.get()
            return self._connection.client
        if self._http is None:
            # Late: httpx takes 50 ms, and most servers are processes.
            from portico.agents.certificates import certificates
            from portico.agents.mcp.http import HttpWire

            verify = await asyncio.to_thread(certificates) if self._settings.url.startswith("https:") else False
            wire = HttpWire(self.name, self._settings.url, self._settings.headers, verify, self._bearer)
            client = McpClient(self.name, wire, self._cwd)
            try:
                async with asyncio.timeout(START_SECONDS):
                    await client.initialize()
            except BaseException:  # also a cancel: no other code closes it
                await wire.close()
                raise
            self._http = client
        return self._http

    async def _greet(self, process: Process) -> StdioConnection:
        wire = StdioWire(process)
        client = McpClient(self.name, wire, self._cwd)
        try:
            await client.initialize()
        except BaseException:  # as above
            await wire.close()
            raise
        return StdioConnection(process, client)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """While a call runs, its process does not rest. A cancelled call leaves the server as it is."""
        if self._connection is None:
            yield
            return
        connection = self._connection
        connection.running += 1
        try:
            yield
        finally:
            connection.running -= 1

    async def close(self) -> None:
        if self._supervisor is not None:
            await self._supervisor.close()
        if self._http is not None:
            await self._http.wire.close()
            self._http = None
