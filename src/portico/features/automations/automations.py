"""The feature `automations`: all automations of one host, from their triggers to the end of their runs.

`recover` loads them. `start` resumes the runs that a crash interrupted and starts the timer. Nothing starts before its
claim is durable. A claim starts a command with a unique id, so a start that is repeated after a crash finds what was
started.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from portico import limits
from portico.features.automations import commands as ac
from portico.features.automations import events as ae
from portico.features.automations import hook as hooks
from portico.features.automations.commands import RunNamed
from portico.features.automations.decide import (
    DELETED,
    Appended,
    Cause,
    claim,
    due_causes,
    next_runs,
    next_time,
    refusal,
    stop_reason,
)
from portico.features.automations.files import FileWatch
from portico.features.automations.handlers import FILE, AutomationCommands
from portico.features.automations.lease import Lease, LocalLease
from portico.features.automations.run import Runs
from portico.features.automations.source import apply as apply_file
from portico.features.automations.state import AutomationState, RunSummary, begin_run
from portico.features.automations.store import AutomationStore
from portico.features.automations.timer import Timer
from portico.features.automations.triggers import afters_of, hooks_of, schedules_of
from portico.features.jobs import events as je
from portico.features.jobs.jobs import Jobs
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import faults
from portico.kernel.do import note_answer
from portico.kernel.errors import Conflict, LogUnavailable, PorticoError, RateLimited
from portico.kernel.events import Record
from portico.kernel.feature import Feature, receive
from portico.kernel.host import Host
from portico.kernel.log.log import NotOwner
from portico.kernel.rate import Bucket
from portico.locks import KeyedLocks
from portico.server.home import stamp
from portico.tasks import end_tasks

SWEEP_SECONDS = 60.0
"""How often old runs leave the history. Runs that outlive their automation stay for this long after their end,
so that clients can read their outcome."""


_AT_ONCE = 50
"""Automations that are checked before control returns to the event loop."""


_FileStamp = tuple[tuple[int, int] | None, bool]
"""The modification of the file, and whether this host applies it."""


class Delivered(RunNamed, omit_defaults=True):
    reason: str = ""
    """Why there is no run, or why it was skipped."""


class Automations(Feature):
    name = "automations"
    commands = ac.COMMANDS
    events = ae.EVENTS

    def __init__(self, host: Host, jobs: Jobs | None, home: Path, lease: Lease) -> None:
        self.host = host
        self.jobs = jobs
        self.lease = lease
        self.secrets = hooks.Secrets(home / "hooks.key")
        self.store = AutomationStore(host.log, self._changed)
        super().__init__(host, handlers=[AutomationCommands(self)])
        self._run_locks = KeyedLocks()
        self._file = home / FILE
        self._file_applied: _FileStamp | None = None
        self._file_seen: _FileStamp | None = None
        self.runs = Runs(self)
        self.timer = Timer(host.clock, lease, self._due, self.begin)
        self.files = FileWatch(self)
        self.file_error = ""
        """The error in `automations.toml`; empty: none."""
        self._claiming: dict[str, dict[str, RunSummary]] = {}
        """Runs whose claims are being written."""
        self.deleting: set[str] = set()
        """Automations whose deletion is being written: none of their runs starts any more."""
        self._buckets: dict[str, Bucket] = {}
        self._tasks: list[asyncio.Task[Any]] = []
        self.closing = True

    @classmethod
    async def open(cls, host: Host, jobs: Jobs | None, home: Path, lease: Lease | None = None) -> "Automations":
        automations = cls(host, jobs, home, lease or LocalLease())
        await host.add(automations)
        return automations

    def lock_of(self, command: c.Command) -> asyncio.Lock:
        """One lock for all automations, because their names are unique, and one for each run."""
        return self._run_locks.of(command.run) if isinstance(command, ac.CancelRun) else self.lock

    async def recover(self) -> None:
        await self.store.open()
        self.start_receiving()

    @receive(channel="automation", later=True)
    def _automation_changed(self, record: Record) -> None:
        self.store.follow(record)

    @receive(channel="run", later=True)
    def _run_changed(self, record: Record) -> None:
        self.store.follow_run(record)

    async def on_serving(self) -> None:
        await self.poll()
        await self.start()

    async def poll(self) -> None:
        """Apply a change of the file only if two polls in a row see it. While an editor saves, the file can be missing
        or incomplete for a moment, and automations that are not in the file lose their history."""
        before, self._file_seen = self._file_seen, (stamp(self._file), self.lease.held())
        if self._file_seen == self._file_applied:
            return
        if self._file_applied is None or self._file_seen == before:
            self._file_applied = self._file_seen
            await apply_file(self._file, self)

    async def start(self) -> None:
        """Resume the runs of the last host, then start the timer."""
        self.closing = False
        self.begin()
        self._tasks += [self.host.own(self.timer.run(), "schedules")]

    def begin(self) -> None:
        """Check all automations again from the log. Called at the start, after the clock was set back, and when this
        host gets the lease. Times that became due before that count as missed."""
        self._tasks.append(self.host.own(self._look_at_all(), "automations"))

    async def _look_at_all(self) -> None:
        left = {run.automation for run in self.store.runs.values() if run.open}  # including deleted ones
        for number, ident in enumerate([*self.store.automations, *(left - self.store.automations.keys())]):
            self._look_at(ident)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)  # a schedule takes 0.2 ms, and there may be thousands
        await self._offer_ended_jobs()

    async def stop(self) -> None:
        """Stop all tasks; called before the jobs close. Open runs get no end: the next start resumes them."""
        self.closing = True
        tasks = [*self._tasks, *self.files.close(), *self.runs.tasks.values()]
        await end_tasks(*tasks)

    async def close(self) -> None:
        await self.stop()

    # -- claims ------------------------------------------------------------------------------------------------

    async def append(self, events: Appended) -> None:
        """Append events. Raises `NotOwner` if another host has the lease; that host continues the work."""
        if not self.lease.held() and self.host.log.down is None:
            raise NotOwner(events[0][0])
        self.store.note(*events)
        await self.host.log.append_all(*events)

    def open_runs(self, automation: str) -> list[RunSummary]:
        return [*self.store.open_runs(automation), *self._claiming.get(automation, {}).values()]

    def plan_claim(self, state: AutomationState, cause: Cause) -> tuple[str, Appended]:
        """The id of a new run and the events of its claim. Until `claimed`, it counts as running."""
        run = self.store.new_run()
        if state.id in self.deleting:
            cause = replace(cause, refused=DELETED)
        elif cause.kind in ("after", "files") and not cause.refused and not self.may_start(state):
            words = f"More than {limits.AUTOMATION_STARTS} runs in a minute: it goes on with the next one."
            cause = replace(cause, input=None, refused=words)
        before = sum(each.cause != "person" for each in self._claiming.get(state.id, {}).values())
        events = claim(state, self.open_runs(state.id), run, cause, before)
        skipped = any(isinstance(event, ae.RunSkipped) for _, event in events)
        for _, event in events:
            if isinstance(event, ae.RunClaimed) and not skipped:
                self._claiming.setdefault(state.id, {})[run] = begin_run(event, 0)
        return run, events

    def claimed(self, automation: str, run: str) -> None:
        waiting = self._claiming.get(automation, {})
        waiting.pop(run, None)
        if not waiting:
            self._claiming.pop(automation, None)

    async def claim(self, state: AutomationState, cause: Cause) -> str:
        run, events = self.plan_claim(state, cause)
        try:
            note_answer(RunNamed(run))
            await self.append(events)
        finally:
            self.claimed(state.id, run)
        return run

    async def claim_surely(self, state: AutomationState, cause: Cause) -> None:
        """Claim a run for an event that is not repeated and has no caller. Retry until the disk is writable."""
        while True:
            try:
                await self.claim(state, cause)
                return
            except NotOwner:
                return  # the other host detects the change or end
            except LogUnavailable:
                await self.host.log.available()

    def may_start(self, state: AutomationState) -> bool:
        rate = limits.AUTOMATION_STARTS
        bucket = self._buckets.setdefault(state.id, Bucket(rate / 60, rate))
        return bucket.take(self.host.clock.awake()) == 0

    async def run_now(self, state: AutomationState, cause: Cause) -> str:
        """Claim a run for a person. A run that would be skipped is refused."""
        reason = refusal(state, self.open_runs(state.id), cause)
        if reason:
            raise Conflict(f"The automation {state.name!r} does not start: {reason}")
        if not self.may_start(state):
            raise RateLimited(f"{limits.AUTOMATION_STARTS} runs of {state.name!r} in a minute are the most.")
        return await self.claim(state, cause)

    # -- the schedule ------------------------------------------------------------------------------------------

    async def _due(self, times: dict[str, int], now: int) -> None:
        """Claim all due runs in one commit."""
        planned: list[tuple[str, str]] = []
        events: Appended = []
        for state in [self.store.automations[ident] for ident in times if ident in self.store.automations]:
            stop = stop_reason(state, now)
            if stop:
                events.append((f"automation/{state.id}", ae.AutomationPaused(by="host", reason=stop)))
                continue
            if not schedules_of(state.plan):
                continue  # its end was postponed
            causes, missed = due_causes(state, times[state.id], now)
            events += missed
            for cause in causes:
                run, more = self.plan_claim(state, cause)
                planned.append((state.id, run))
                events += more
        faults.reach("automation-due")
        try:
            if events:
                await self.append(events)
                faults.reach("automation-claimed")
        except NotOwner as error:
            self.host.logger.warning("what is due is another host's: %s", error.message)
        except LogUnavailable as error:
            self.host.logger.warning("schedules wait for the log: %s", error.message)
            await self.host.log.available()
        finally:
            for automation, run in planned:
                self.claimed(automation, run)
        for ident in times:
            if ident in self.store.automations:
                self.timer.set(ident, self._next_time(self.store.automations[ident]))

    # -- what follows from a commit ----------------------------------------------------------------------------

    def _changed(self, automation: str, event: e.Event) -> None:
        if self.closing:
            return
        if isinstance(event, ae.RunClaimed | ae.RunEnded | ae.RunSkipped):
            # After the whole commit: a run that the commit skips is not pending.
            asyncio.get_running_loop().call_soon(self.look_at_runs, automation)
        elif not isinstance(event, ae.RunReserved | ae.RunStarted | ae.RunSettled):
            if isinstance(event, ae.AutomationEdited | ae.AutomationDeleted):
                self._buckets.pop(f"hook {automation}", None)
            if isinstance(event, ae.AutomationDeleted):
                self._buckets.pop(automation, None)
            self._look_at(automation)

    def _look_at(self, automation: str) -> None:
        state = self.store.automations.get(automation)
        self.timer.set(automation, self._next_time(state) if state is not None else None)
        self.files.look_at(automation, state)
        self.look_at_runs(automation)

    def _next_time(self, state: AutomationState) -> int | None:
        try:
            return next_time(state, self.host.now())
        except PorticoError as error:  # a zone that a newer system does not know any more
            self.host.logger.error("the automation %s is not due any more: %s", state.name, error.message)
            return None

    def look_at_runs(self, automation: str) -> None:
        if self.closing or automation in self.deleting or not self.lease.held():
            return
        state = self.store.automations.get(automation)
        open_runs = self.store.open_runs(automation)
        if state is None:  # deleted: runs that run or are being started continue
            self.runs.perform([run.id for run in open_runs])
            return
        step = next_runs(state, open_runs, frozenset(self.runs.tasks))
        self.runs.perform([run.id for run in open_runs if run.status == "running"])
        self.runs.perform(step.start)
        for run in step.cancel:
            self.runs.cancel(run, by=f"automation:{automation}")
        if step.skip:
            self.host.own(self._skip(automation, step.skip, "A later one took its place (overlap = 'cancel')."), "skip")

    async def _skip(self, automation: str, runs: Sequence[str], reason: str) -> None:
        await self.append(self.skipping(automation, runs, reason))

    def skipping(self, automation: str, runs: Sequence[str], reason: str) -> Appended:
        return [
            each
            for run in runs
            for each in (
                (f"run/{run}", ae.RunSkipped(reason=reason)),
                (f"automation/{automation}", ae.RunSettled(run=run, outcome="skipped")),
            )
        ]

    # -- after another one -------------------------------------------------------------------------------------

    def follow_run(self, run: RunSummary, outcome: ae.EndOutcome) -> list[tuple[AutomationState, Cause]]:
        """The automations that the end of this run triggers."""
        return [
            (state, _after(state, self.host.now(), f"run:{run.id}", run.depth + 1))
            for state in self.store.automations.values()
            if state.enabled and any(_follows(after, run, outcome) for after in afters_of(state.plan))
        ]

    @receive(je.JobEnded)
    def _job_ended(self, record: Record) -> None:
        assert isinstance(record.event, je.JobEnded)
        job = record.event.job
        if self.closing:
            return
        self.runs.job_ended(job)
        if any(afters_of(each.plan) for each in self.store.automations.values()):
            self.host.own(self._follow_job(job), f"after {job}")

    async def _offer_ended_jobs(self) -> None:
        """Trigger automations for jobs whose end the last host did not process."""
        states = [state for state in self.store.automations.values() if afters_of(state.plan)]
        first = min((state.followed or state.considered for state in states), default=None)
        if self.jobs is None or first is None or not self.lease.held():
            return
        for job in self.jobs.history():
            if job.ended is not None and job.ended >= first:
                await self._follow_job(job.id)

    async def _follow_job(self, ident: str) -> None:
        if self.jobs is None or not self.lease.held():
            return
        job = self.jobs.job(ident)
        above = self.store.runs.get(job.by.removeprefix("run:"))
        depth = above.depth + 1 if above is not None else 0
        for state in list(self.store.automations.values()):
            if not state.enabled or ident in state.refs:
                continue
            ended = job.ended or self.host.now()
            if ended < state.since or not any(
                _follows_job(after, job.name, job.status) for after in afters_of(state.plan)
            ):
                continue
            if any(run.ref == ident for run in self._claiming.get(state.id, {}).values()):
                continue  # its end is being processed
            await self.claim_surely(state, _after(state, ended, f"job:{ident}", depth))

    # -- hooks -------------------------------------------------------------------------------------------------

    async def deliver(self, name: str, headers: dict[str, str], body: bytes) -> Delivered:
        """Accept one delivery. It is durable when this returns and is started after that."""
        state = self.store.find(name)
        if state is None or not hooks_of(state.plan) or state.name != name:
            raise hooks.wrong_signature()
        delivery = hooks.verify(self.secrets.of(state), headers, body, self.host.clock.time())
        per_minute = max(each.per_minute for each in hooks_of(state.plan))
        bucket = self._buckets.setdefault(f"hook {state.id}", Bucket(per_minute / 60, per_minute))
        wait = bucket.take(self.host.clock.awake())
        if wait > 0:
            raise RateLimited(f"The hook {name!r} takes {per_minute} deliveries a minute.", retry_after=wait)
        if not state.enabled:
            raise Conflict(f"The automation {name!r} is paused{': ' + state.reason if state.reason else '.'}")
        payload = hooks.parse(body, headers.get("content-type", ""))
        if hooks.is_ping(headers):
            return Delivered("", "A ping: the hook works, and nothing was started.")
        if not any(hooks.wanted(each, payload) for each in hooks_of(state.plan)):
            return Delivered("", "The filter does not let it pass.")
        text = hooks.fill(state.input, {"payload": payload}, f"the hook {name!r}")
        kept = payload if state.plan.job is not None else None
        command = ac.RunAutomation(automation=state.id, input=text, delivery=delivery, payload=kept)
        named: RunNamed = await self.host.do(command, c.Caller.inside(f"automation:{state.id}").asking(delivery))
        run = self.store.runs.get(named.run)
        return Delivered(named.run, run.reason if run is not None and run.status == "skipped" else "")

    # -- old runs ----------------------------------------------------------------------------------------------

    async def sweep(self) -> None:
        await self.delete_old()

    async def delete_old(self) -> int:
        """Delete the runs that exceed the history of each automation; return the number of deleted runs."""
        count = 0
        for automation, runs in self.store.history():
            ended = [run for run in runs if not run.open]
            state = self.store.automations.get(automation)  # None: deleted while they ran
            kept = state.plan.keep_days * 86_400 if state is not None else SWEEP_SECONDS
            before = self.host.now() - int(kept * 1000)
            spare = len(ended) - state.plan.keep_runs if state is not None else 0
            for index, run in enumerate(ended):
                if index < spare or (run.ended or 0) < before:
                    await self.store.forget(run)
                    count += 1
        return count


def _follows(after: ae.After, run: RunSummary, outcome: ae.EndOutcome) -> bool:
    return after.automation in (run.name, run.automation) and (not after.outcomes or outcome in after.outcomes)


def _follows_job(after: ae.After, name: str, status: str) -> bool:
    return after.job == name and (not after.outcomes or status in after.outcomes)


def _after(state: AutomationState, due: int, by: str, depth: int) -> Cause:
    ref = by.partition(":")[2]
    told, refused = hooks.filled(state, {"after": ref}, "another automation")
    return Cause("after", due, by, told, depth=depth, ref=ref, refused=refused)
