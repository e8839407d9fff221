"""What steps use of the host besides their own job."""

import asyncio
from collections.abc import Awaitable, Callable, Container, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from portico.addresses import Lookup, system_lookup
from portico.features.jobs.state import JobSummary
from portico.features.jobs.step import JobInput
from portico.features.jobs.workflow.inputs import HIDDEN, secrets_of
from portico.features.secrets.feature import Granted, HostSecrets
from portico.features.secrets.mask import Mask
from portico.kernel.errors import BadRequest
from portico.kernel.host import Host

Call = Callable[[JobSummary, str, str, dict[str, Any]], Awaitable[JobSummary]]
"""Runs another job to its end: the calling job, a key that is unique for the call, the name and the inputs."""
_INSTEAD = "Set it on each host with 'portico secrets set NAME', and list NAME in 'secrets' of the step."
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

    @property
    def store(self) -> HostSecrets | None:
        return next((each for each in self._host.parts if isinstance(each, HostSecrets)), None)

    async def secrets(self, names: list[str]) -> Granted:
        """The secrets of a step, and the mask for its output."""
        return Granted({}, Mask({})) if self.store is None else await self.store.resolve(names)

    async def keep_inputs(
        self, spec: dict[str, JobInput], inputs: dict[str, Any], known: Container[str], shared: bool
    ) -> dict[str, Any]:
        """The inputs of a job as the log contains them: secrets are stored by this host, and replaced by references.
        `known`: references that the caller has already. `shared`: other hosts run steps of the job, too."""
        given = {name: str(value) for name in secrets_of(spec) if (value := inputs.get(name))}
        if not given:
            return inputs
        if shared:
            words = "Several hosts run the steps of a job here, and a secret input is stored on one of them."
            raise BadRequest(f"{words} {_INSTEAD}", field="inputs")
        if (store := self.store) is None:
            raise BadRequest("This host has no home folder, so it stores no secrets.", field="inputs")
        old = {name: value for name, value in given.items() if value in known}
        fresh = {name: value for name, value in given.items() if name not in old}
        if HIDDEN in fresh.values():
            words = f"{HIDDEN!r} is shown in place of a secret input. Give its value."
            raise BadRequest(words, field="inputs")
        return {**inputs, **await store.keep_inputs(fresh, list(old.values()))}

    async def inputs(self, references: Mapping[str, str]) -> dict[str, str]:
        """The values of secret inputs, by name."""
        given = {name: reference for name, reference in references.items() if reference}
        values = {} if self.store is None or not given else await self.store.inputs(given)
        return {name: values.get(name, "") for name in references}
