"""The handlers of the commands about automations and runs."""

from typing import TYPE_CHECKING, Any

from portico import limits
from portico.features.automations import commands as ac
from portico.features.automations import events as ae
from portico.features.automations.commands import AutomationMade, AutomationNamed, HookSecret, RunNamed
from portico.features.automations.decide import DELETED, Appended, Cause
from portico.features.automations.plan import check_name, check_plan, needed_scopes, zone
from portico.features.automations.schedule import moment
from portico.features.automations.state import AutomationState
from portico.features.automations.triggers import hooks_of
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import limits as kernel_limits
from portico.kernel.do import note_answer
from portico.kernel.errors import AlreadyExists, BadRequest, Conflict, Forbidden
from portico.kernel.feature import handle

if TYPE_CHECKING:
    from portico.features.automations.automations import Automations

FILE = "automations.toml"


class AutomationCommands:
    """The handlers. The host runs them under the lock that `Automations.lock_of` returns."""

    def __init__(self, automations: "Automations") -> None:
        self._all = automations
        self._host = automations.host
        self._store = automations.store

    @handle
    async def create(self, command: ac.CreateAutomation, caller: c.Caller) -> AutomationMade:
        if len(self._store.automations) >= limits.AUTOMATIONS:
            raise Conflict(f"There are {limits.AUTOMATIONS} automations, which are the most.")
        check_name(command.name)
        check_plan(command.plan, self._host, self._all.jobs, command.name)
        scopes = await needed_scopes(command.plan, self._host, caller)
        self._check_free(command.name, command.uri)
        ident = self._store.new_automation()
        source = "file" if caller.by == FILE else "door"
        created = e.like(ae.AutomationCreated, command, automation=ident, by=caller.by, scopes=scopes, source=source)
        note_answer(AutomationMade(ident))  # without the secret: it is shown once
        await self._append(ident, created)
        hook = bool(hooks_of(command.plan))
        return AutomationMade(ident, self._all.secrets.of(self._store.get(ident)) if hook else "")

    def _check_free(self, name: str, uri: str = "", but: str = "") -> None:
        for taken in (name, uri):
            known = self._store.find(taken) if taken else None
            if known is not None and known.id != but:
                raise AlreadyExists(f"There is an automation {taken!r} already.", field="name")

    @handle
    async def edit(self, command: ac.EditAutomation, caller: c.Caller) -> AutomationNamed:
        state = self._mine(command.automation, caller)
        _check_file(state, caller)
        name = check_name(command.name) if command.name is not None else state.name
        plan = command.plan if command.plan is not None else state.plan
        meta = command.meta if command.meta is not None else state.meta
        self._check_free(name, but=state.id)
        if plan != state.plan:
            check_plan(plan, self._host, self._all.jobs, name)
        scopes = await needed_scopes(plan, self._host, caller)
        if (name, plan, meta) != (state.name, state.plan, state.meta):
            await self._append(
                state.id, ae.AutomationEdited(name=name, plan=plan, by=caller.by, scopes=scopes, meta=meta)
            )
        return AutomationNamed(state.id)

    @handle
    async def pause(self, command: ac.PauseAutomation, caller: c.Caller) -> AutomationNamed:
        state = self._store.get(command.automation)
        if state.enabled:
            reason = command.reason[: kernel_limits.TITLE_CHARS] or f"Paused by {caller.by}."
            await self._append(state.id, ae.AutomationPaused(by=caller.by, reason=reason))
        return AutomationNamed(state.id)

    @handle
    async def resume(self, command: ac.ResumeAutomation, caller: c.Caller) -> AutomationNamed:
        state = self._mine(command.automation, caller)
        if not state.enabled:
            await self._append(state.id, ae.AutomationResumed(by=caller.by))
        return AutomationNamed(state.id)

    @handle
    async def run(self, command: ac.RunAutomation, caller: c.Caller) -> RunNamed:
        state = self._mine(command.automation, caller)
        now = self._host.now()
        if command.delivery:
            by, given = f"automation:{state.id}", command.payload
            cause = Cause("hook", now, by, command.input, delivery=command.delivery, payload=given)
            return RunNamed(await self._all.claim(state, cause))
        due = _past(command.at, state, now) if command.at else now
        late = bool(command.at)
        return RunNamed(await self._all.run_now(state, Cause("person", due, caller.by, command.input, late=late)))

    @handle
    async def cancel(self, command: ac.CancelRun, caller: c.Caller) -> c.Done:
        run = self._store.run(command.run)
        if not run.open:
            raise Conflict(f"The run {run.id!r} is over.")
        await self._all.runs.stop(run, by=caller.by)
        return c.Done()

    @handle
    async def rotate(self, command: ac.RotateSecret, caller: c.Caller) -> HookSecret:
        state = self._mine(command.automation, caller)
        if not hooks_of(state.plan):
            raise Conflict(f"The automation {state.name!r} has no hook.")
        note_answer(HookSecret(""))
        await self._append(state.id, ae.HookRotated(by=caller.by))
        return HookSecret(self._all.secrets.of(state))

    @handle
    async def delete(self, command: ac.DeleteAutomation, caller: c.Caller) -> c.Done:
        state = self._store.get(command.automation)
        _check_file(state, caller)
        waiting = [run.id for run in self._all.open_runs(state.id) if run.status == "pending"]
        pending = [run for run in waiting if run not in self._all.runs.tasks]  # a start in progress continues
        events: Appended = self._all.skipping(state.id, pending, DELETED)
        self._all.deleting.add(state.id)
        try:
            await self._all.append([*events, (f"automation/{state.id}", ae.AutomationDeleted(by=caller.by))])
        finally:
            self._all.deleting.discard(state.id)
            self._all.look_at_runs(state.id)
        for run in self._store.runs_of(state.id):
            if not run.open:
                await self._store.forget(run)
        return c.Done()

    def _mine(self, name: str, caller: c.Caller) -> AutomationState:
        """Return the automation if the caller has all scopes that its runs need."""
        state = self._store.get(name)
        missing: Any = next((scope for scope in state.scopes if scope not in caller.scopes), None)
        if missing is not None:
            words = f"What {state.name!r} starts needs the scope {missing!r}, which {caller.name!r} does not have."
            raise Forbidden(words, field="automation")
        return state

    async def _append(self, ident: str, event: e.Event) -> None:
        await self._all.append([(f"automation/{ident}", event)])


def _past(text: str, state: AutomationState, now: int) -> int:
    """The time of a run that makes up for one that was missed."""
    due = moment(text, zone(state.plan), "at")
    if due > now:
        raise BadRequest(f"{text!r} is still to come ({zone(state.plan)}). Give a time in the past.", field="at")
    return due


def _check_file(state: AutomationState, caller: c.Caller) -> None:
    if state.source == "file" and caller.by != FILE:
        raise Conflict(f"{state.name!r} is written in {FILE}: change it there.", field="automation")
