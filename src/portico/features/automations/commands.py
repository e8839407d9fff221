"""Commands about automations. What one starts needs the scopes of that too: they are judged when it is written."""

from typing import Any

from msgspec import Struct

from portico.features.automations.events import AutomationPlan
from portico.kernel.commands import AboutAutomation, Command, Done, Http, NoLock, register
from portico.kernel.events import Json

_ONE = "/v1/automations/{id}"


class AutomationMade(Struct, omit_defaults=True):
    automation: str
    secret: str = ""
    """Of its hook: shown this once."""


class AutomationNamed(Struct):
    automation: str


class HookSecret(Struct):
    secret: str


class RunNamed(Struct):
    run: str


class CreateAutomation(Command, frozen=True, tag="automation.create"):
    """Make an automation: a trigger, what to start, and the rules."""

    scope = "jobs"
    shared_by_all = "automations"
    lock = "feature"
    gives = AutomationMade
    http = Http("POST", "/v1/automations", 201)
    errors = ("not_found", "conflict", "already_exists")
    private = frozenset({"uri", "meta"})

    name: str
    """Lower case letters, digits and hyphens; unique."""
    plan: AutomationPlan = AutomationPlan()
    enabled: bool = True
    uri: str = ""
    """What its client calls it."""
    meta: Json = {}


class EditAutomation(AboutAutomation, frozen=True, tag="automation.edit"):
    """Change an automation; what is not named stays."""

    scope = "jobs"
    gives = AutomationNamed
    http = Http("PATCH", _ONE)
    errors = ("not_found", "conflict", "already_exists")
    private = frozenset({"meta"})

    name: str | None = None
    plan: AutomationPlan | None = None
    """The whole of it."""
    meta: Json | None = None


class PauseAutomation(AboutAutomation, frozen=True, tag="automation.pause"):
    """Pause an automation: it starts nothing until it is resumed."""

    scope = "jobs"
    gives = AutomationNamed
    http = Http("POST", f"{_ONE}/pause")

    reason: str = ""


class ResumeAutomation(AboutAutomation, frozen=True, tag="automation.resume"):
    """Resume a paused automation from now on."""

    scope = "jobs"
    gives = AutomationNamed
    http = Http("POST", f"{_ONE}/resume")


class RunAutomation(AboutAutomation, frozen=True, tag="automation.run"):
    """Start an automation now, also a paused one."""

    scope = "jobs"
    lock = NoLock("A claim counts from the moment it is planned, and planning has no await.")
    gives = RunNamed
    limited = True
    http = Http("POST", f"{_ONE}/run", 202)
    private = frozenset({"delivery", "payload"})

    input: str | None = None
    """In place of the job's input or the prompt's text."""
    at: str = ""
    """The time that the run is for, such as one that was missed: `2027-01-31T09:00`, in the zone; absent: now."""
    delivery: str = ""
    """The id of a hook's delivery."""
    payload: Any = None


class CancelRun(Command, frozen=True, tag="automation.cancel"):
    """Cancel a run, with what it has started."""

    scope = "jobs"
    shared_by_all = "automations"
    lock = "feature"
    about = "run"
    gives = Done
    http = Http("POST", "/v1/runs/{id}/cancel")

    run: str


class RotateSecret(AboutAutomation, frozen=True, tag="automation.secret"):
    """Give a hook another secret, which is shown this once; the old one is void."""

    scope = "jobs"
    gives = HookSecret
    http = Http("POST", f"{_ONE}/secret")


class DeleteAutomation(AboutAutomation, frozen=True, tag="automation.delete"):
    """Delete an automation and its history. Running sessions and jobs continue."""

    scope = "jobs"
    gives = Done
    http = Http("DELETE", _ONE, 204)


COMMANDS: tuple[type[Command], ...] = (
    CreateAutomation,
    EditAutomation,
    PauseAutomation,
    ResumeAutomation,
    RunAutomation,
    CancelRun,
    RotateSecret,
    DeleteAutomation,
)
register(*COMMANDS)
