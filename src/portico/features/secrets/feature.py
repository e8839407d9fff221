"""The secrets of the host: commands that set and remove them, and what jobs use."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping

from msgspec import Struct

from portico.features.secrets.commands import RemoveSecret, SecretNamed, SetSecret
from portico.features.secrets.inputs import InputStore
from portico.features.secrets.mask import Mask
from portico.features.secrets.store import Secret, SecretStore
from portico.kernel.commands import Caller, Done
from portico.kernel.feature import Feature, handle
from portico.kernel.host import Host
from portico.server.home import Home


class Granted(Struct, frozen=True):
    """What one step receives."""

    env: dict[str, str]
    mask: Mask
    """For everything that the step outputs."""

    def __repr__(self) -> str:
        return f"Granted({', '.join(self.env)})"


class HostSecrets(Feature):
    name = "secrets"
    needs = (Home,)
    commands = (SetSecret, RemoveSecret)

    def __init__(self, host: Host, home: Home) -> None:
        super().__init__(host)
        self._store = SecretStore(home)
        self._inputs = InputStore(home)
        self.inputs_in_use: list[Callable[[], Awaitable[set[str]]]] = []
        """Return the references of unfinished jobs, whose values are not removed."""
        self._values: dict[str, dict[str, None]] = {}
        """Values by name since the start: outputs may contain one after the secret was changed or removed."""
        self._of_inputs: dict[str, list[str]] = {}
        self._mask = Mask({})
        self._stamp: object = None

    async def all(self) -> list[Secret]:
        return await asyncio.to_thread(self._store.list)

    async def resolve(self, names: Iterable[str]) -> Granted:
        """The values for one step. NotFound names the missing secret and the command that sets it."""
        wanted = list(names)
        env = await asyncio.to_thread(self._store.resolve, wanted) if wanted else {}
        self._remember(env)
        return Granted(env, await self.mask())

    async def mask(self) -> Mask:
        """Masks the values of all secrets of this host, for outputs, prompts and results of any step."""
        stamp = self._store.stamp(), self._inputs.stamp()
        if stamp != self._stamp:
            self._add(await asyncio.to_thread(self._store.values))
            self._of_inputs = await asyncio.to_thread(self._inputs.values)
            self._make_mask()
            self._stamp = stamp
        return self._mask

    def _remember(self, values: Mapping[str, str]) -> None:
        if self._add(values):
            self._make_mask()

    def _add(self, values: Mapping[str, str]) -> bool:
        new = {name: value for name, value in values.items() if value not in self._values.get(name, ())}
        for name, value in new.items():
            self._values.setdefault(name, {})[value] = None
        return bool(new)

    def _make_mask(self) -> None:
        names = {**self._values, **self._of_inputs}
        self._mask = Mask({name: [*self._values.get(name, ()), *self._of_inputs.get(name, ())] for name in names})

    # -- secret inputs of jobs -------------------------------------------------------------------------------------

    async def keep_inputs(self, fresh: Mapping[str, str], known: Collection[str]) -> dict[str, str]:
        """Store the secret inputs of a job that starts, and return their references by name. `known`: references of an
        earlier job that the new one uses."""
        now, in_use = self.host.now(), await self._in_use()
        return await asyncio.to_thread(self._inputs.keep, fresh, known, now, in_use)

    async def inputs(self, references: Mapping[str, str]) -> dict[str, str]:
        """The values of secret inputs by name. NotFound: this host does not have one of them."""
        values = await asyncio.to_thread(self._inputs.read, list(references.values()))
        return dict(zip(references, values, strict=True))

    async def sweep(self) -> None:
        now = self.host.now()
        if not (expired := await asyncio.to_thread(self._inputs.expired, now)):
            return
        if old := set(expired) - await self._in_use():
            await asyncio.to_thread(self._inputs.remove, old, now)

    async def _in_use(self) -> set[str]:
        return {reference for each in self.inputs_in_use for reference in await each()}

    async def check(self, names: Iterable[str]) -> list[str]:
        """Which of these secrets are missing, so that a job can be refused before it starts."""
        known = {each.name for each in await self.all()}
        return [name for name in names if name not in known]

    @handle
    async def set(self, command: SetSecret, caller: Caller) -> SecretNamed:
        made = await asyncio.to_thread(self._store.set, command.name, command.value)
        await self.host.audit("secret.set", caller.by, name=made.name)
        return SecretNamed(made.name, made.changed)

    @handle
    async def remove(self, command: RemoveSecret, caller: Caller) -> Done:
        await asyncio.to_thread(self._store.remove, command.name)
        await self.host.audit("secret.removed", caller.by, name=command.name)
        return Done()
