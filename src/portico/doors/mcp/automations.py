"""Tools that read automations. Tools that change them are commands."""

import msgspec
from msgspec import Struct

from portico.doors.mcp.offer import Nothing
from portico.doors.mcp.shapes import AutomationList, ShownAutomation
from portico.features.automations.automations import Automations
from portico.features.automations.listing import info_of
from portico.kernel.events import Json
from portico.kernel.feature import ToolOffer

_RUNS = 20
"""How many of the last runs are shown."""


class NameBody(Struct, forbid_unknown_fields=True, kw_only=True):
    automation: str


class AutomationTools:
    def __init__(self, automations: Automations) -> None:
        self._all = automations

    def offers(self) -> dict[str, ToolOffer]:
        return {
            "list_automations": ToolOffer("automations", Nothing, self._list, "The automations with their next start."),
            "read_automation": ToolOffer("automations", NameBody, self._read, "An automation and its last runs."),
        }

    async def _list(self, body: Nothing) -> AutomationList:
        found = [info_of(self._all, state, times=1) for state in self._all.store.automations.values()]
        return AutomationList(
            [ShownAutomation(each.name, each.enabled, each.when, each.next[:1], each.id) for each in found]
        )

    async def _read(self, body: NameBody) -> Json:
        state = self._all.store.get(body.automation)
        runs = self._all.store.runs_of(state.id)[-_RUNS:]
        return {**msgspec.to_builtins(info_of(self._all, state)), "history": msgspec.to_builtins(runs)}
