"""A notice, its delivery to one target, and the rules: who is notified, when, and how often it is retried. Pure
functions."""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from msgspec import Struct

from portico.kernel.events import Channel
from portico.server.settings import NoticeKind, NoticeTarget

WAITS = (5, 30, 120, 600, 1800, 3600, 7200, 14_400, 21_600, 37_200)
"""Seconds after each failed attempt: soon for a restart of the receiver, and a day in all for one that is down."""

LOOKING_SECONDS = 60
"""Delay for a question in a session that a client shows: the person may be away from the open page."""


class NotSent(Exception):
    """This attempt failed; `str` is the reason."""


class Notice(Struct, frozen=True, omit_defaults=True):
    kind: NoticeKind | Literal["test"]
    text: str
    time: int
    """When it happened: milliseconds since the epoch."""
    session: str = ""
    title: str = ""
    agent: str = ""
    folder: str = ""
    job: str = ""
    automation: str = ""
    """Its name."""
    run: str = ""
    ask: str = ""
    """The approval or question that waits."""
    link: str = ""

    @property
    def channel(self) -> Channel:
        """The channel that controls access: a caller who may read it may see the notice."""
        if self.session or self.job:
            return f"session/{self.session}" if self.session else f"job/{self.job}"
        return f"automation/{self.automation}"

    @property
    def about(self) -> str:
        """Notices about the same thing are delivered in their order."""
        return self.session or self.job or self.automation


class Attempt(Struct, frozen=True, omit_defaults=True):
    time: int
    error: str = ""
    """Empty: it arrived."""


State = Literal["waiting", "delivered", "failed", "unneeded"]


class Delivery(Struct):
    """One notice for one target."""

    id: str
    target: str
    notice: Notice
    state: State = "waiting"
    """`failed`: given up after a day. `unneeded`: it was answered before it could be sent."""
    next: int = 0
    """The next attempt: milliseconds since the epoch."""
    tries: int = 0
    """Since it was made, or sent again by hand."""
    attempts: list[Attempt] = []
    by_hand: bool = False
    """Sent again by a person: ignores quiet hours."""

    @property
    def waits(self) -> bool:
        return self.state == "waiting"


def wants(target: NoticeTarget, notice: Notice) -> bool:
    if target.kinds and notice.kind not in target.kinds:
        return False
    if target.sessions not in ("all", "mine", notice.session):
        return False
    folders = [Path(each).expanduser() for each in target.folders]
    return not folders or any(notice.folder and Path(notice.folder).is_relative_to(each) for each in folders)


def tried(delivery: Delivery, now: int, error: str = "") -> None:
    """Record the result of one attempt."""
    delivery.attempts = [*delivery.attempts, Attempt(now, error)]
    if not error:
        delivery.state = "delivered"
    elif delivery.tries >= len(WAITS):
        delivery.state = "failed"
    else:
        delivery.next = now + WAITS[delivery.tries] * 1000
    delivery.tries += 1


def due(delivery: Delivery, now: int) -> int:
    """When it is sent next: now, if the stored time is later than the longest wait (the clock was set back)."""
    longest = WAITS[delivery.tries - 1] if delivery.tries else LOOKING_SECONDS
    return delivery.next if delivery.next - now <= longest * 1000 else now


_QUIET = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


def is_quiet_form(text: str) -> bool:
    found = _QUIET.fullmatch(text)
    return not text or (found is not None and found.group(1, 2) != found.group(3, 4))


def after_quiet(target: NoticeTarget, now: int) -> int:
    """This moment, or the end of the quiet hours that it lies in; milliseconds since the epoch."""
    found = _QUIET.fullmatch(target.quiet)
    if found is None:
        return now
    from zoneinfo import ZoneInfo  # late: few have quiet hours

    here = datetime.fromtimestamp(now / 1000, ZoneInfo(target.zone) if target.zone else None)
    begin, end = (here.replace(hour=int(h), minute=int(m), second=0, microsecond=0)
                  for h, m in (found.group(1, 2), found.group(3, 4)))  # fmt: skip
    if begin < end:
        return int(end.timestamp() * 1000) if begin <= here < end else now
    if end <= here < begin:
        return now
    return int((end if here < end else end + timedelta(days=1)).timestamp() * 1000)
