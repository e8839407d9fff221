"""What steps use of the host besides their own job."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from portico.addresses import Lookup, system_lookup
from portico.features.jobs.state import JobSummary
from portico.features.secrets.feature import Granted, HostSecrets
from portico.features.secrets.mask import Mask
from portico.kernel.host import Host

Call = Callable[[JobSummary, str, str, dict[str, Any]], Awaitable[JobSummary]]
"""Runs another job to its end: the calling job, a key that is unique for the call, the name and the inputs."""
_THREADS = 4
"""For lookups of names, which block."""


class Services:
    def __init__(self, host: Host, call: Call) -> None:
        self._host = host
        self.call = call
        self.allow_private: list[str] = []
        """Names of hosts that `http` steps may call although their addresses are private."""
        self.lookup: Lookup = system_lookup(ThreadPoolExecutor(_THREADS, "jobs lookup"))
        self.committing = asyncio.Lock()

    async def secrets(self, names: list[str]) -> Granted:
        """The secrets of a step, and the mask for its output."""
        store = next((each for each in self._host.parts if isinstance(each, HostSecrets)), None)
        return Granted({}, Mask({})) if store is None else await store.resolve(names)
