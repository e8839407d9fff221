"""Error messages for PostgreSQL and its connections, with the next step. They never contain a password."""

from typing import NoReturn
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg

from portico.kernel.errors import BadRequest, LogUnavailable

GOES_ON = "the host goes on by itself"
FENCED, READ_ONLY = "PT001", "25006"
_LOST = ("08", "57P")
"""Classes of SQLSTATE for a connection that is lost or about to be."""


class Fenced(LogUnavailable):
    """Another host has taken over the channels of this one: its writes are refused."""


def check_url(url: str) -> str:
    """Return the address without secrets, for messages. BadRequest if it is not the address of a database."""
    try:
        parts = urlsplit(url)
        port = parts.port
        whole = "@" not in (parts.username or "") + (parts.password or "")
    except ValueError:
        whole = False
    if not whole:  # the invalid part may be a piece of the password
        raise BadRequest(
            "log.url is no address that can be read. It looks like postgresql://USER:PASSWORD@HOST:5432/DATABASE; in a "
            "password / is written %2F, @ %40 and : %3A.",
            field="log.url",
        )
    if parts.scheme not in ("postgresql", "postgres"):
        raise BadRequest(
            "log.url has to look like postgresql://USER:PASSWORD@HOST:5432/DATABASE; without it the log is a SQLite "
            "file in the home folder.",
            field="log.url",
        )
    host = parts.hostname or parse_qs(parts.query).get("host", [""])[0] or "the default socket"
    return f"{unquote(host)}{f':{port}' if port else ''}/{parts.path.strip('/')}"


def is_lost(error: BaseException) -> bool:
    """Whether the connection is lost, so that the outcome is unknown: any error but a server error with a SQLSTATE."""
    state = getattr(error, "sqlstate", None)
    return not isinstance(error, asyncpg.PostgresError) or state is None or str(state).startswith(_LOST)


_STATES: dict[str, str] = {
    "28": "refuses the login ({text}). Check user and password in log.url; {then}",
    "3D000": "is not there ({text}). Make it (createdb), or correct log.url; {then}",
    "42501": "gives no rights ({text}). Grant CREATE on the database, or (for tables that are there) "
    "ALL on all tables and sequences in the schema portico; {then}",
    "53100": "has a full disk. Free some space; {then}",
    "53300": "has no free connection. Raise max_connections, or run fewer hosts; {then}",
    "53": "has too little of something: {text}. {then}",
    READ_ONLY: "is read-only (a replica?). Point log.url at the primary; {then}",
    "55P03": "is held up: another host or program keeps the log locked. {then}",
    "57014": "is too slow: the statement was ended after its time. {then}",
    "42P07": "has a schema portico that is no log, or a part of one ({text}). Correct log.url, or restore a whole "
    "backup; {then}",
    "42P01": "lacks a table of the log ({text}). Restore a backup of the whole schema portico; {then}",
}


def translate(error: BaseException, address: str, then: str = GOES_ON) -> LogUnavailable:
    """Translate a database error to its message, the next step for the user, and what happens `then`."""
    if isinstance(error, LogUnavailable):
        return error
    state = str(getattr(error, "sqlstate", None) or "")
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    if state == FENCED:
        return Fenced("Another host has taken over the sessions of this one, which did not answer for a while.")
    for length in (5, 2):
        words = _STATES.get(state[:length]) if state else None
        if words:
            said = words.format(text=text.rstrip("."), then=then).rstrip(". ")
            return LogUnavailable(f"The database {address!r} {said}.")
    if is_lost(error):
        return LogUnavailable(
            f"The database {address!r} cannot be reached ({text.rstrip('.')}). Start it, or correct log.url; {then}."
        )
    return LogUnavailable(f"The database {address!r} refuses: {text}.")


def refuse(error: BaseException, address: str) -> NoReturn:
    raise translate(error, address) from error


def outcome_unknown() -> LogUnavailable:
    return LogUnavailable(
        "The database went away in the middle of this commit: whether it was written will show when it is back. Ask "
        "again with the same id."
    )
