"""Archives or deletes old sessions by rule. The plan is a pure function of the existing sessions, so it can be shown
before it is applied. A session with its children is as old as the youngest of them. Sessions that run, wait or have a
queue are kept."""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from portico.features.people.commands import ApplyRetention, Planned, RetentionDone
from portico.features.people.families import children, descendants
from portico.kernel.commands import Caller
from portico.kernel.errors import NotFound
from portico.kernel.feature import Feature, handle
from portico.kernel.folders import below
from portico.kernel.host import Host
from portico.kernel.state import Summary
from portico.server.settings import RetentionSettings

DAY_MS = 86_400_000
_EVERY_MS = 3_600_000
DRAFT_DAYS = 1
"""An editor may stay open overnight with a new session in which nothing was written yet."""
Action = Literal["archive", "delete"]


class RetentionBounds(Struct, frozen=True):
    """Of several, the first that fits a session counts. 0 days: never."""

    folder: str = ""
    """Sessions in this folder or below; empty: everywhere."""
    owner: str = ""
    """Sessions of this person; empty: of everybody."""
    archive_days: float = 0
    delete_days: float = 0


def plan(
    summaries: Iterable[Summary], rules: Sequence[RetentionBounds], now: int, *, running: bool = False
) -> list[Planned]:
    """Return what the rules would do, oldest first. `running`: include running sessions."""
    listed = list(summaries)
    families = children(listed)
    found: list[Planned] = []
    for root in sorted((each for each in listed if each.parent is None), key=lambda each: each.modified):
        family = [root, *descendants(root.id, families)]
        if not running and any(each.status in ("running", "waiting") or each.queued for each in family):
            continue
        days = (now - max(each.modified for each in family)) / DAY_MS
        action = _action(root, rules, days)
        if action is not None:
            found.append(Planned(root.id, action, root.owner, root.title, root.cwd, int(days)))
    return found


def _action(root: Summary, rules: Sequence[RetentionBounds], days: float) -> Action | None:
    rule = next((each for each in rules if _fits(each, root)), None)
    if rule is None:
        return None
    if rule.delete_days and days >= rule.delete_days:
        return "delete"
    return "archive" if rule.archive_days and days >= rule.archive_days and not root.archived else None


def _fits(rule: RetentionBounds, root: Summary) -> bool:
    inside = not rule.folder or below(rule.folder, root.cwd) is not None
    return inside and rule.owner in ("", root.owner)


class Retention(Feature):
    name = "retention"
    commands = (ApplyRetention,)
    settings = RetentionSettings

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._host = host
        self.rules: Sequence[RetentionBounds] = ()
        self._looked = host.now()

    def configure(self, settings: RetentionSettings) -> None:
        usual = RetentionBounds(archive_days=settings.archive_days, delete_days=settings.delete_days)
        self.rules = [*(msgspec.convert(each, RetentionBounds, from_attributes=True) for each in settings.rules), usual]

    @handle
    async def _apply(self, command: ApplyRetention, caller: Caller) -> RetentionDone:
        return await self.answer(self.planned(), command.dry_run, caller)

    async def answer(
        self, planned: list[Planned], dry_run: bool, caller: Caller, *, running: bool = False
    ) -> RetentionDone:
        return RetentionDone(dry_run, planned if dry_run else await self.carry_out(planned, caller, running=running))

    async def sweep(self) -> None:
        """Apply the rules every hour, but not right after the start: an admin may want to check the rules first."""
        if self._host.now() - self._looked >= _EVERY_MS:
            self._looked = self._host.now()
            await self.carry_out([*self.planned(), *self.unused()], Caller.inside("retention"))

    def unused(self) -> list[Planned]:
        """Plan to delete drafts that got no message for a day: their clients have left without deleting them."""
        drafts = [each for each in self._host.list(drafts=True) if each.draft]
        return plan(drafts, [RetentionBounds(delete_days=DRAFT_DAYS)], self._host.now())

    def planned(self) -> list[Planned]:
        return plan(self._host.list(drafts=True), self.rules, self._host.now())

    def of_person(self, person: str) -> list[Planned]:
        """Plan to delete all sessions of one person, of any age: for people who ask for deletion of their data."""
        everything = [RetentionBounds(owner=person, delete_days=1e-9)]
        return plan(self._host.list(drafts=True), everything, self._host.now() + DAY_MS, running=True)

    async def carry_out(self, wanted: Sequence[Planned], caller: Caller, *, running: bool = False) -> list[Planned]:
        """Apply a plan and return what was done. Sessions that were deleted, or in which a turn has started since, are
        skipped. `running`: running sessions are stopped and deleted, too."""
        done: list[Planned] = []
        for each in wanted:
            session = self._host.find(each.session)
            if session is None or (not running and session.summary.status in ("running", "waiting")):
                continue
            try:
                if each.action == "delete":
                    await self._host.delete(each.session, by=caller.by)
                else:
                    await (await session.load()).archive(True, by=caller.by)
            except NotFound:
                continue
            done.append(each)
            detail = {"session": each.session, "owner": each.owner, "idle_days": each.idle_days}
            await self._host.audit(f"retention.{each.action}", caller.by, **detail)
        return done
