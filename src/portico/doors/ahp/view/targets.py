"""Targets that a connection can subscribe to, and how URIs are resolved to them."""

from typing import Literal, NamedTuple

from portico.doors.ahp.view import names
from portico.doors.ahp.view.automations import CATALOGUE, RUN
from portico.doors.ahp.wire import uri
from portico.features.people.view import View
from portico.kernel.errors import NotFound
from portico.kernel.host import Host

Kind = Literal[
    "root", "seed", "session", "chat", "annotations", "terminal", "changeset", "watch", "logs", "automations", "run"
]


class Target(NamedTuple):
    """`seed` is a session of version 1, `session` and `chat` are those of the channel dialect. `ident` is ours."""

    kind: Kind
    ident: str = ""


ROOT = Target("root")
AUTOMATIONS = "ahp-automations:"
"""Every URI of this scheme is the catalogue: some clients append more to it."""


def resolve(view: View, name: str, seed: bool) -> Target:
    """Resolve a URI; raises NotFound if the target does not exist."""
    if uri.is_root(name):
        return ROOT
    terminal = names.find_terminal(view, name)
    if terminal is not None:
        return Target("terminal", terminal.id)
    past = names.past_terminal(view, name)
    if past is not None:
        return Target("terminal", past)
    if seed:
        found = names.find_session(view, name)
        if found is None:
            raise NotFound("session", name)
        return Target("seed", found.id)
    return _modern(view, name)


def _modern(view: View, name: str) -> Target:
    if name.startswith(names.WATCH):
        return Target("watch", name)
    if name.partition("?")[0] == names.LOGS:
        return Target("logs", name)
    if name.startswith((AUTOMATIONS, RUN)):
        view.require("automations")
    if name.startswith(AUTOMATIONS):
        return Target("automations")
    if name.startswith(RUN):
        return Target("run", name.removeprefix(RUN))
    changeset = names.find_changeset(view, name)
    if changeset is not None:
        return Target("changeset", changeset)
    chat = names.find_chat(view, name)
    if chat is not None:
        return Target("chat", chat.id)
    session = names.find_session(view, name)
    if session is not None and session.summary.parent is None:
        return Target("session", session.id)
    owner = uri.annotations_session(name)
    session = names.find_session(view, owner) if owner is not None else None
    if session is not None:
        return Target("annotations", session.id)
    raise NotFound("session", name)


def uri_of(host: Host, target: Target, seed: bool) -> str:
    """The name that envelopes of this target carry."""
    match target.kind:
        case "root":
            return uri.SEED_ROOT if seed else uri.ROOT
        case "terminal":
            terminal = host.terminals.find(target.ident)
            return names.terminal_uri(terminal) if terminal is not None else names.TERMINAL + target.ident
        case "changeset":
            return _changeset_uri(host, target.ident)
        case "watch" | "logs":
            return target.ident
        case "automations":
            return CATALOGUE
        case "run":
            return RUN + target.ident
    session = host.find(target.ident)
    if session is None:
        raise NotFound("session", target.ident)
    if target.kind == "chat":
        return names.chat_uri(session.summary)
    name = names.session_uri(session.summary, seed=seed)
    return uri.annotations(name) if target.kind == "annotations" else name


def _changeset_uri(host: Host, ident: str) -> str:
    owner, _, view = ident.partition("/")
    session = host.find(owner)
    return names.changeset_uri(session.summary, view) if session is not None else names.CHANGESET + ident
