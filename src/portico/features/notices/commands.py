"""Commands of notices."""

from msgspec import Struct

from portico.kernel.commands import Command, Done, Http, register


class NoticeNamed(Struct):
    notice: str


class PushNamed(Struct):
    push: str


class RedeliverNotice(Command, frozen=True, tag="notice.redeliver"):
    """Send a notice again, now: one that was given up, one that waits for its next attempt, or one that arrived."""

    scope = "admin"
    lock = "feature"
    gives = NoticeNamed
    http = Http("POST", "/v1/notices/{notice}/redeliver", 202)
    errors = ("not_found", "conflict")

    notice: str
    """Its id in `GET /v1/notices`."""


class TestNotice(Command, frozen=True, tag="notice.test"):
    """Send a test notice to a webhook or a program of the settings."""

    scope = "admin"
    lock = "feature"
    gives = NoticeNamed
    http = Http("POST", "/v1/notices/test", 202)
    errors = ("not_found",)

    target: str
    """Its name in the settings."""


class SubscribePush(Command, frozen=True, tag="push.subscribe"):
    """Subscribe a browser to web push; the fields are those of its `PushSubscription`."""

    scope = "read"
    lock = "feature"
    gives = PushNamed
    http = Http("POST", "/v1/push", 201)
    secret = True
    errors = ("conflict",)

    endpoint: str
    p256dh: str
    auth: str
    device: str = ""
    """What lists call it."""
    kinds: list[str] = []
    """Of what it is told; all, when empty."""
    sessions: str = "all"
    """`all` that the caller may see, `mine`, or the id of one."""
    quiet: str = ""
    """Hours without notices: `22:00-07:00`."""
    zone: str = ""
    """Of these hours; the host's, when empty."""


class UnsubscribePush(Command, frozen=True, tag="push.unsubscribe"):
    """Unsubscribe a browser from web push."""

    scope = "read"
    lock = "feature"
    gives = Done
    http = Http("DELETE", "/v1/push/{push}", 204)
    errors = ("not_found",)

    push: str
    """Its id in `GET /v1/push`."""


register(RedeliverNotice, TestNotice, SubscribePush, UnsubscribePush)
