"""One run, from its claim to its end: its command is executed exactly once, even after a crash."""

import asyncio
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from portico.features.automations import events as ae
from portico.features.automations.decide import Appended, stop_reason
from portico.features.automations.plan import folder_of
from portico.features.automations.state import AutomationState, RunSummary
from portico.features.jobs import commands as jc
from portico.features.jobs.commands import JobNamed
from portico.features.usage.lineage import Lineage, Lineages
from portico.features.usage.shapes import UsageRow
from portico.features.usage.usage_index import priced
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel import faults
from portico.kernel.errors import LogUnavailable, NotFound, PorticoError
from portico.kernel.log.log import NotOwner
from portico.kernel.session import Session
from portico.kernel.state import Summary

if TYPE_CHECKING:
    from portico.features.automations.automations import Automations

_OUTCOMES: dict[str, ae.EndOutcome] = {
    "completed": "succeeded",
    "failed": "failed",
    "cancelled": "canceled",
    "interrupted": "interrupted",
}


class Runs:
    def __init__(self, automations: "Automations") -> None:
        self._all = automations
        self._host = automations.host
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._jobs: dict[str, asyncio.Future[None]] = {}
        self._lineages = Lineages(self._host)
        self._canceled: dict[str, str] = {}
        """Runs to stop as soon as they have started, and who requested it."""

    def perform(self, runs: Iterable[str]) -> None:
        for run in runs:
            if run not in self.tasks:
                task = self._host.own(self._perform(self._all.store.runs[run]), f"run {run}")
                self.tasks[run] = task
                task.add_done_callback(partial(self._forget, run))

    def _forget(self, run: str, _: "asyncio.Task[None]") -> None:
        self.tasks.pop(run, None)

    async def _perform(self, run: RunSummary) -> None:
        while not self._all.closing:  # a host that stops refuses turns with `LogUnavailable`: do not retry that
            try:
                if run.status == "pending":
                    await self._start(run)
                if run.open and (by := self._canceled.pop(run.id, None)) is not None:
                    await self.stop(run, by=by)
                if run.open:
                    await self._finish(run, *await self._end(run))
                return
            except NotOwner:
                return  # the host that has the lease now continues it
            except LogUnavailable:
                await self._host.log.available()

    async def _start(self, run: RunSummary) -> None:
        records = await self._host.log.read(f"run/{run.id}", 0, 1)
        claimed = records[0].event
        assert isinstance(claimed, ae.RunClaimed)
        faults.reach("run-before-start")
        try:
            started = await self._do(claimed)
        except (LogUnavailable, NotOwner):
            raise
        except PorticoError as error:
            await self._finish(run, "failed", error.message)
            return
        faults.reach("run-before-started")
        await self._all.append([(f"run/{run.id}", started)])
        faults.reach("run-started")

    async def _do(self, claimed: ae.RunClaimed) -> ae.RunStarted:
        """Execute the command of a run. If it is repeated after a crash, the host returns what it started before."""
        caller = c.Caller("", f"automation {claimed.name}", frozenset(claimed.scopes), label=f"run:{claimed.run}")
        if claimed.job is not None:
            cwd = folder_of(claimed.job.cwd) or str(self._host.default_folder())
            job = claimed.job
            start = jc.StartJob(
                job=job.job,
                cwd=cwd,
                input=job.input,
                place=job.place,
                label=job.label,
                inputs=job.inputs,
                trigger=_trigger(claimed),
            )
            named: JobNamed = await self._host.do(start, caller.asking("start"))
            return ae.RunStarted(job=named.job)
        prompt = claimed.prompt
        assert prompt is not None
        session: Summary = await self._host.do(_session(prompt, claimed), caller.asking("start"))
        faults.reach("run-session")
        said = c.SendMessage(session=session.id, text=prompt.text, origin="automation")
        begun = await self._host.do(said, caller.asking("send"))
        return ae.RunStarted(session=session.id, turn=begun.turn)

    # -- its end -----------------------------------------------------------------------------------------------

    async def _end(self, run: RunSummary) -> tuple[ae.EndOutcome, str]:
        try:
            return await (self._job_end(run.job) if run.job else self._turn_end(run))
        except NotFound as error:
            return "canceled", error.message

    async def _turn_end(self, run: RunSummary) -> tuple[ae.EndOutcome, str]:
        turn = await (await self._host.get(run.session)).wait(run.turn)
        return _OUTCOMES[turn.outcome or "interrupted"], turn.error.message if turn.error is not None else ""

    async def _job_end(self, job: str) -> tuple[ae.EndOutcome, str]:
        jobs = self._all.jobs
        if jobs is None:
            raise NotFound("job", job)
        if not jobs.job(job).done:
            await self._jobs.setdefault(job, asyncio.get_running_loop().create_future())
        summary = jobs.job(job)
        outcome: ae.EndOutcome = summary.status if summary.status in ("succeeded", "canceled") else "failed"
        return outcome, summary.error

    def job_ended(self, job: str) -> None:
        waiting = self._jobs.pop(job, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def _finish(self, run: RunSummary, outcome: ae.EndOutcome, error: str = "") -> None:
        """Record the end and the claims of following automations in one commit."""
        faults.reach("run-before-end")
        ended = await self._ended(run, outcome, error)
        if not run.open:
            return  # another host had the lease and wrote its end
        own = f"automation/{run.automation}"
        settled = ae.RunSettled(run=run.id, outcome=outcome)
        events: Appended = [(f"run/{run.id}", ended)]
        state = self._all.store.automations.get(run.automation)
        if state is not None:
            events += [(own, settled), *self._stop(state, outcome)]
        planned = []
        for follower, cause in self._all.follow_run(run, outcome):
            next_run, more = self._all.plan_claim(follower, cause)
            planned.append((follower.id, next_run))
            events += more
        try:
            await self._all.append(events)
        finally:
            for automation, next_run in planned:
                self._all.claimed(automation, next_run)
        faults.reach("run-ended")

    def _stop(self, state: AutomationState, outcome: ae.EndOutcome) -> Appended:
        if not state.enabled or outcome != "failed":
            return []
        reason = stop_reason(state, 0, 1)
        paused = ae.AutomationPaused(by="host", reason=reason, failed=True)
        return [(f"automation/{state.id}", paused)] if reason else []

    async def _ended(self, run: RunSummary, outcome: ae.EndOutcome, error: str) -> ae.RunEnded:
        rows = [row for session in await self._sessions(run) for row in await self._used(session)]
        known = bool(rows) and not any(row.unpriced for row in rows)
        return ae.RunEnded(
            outcome=outcome,
            error=error,
            input=sum(row.input for row in rows),
            output=sum(row.output for row in rows),
            cost=sum(row.cost + row.estimated for row in rows) if known else None,
            estimated=known and any(row.estimated for row in rows),
        )

    async def _sessions(self, run: RunSummary) -> list[Session]:
        """Those of the run, with all sessions below them."""
        began = await self._lineages.sessions_of(Lineage(run.job, run.id), whole_run=True)
        roots, catalogue = {each.id for each in began}, self._host.catalogue
        found = [each.id for each in catalogue.summaries() if catalogue.root_of(each).id in roots]
        return [session for ident in found if (session := catalogue.get(ident)) is not None]

    async def _used(self, session: Session) -> list[UsageRow]:
        await session.load()
        return await priced(session.state, 0)

    # -- before its end ----------------------------------------------------------------------------------------

    def cancel(self, run: str, *, by: str) -> "asyncio.Task[None]":
        return self._host.own(self.stop(self._all.store.runs[run], by=by), f"cancel {run}")

    async def stop(self, run: RunSummary, *, by: str) -> None:
        """Stop what the run has started, which ends the run. A run that has not started is skipped."""
        caller = c.Caller.inside(by)
        if run.status == "pending" and run.id in self.tasks:
            self._canceled[run.id] = by
        elif run.status == "pending":
            await self._all.append(self._all.skipping(run.automation, [run.id], f"Canceled by {by}."))
        elif run.job:
            await self._host.do(jc.StopJob(job=run.job), caller)
        elif run.session:
            await self._host.do(c.CancelTurn(session=run.session, turn=run.turn), caller)


def _trigger(claimed: ae.RunClaimed) -> e.Json:
    """What a workflow knows of its cause: the time it is for, and the payload of a hook."""
    due = datetime.fromtimestamp(claimed.due / 1000, UTC).isoformat()
    return {"scheduled_at": due} | ({"payload": claimed.payload} if claimed.payload is not None else {})


def _session(prompt: ae.PromptAction, claimed: ae.RunClaimed) -> c.StartSession:
    return c.StartSession(
        agent=prompt.agent or None,
        model=prompt.model or None,
        cwd=folder_of(prompt.cwd) or None,
        title=prompt.title or claimed.name,
        config=prompt.config,
        model_config=prompt.model_config,
        worktree=c.Isolation(base=prompt.base) if prompt.worktree else False,
        place=prompt.place,
        label=prompt.label,
    )
