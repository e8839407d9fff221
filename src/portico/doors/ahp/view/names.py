"""Conversion between our ids and the URIs on the wire.

A session that a client created keeps the client's name. Others are `<agent>:/<id>`: clients of version 1 read the
provider from the scheme. A session with a parent is a chat of the session at the root of its tree; in version 1,
which has no chats, it is a separate session.
"""

import re
from typing import Protocol
from urllib.parse import quote, unquote, urlsplit

from portico.doors.ahp.wire import uri
from portico.features.people.view import View
from portico.features.terminals.state import TerminalState
from portico.kernel.errors import BadRequest, NotFound
from portico.kernel.events import Origin
from portico.kernel.session import Session
from portico.kernel.state import SessionState, Summary

CHAT = "ahp-chat:/"
CHANGESET = "ahp-changeset:/"
_CHANGESETS = "/changeset/"
TERMINAL = "ahp-terminal:/"
WATCH = "ahp-resource-watch:/"
BLOB = "portico-blob:/"
GIT = "git-blob:/"
EDIT = "portico-edit:/"
DIFF = "portico-diff:/"
LOGS = "ahp-otlp://logs"


class Finder(Protocol):
    """The host, or a caller's view of it."""

    def find(self, ident: str) -> Session | None: ...


_NO_SCHEME = re.compile(r"[^a-z0-9+.-]+")
_NAME_MAX = 2048
"""Maximum length of a URI that a client chooses, similar to the limit of browsers."""


def session_uri(of: Summary | SessionState, *, seed: bool = False) -> str:
    """A chat that became a session keeps its name; in version 1, where both are one, that is the session's."""
    if of.uri is not None and (seed or not of.promoted):
        return (uri.seed_subagent(of.uri) or of.uri) if of.parent is not None else of.uri
    if of.parent is not None:
        return CHAT + of.id
    return f"{_NO_SCHEME.sub('-', of.agent.lower()) or 'agent'}:/{of.id}"


def chat_uri(of: Summary | SessionState) -> str:
    return of.uri or CHAT + of.id if is_chat(of) else uri.default_chat(session_uri(of))


def is_chat(of: Summary | SessionState) -> bool:
    """Whether its name is that of a chat: it was made as one."""
    return of.parent is not None or of.promoted


def child_uri(root: Summary, ident: str, origin: Origin | None) -> str:
    """The URI of a child session that no client has named."""
    session = session_uri(root)
    spawned = origin is not None and origin.kind == "agent" and origin.call
    return uri.subagent(session, spawned) if spawned else uri.chat(session, ident)


def find_session(host: Finder, name: str) -> Session | None:
    """Find a session by the client's name, by a name that clients derive, or by ours if no client named it."""
    found = host.find(name) or host.find(uri.subagent_of_seed(name) or "")
    if found is not None and found.id != name and name in (found.summary.uri, session_uri(found.summary)):
        return found
    ident = name.rpartition(":/")[2]
    found = host.find(ident) if ident.startswith("session-") else None
    if found is None or (found.summary.parent is not None and name == CHAT + ident):
        return found
    return found if session_uri(found.summary) == name else None


def find_chat(host: Finder, name: str) -> Session | None:
    owner = uri.default_chat_session(name)
    if owner is not None:
        return find_session(host, owner)
    found = host.find(name)
    if found is not None and found.summary.uri == name and is_chat(found.summary):
        return found
    found = host.find(name.removeprefix(CHAT)) if name.startswith(CHAT) else None
    return found if found is not None and is_chat(found.summary) else None


def changeset_uri(of: Summary | SessionState, view: str) -> str:
    """The URI of a changeset. Editors build it themselves and ignore the advertised one."""
    return f"{chat_uri(of) if of.parent is not None else session_uri(of)}{_CHANGESETS}{view}"


def is_changeset(name: str) -> bool:
    return name.startswith(CHANGESET) or _CHANGESETS in name


def find_changeset(host: View, name: str) -> str | None:
    """`SESSION ID/VIEW` for the name of a changeset. An older Portico advertised it with a separate scheme."""
    if name.startswith(CHANGESET):
        ident = name.removeprefix(CHANGESET)
        return ident if host.whole or host.has(ident.partition("/")[0]) else None
    owner, found, view = name.rpartition(_CHANGESETS)
    session = (find_chat(host, owner) or find_session(host, owner)) if found else None
    return f"{session.id}/{view}" if session is not None else None


def terminal_uri(of: TerminalState) -> str:
    return of.uri or TERMINAL + of.id


def find_terminal(host: View, name: str) -> TerminalState | None:
    """Find a terminal by the client's name, which may look like ours, or by ours if no client named it."""
    found = host.find_terminal(name)
    if found is None and name.startswith(TERMINAL):
        found = host.find_terminal(name.removeprefix(TERMINAL))
    return found if found is not None and terminal_uri(found) == name else None


def past_terminal(host: View, name: str) -> str | None:
    """The id of a closed terminal. Terminals that clients had named are then found by our names."""
    ident = name.removeprefix(TERMINAL) if name.startswith(TERMINAL) else ""
    return ident if ident and host.had_terminal(ident) else None


def chosen(name: object, field: str) -> str:
    """Validate a URI that a client chose."""
    if not isinstance(name, str) or not 0 < len(name) <= _NAME_MAX or ":" not in name or name != name.strip():
        raise BadRequest(f"{field!r} must be a URI of at most {_NAME_MAX} characters.", field=field)
    if uri.is_root(name):
        raise BadRequest(f"{field!r} is the root channel.", field=field)
    return name


def file_uri(path: str) -> str:
    return "file://" + quote(path)


def version_uri(scheme: str, key: str, path: str) -> str:
    """The URI of a version of a file. It ends with the path of the file: editors derive name and language from it, and
    recognize both sides of a diff as one file. The version is the authority, in hex because editors convert an
    authority to lower case."""
    return f"{scheme}/{key.encode().hex()}{quote(path)}"


def version_key(scheme: str, name: str) -> list[str]:
    """The key of a `version_uri`. An older Portico wrote it at the start of the path."""
    rest = name.removeprefix(scheme)
    if rest.startswith("/"):
        try:
            rest = bytes.fromhex(rest[1:].partition("/")[0]).decode()
        except ValueError:
            raise NotFound("resource", name) from None
    return rest.split("/")


def diff_uri(at: object, side: str, path: str) -> str:
    """The URI of one side of an edit, or of the file if the call is not known."""
    return version_uri(DIFF, f"{at}/{side}", path) if isinstance(at, str) else file_uri(path)


def path_of(name: str) -> str:
    """The path of a `file:` URI."""
    parts = urlsplit(name)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise NotFound("resource", name, "Only 'file:///...' can be read here.")
    return unquote(parts.path)


def folder_of(name: str) -> str:
    """A working directory: a `file:` URI, or a plain path as some clients send it."""
    return name if name.startswith("/") else path_of(name)
