"""The tools about automations: an agent makes, starts, pauses and reads them, as far as its token may."""

from typing import Any

import msgspec
from msgspec import Struct

from portico import commands as c
from portico.automation.automations import Automations
from portico.automation.listing import info_of
from portico.doors.mcp.offer import Nothing, Offer
from portico.errors import BadRequest
from portico.events import AutomationPlan, Json

_RUNS = 20
"""Runs shown at once, the last ones."""


class CreateBody(Struct, forbid_unknown_fields=True, kw_only=True):
    name: str
    plan: dict[str, Any]


class NameBody(Struct, forbid_unknown_fields=True, kw_only=True):
    automation: str


class AutomationTools:
    def __init__(self, automations: Automations, who: c.Caller) -> None:
        self._all = automations
        self._who = who

    def offers(self) -> dict[str, Offer]:
        return {
            "list_automations": Offer("read", Nothing, self._list, "What starts by itself, and when next."),
            "read_automation": Offer("read", NameBody, self._read, "An automation and its last runs."),
            "create_automation": Offer(
                "jobs",
                CreateBody,
                self._create,
                "Makes an automation. plan: a trigger, such as schedule {cron, zone} or {every}, and what to start: "
                "job {job, input} or prompt {text, agent, cwd}.",
            ),
            "run_automation": Offer("jobs", NameBody, self._run, "Starts an automation now; returns the run's id."),
            "pause_automation": Offer("jobs", NameBody, self._pause, "It starts nothing by itself until resumed."),
            "resume_automation": Offer("jobs", NameBody, self._resume, "A paused one goes on from now."),
            "delete_automation": Offer("jobs", NameBody, self._delete, "Deletes an automation and its history."),
        }

    async def _list(self, body: Nothing) -> list[Json]:
        found = [info_of(self._all, state) for state in self._all.store.automations.values()]
        return [
            {"name": each.name, "enabled": each.enabled, "when": each.when, "next": each.next[:1], "id": each.id}
            for each in found
        ]

    async def _read(self, body: NameBody) -> Json:
        state = self._all.store.get(body.automation)
        runs = self._all.store.runs_of(state.id)[-_RUNS:]
        return {**msgspec.to_builtins(info_of(self._all, state)), "history": msgspec.to_builtins(runs)}

    async def _create(self, body: CreateBody) -> c.AutomationMade:
        try:
            plan = msgspec.convert(body.plan, AutomationPlan)
        except msgspec.ValidationError as error:
            raise BadRequest(f"The plan is not as expected: {error}", field="plan") from None
        made: c.AutomationMade = await self._all.host.do(c.CreateAutomation(name=body.name, plan=plan), self._who)
        return made

    async def _run(self, body: NameBody) -> c.RunNamed:
        named: c.RunNamed = await self._all.host.do(c.RunAutomation(automation=body.automation), self._who)
        return named

    async def _pause(self, body: NameBody) -> c.AutomationNamed:
        named: c.AutomationNamed = await self._all.host.do(c.PauseAutomation(automation=body.automation), self._who)
        return named

    async def _resume(self, body: NameBody) -> c.AutomationNamed:
        named: c.AutomationNamed = await self._all.host.do(c.ResumeAutomation(automation=body.automation), self._who)
        return named

    async def _delete(self, body: NameBody) -> c.Done:
        done: c.Done = await self._all.host.do(c.DeleteAutomation(automation=body.automation), self._who)
        return done
