"""The origin of a session: the job and automation that started it, and the person or token that pays for it.

A session records who started it (`task:ID`, `run:ID`). The rest is in the first events of those channels. The result is
stored with the session, because the runs of an automation are deleted before the sessions that they started.
"""

import msgspec
from msgspec import Struct

from portico.features.automations.events import RunClaimed
from portico.features.jobs import events as je
from portico.kernel import events as e
from portico.kernel.cache import Cache
from portico.kernel.events import Channel, Record
from portico.kernel.host import Host
from portico.kernel.people import HOST_OWNER
from portico.kernel.session import Session

_KEY = "lineage"
_REMEMBERED = 10_000
"""Cache size: origins of sessions, a few hundred bytes each."""
_WORKS = 10_000
"""Maximum number of events of a job that are read to find its tasks."""
_BEGUN = 200
"""Cache size: first events of jobs, tasks and runs. Sessions start right after them. A job's contains its entry."""
ORIGINS = (je.TaskStarted, je.JobStarted, RunClaimed)


class Lineage(Struct, frozen=True, omit_defaults=True):
    job: str = ""
    run: str = ""
    automation: str = ""
    """Its name."""
    spender: str = ""
    """A person's name, or `token:NAME` if the token has no owner; empty: the host itself."""
    job_budget: e.Budget = e.Budget()
    """The budget in the entry."""
    run_budget: e.Budget = e.Budget()
    """The budget in the plan of the automation."""


class Lineages:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._known = Cache[str, Lineage](_REMEMBERED)
        self._begun = Cache[Channel, e.Event](_BEGUN)

    def note_begun(self, record: Record) -> None:
        """Cache a committed event of `ORIGINS`, so that it need not be read."""
        if record.pos == 1:
            self._begun[record.channel] = record.event

    async def of(self, session: Session) -> Lineage:
        """Return the origin of the root session: the usage of a sub-agent counts for the conversation."""
        root = self._host.catalogue.root(session)
        found = self._known.get(root.id)
        if found is None:
            found = self._known[root.id] = await self._find(root)
        return found

    async def _find(self, root: Session) -> Lineage:
        by = root.summary.by
        if not by.startswith(("task:", "run:")):
            return Lineage(spender=self._spender(root, by))
        new = by.replace(":", "/", 1) in self._begun  # and nothing is stored with its sessions yet
        stored = None if new else await self._host.log.get_kv(root.channel, _KEY)
        if stored is not None:
            return msgspec.json.decode(stored, type=Lineage)
        found = await self._trace(root, by)
        self._host.log.put_kv(root.channel, _KEY, msgspec.json.encode(found), lazy=True)
        return found

    async def _trace(self, root: Session, by: str) -> Lineage:
        job, budget = "", e.Budget()
        if by.startswith("task:"):
            task = await self._first(f"task/{by.removeprefix('task:')}")
            job = (task.job or "") if isinstance(task, je.TaskStarted) else ""
            by = task.by if isinstance(task, je.TaskStarted) else ""
        if job:
            started = await self._first(f"job/{job}")
            assert isinstance(started, je.JobStarted)
            by, budget = started.by, _budget_in(started)
        if not by.startswith("run:"):
            return Lineage(job=job, spender=self._spender(root, by), job_budget=budget)
        run = by.removeprefix("run:")
        claimed = await self._first(f"run/{run}")
        if not isinstance(claimed, RunClaimed):
            return Lineage(job=job, run=run, spender=self._spender(root, ""), job_budget=budget)
        return Lineage(job, run, claimed.name, self._spender(root, claimed.author), budget, claimed.budget)

    def _spender(self, root: Session, by: str) -> str:
        owner = self._host.ownership.owner_of(root)
        if owner not in ("", HOST_OWNER):
            return owner
        name = by.partition("#")[0].removeprefix("person:")
        return name if by.startswith(("token:", "person:")) else ""

    async def _first(self, channel: Channel) -> e.Event | None:
        if (known := self._begun.get(channel)) is not None:
            return known
        records = await self._host.log.read(channel, 0, 1)
        return records[0].event if records else None

    async def sessions_of(self, lineage: Lineage, *, whole_run: bool) -> list[Session]:
        """Return the sessions of the job, or of the whole run, without sub-agents."""
        began: set[str] = {f"run:{lineage.run}"} if whole_run else set()
        if lineage.job:
            records = await self._host.log.read(f"job/{lineage.job}", 0, _WORKS)
            began |= {f"task:{each.event.task}" for each in records if isinstance(each.event, je.WorkStarted)}
        found = [each.id for each in self._host.summaries() if each.by in began]
        return [session for ident in found if (session := self._host.find(ident)) is not None]


def _budget_in(started: je.JobStarted) -> e.Budget:
    return msgspec.convert(started.entry.get("jobs", {}).get(started.name, {}).get("budget", {}), e.Budget)
