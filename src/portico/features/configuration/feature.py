"""The settings file, changed by commands: one at a time, checked before it is written."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

from portico.features.configuration.commands import ConnectModel, SetSetting, SettingSaved
from portico.features.configuration.editable import EDITABLE, needs_restart
from portico.kernel.agent import Check
from portico.kernel.commands import Caller
from portico.kernel.errors import BadRequest, Conflict, NotFound, nearest
from portico.kernel.feature import Feature, handle
from portico.kernel.host import Host
from portico.server.home import Home
from portico.server.settings_load import Loaded, SettingSource, load

LOOP = "loop"
"""The built-in agent, which works with any model endpoint."""


class Configuration(Feature):
    name = "configuration"
    commands = (SetSetting, ConnectModel)

    def __init__(self, host: Host, home: Home, apply: Callable[[], Awaitable[Loaded]]) -> None:
        super().__init__(host)
        self._path = home.settings_path
        self._apply = apply
        """Reads the file now, and not at the next poll, and gives the settings that apply."""

    @handle
    async def set(self, command: SetSetting, caller: Caller) -> SettingSaved:
        key = command.key
        source = self._editable(key, (await self._apply()).sources)
        if source.origin.startswith(("env ", "flag ")):
            raise Conflict(f"{key!r} is set by {source.origin}, which has priority over the settings file.")
        from portico.server.settings_edit import set_value  # late import: the parser is not needed at start

        await asyncio.to_thread(set_value, self._path, key, command.value, load)
        await self.host.audit("setting.set", caller.by, key=key, removed=command.value is None)
        now = (await self._apply()).sources[key]
        return SettingSaved(key, now.value, now.origin, needs_restart(key))

    def _editable(self, key: str, sources: Mapping[str, SettingSource]) -> SettingSource:
        if key not in sources:
            near = nearest(key, sources)
            raise NotFound("setting", key, f"Did you mean {near!r}?" if near else "GET /v1/settings lists them all.")
        if key not in EDITABLE:
            raise BadRequest(f"{key!r} can only be changed in {str(self._path)!r}.", field="key")
        return sources[key]

    @handle
    async def connect(self, command: ConnectModel, caller: Caller) -> Check:
        address = urlsplit(command.base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise BadRequest("'base_url' is an address such as https://models.example.org/v1.", field="base_url")
        values = {"base_url": command.base_url} | ({"api_key": command.api_key} if command.api_key else {})
        from portico.server.settings_edit import add_table  # late import: the parser is not needed at start

        known = load(self._path).settings.agents.get(LOOP, {})
        name = address.hostname.replace(".", "-")
        table = ("agents", LOOP, "endpoints", name) if known else ("agents", LOOP)
        await asyncio.to_thread(add_table, self._path, table, values)
        return await self.host.readiness.check(LOOP)
