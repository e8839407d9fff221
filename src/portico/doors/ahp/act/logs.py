"""The host's own log lines for those who ask for them, as OTLP/JSON. Never replayed, and never about prompts."""

import logging
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from portico.doors.ahp.view.targets import Target
from portico.doors.ahp.wire import rpc

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}
_OTLP = {logging.DEBUG: 5, logging.INFO: 9, logging.WARNING: 13, logging.ERROR: 17, logging.CRITICAL: 21}


class Lines(logging.Handler):
    """Passes lines on to one connection. Lines about this very door are left out: they would cause each other."""

    def __init__(self, connection: "EditorClient", name: str) -> None:
        wanted = parse_qs(urlsplit(name).query).get("level", ["info"])[0].lower()
        super().__init__(_LEVELS.get(wanted, logging.INFO))
        self.connection = connection
        self.name_on_wire = name

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith("portico.ahp"):
            return
        line = {
            "timeUnixNano": str(int(record.created * 1e9)),
            "severityNumber": _OTLP.get(record.levelno, 9),
            "severityText": record.levelname,
            "body": {"stringValue": record.getMessage()[:2000]},
        }
        scope = {"scope": {"name": record.name}, "logRecords": [line]}
        payload = {"resourceLogs": [{"resource": {"attributes": []}, "scopeLogs": [scope]}]}
        self.connection.push(rpc.notification("otlp/exportLogs", {"channel": self.name_on_wire, "payload": payload}))


class _Quiet(logging.Filter):
    """Keeps lines that are only for log subscribers out of the host's own log output."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self.level = level

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= self.level or not record.name.startswith("portico")


class _Levels:
    """The level of our loggers while clients subscribe to them: the lowest requested level."""

    def __init__(self) -> None:
        self._followers: list[logging.Handler] = []
        self._own = logging.NOTSET
        self._quiet: list[tuple[logging.Handler, _Quiet]] = []

    def add(self, handler: logging.Handler) -> None:
        logger = logging.getLogger("portico")
        if not self._followers:
            self._own = logger.level
            usual = logger.getEffectiveLevel()
            self._quiet = [(each, _Quiet(usual)) for each in (*logger.handlers, *logging.getLogger().handlers)]
            for each, quiet in self._quiet:
                each.addFilter(quiet)
        self._followers.append(handler)
        logger.addHandler(handler)
        self._set()

    def remove(self, handler: logging.Handler) -> None:
        logging.getLogger("portico").removeHandler(handler)
        self._followers.remove(handler)
        self._set()
        if not self._followers:
            for each, quiet in self._quiet:
                each.removeFilter(quiet)

    def _set(self) -> None:
        logger = logging.getLogger("portico")
        logger.setLevel(self._own)
        if self._followers:
            logger.setLevel(min(logger.getEffectiveLevel(), *(each.level for each in self._followers)))


_levels = _Levels()


def follow(connection: "EditorClient", target: Target) -> None:
    connection.view.require("logs")
    handler = Lines(connection, target.ident)
    connection.handlers[target] = handler
    _levels.add(handler)


def forget(connection: "EditorClient", target: Target) -> None:
    handler = connection.handlers.pop(target, None)
    if handler is not None:
        _levels.remove(handler)
