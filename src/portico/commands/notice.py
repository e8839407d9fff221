"""Commands about what people are told of."""

from portico.commands.answers import NoticeNamed
from portico.commands.command import Command, Http


class RedeliverNotice(Command, frozen=True, tag="notice.redeliver"):
    """Send a notice again, now: one that was given up, one that waits for its next attempt, or one that arrived."""

    scope = "admin"
    about = "host"
    gives = NoticeNamed
    http = Http("POST", "/v1/notices/{notice}/redeliver", 202)
    errors = ("not_found", "conflict")

    notice: str
    """Its id in `GET /v1/notices`."""


class TestNotice(Command, frozen=True, tag="notice.test"):
    """Send a test notice to a webhook or a program of the settings."""

    scope = "admin"
    about = "host"
    gives = NoticeNamed
    http = Http("POST", "/v1/notices/test", 202)
    errors = ("not_found",)

    target: str
    """Its name in the settings."""


NoticeCommand = RedeliverNotice | TestNotice
