"""Who may use a terminal, and where one may begin.

A terminal belongs to whom it is claimed for. An editor that is connected and holds one is the only one to type into
it, to resize, rename, clear or hand it on. While it is away another editor may; a token can watch it and close it. A
terminal that a session or a token holds is everybody's who has the scope. What an agent runs in a terminal can be
watched and closed, by anybody with the scope.
"""

from collections.abc import Container
from typing import TYPE_CHECKING

from portico import limits
from portico.commands import Caller
from portico.commands import OpenTerminal as OpenCommand
from portico.errors import BadRequest, Conflict, Forbidden, NotFound, PorticoError
from portico.host.terminals import OpenTerminal
from portico.workspace.terminal import INPUT_MAX

if TYPE_CHECKING:
    from portico.host.host import Host


def folder(host: "Host", command: OpenCommand, caller: Caller) -> str:
    """Where the shell begins: in the folder of the session it is opened from, a workspace, or any session's folder."""
    first: list[str] = []
    if command.session is not None:
        found = host.find(command.session)
        if found is None:
            raise NotFound("session", command.session)
        first = [found.summary.cwd] if found.summary.cwd not in ("", "/") else []
    try:
        jail = host.jail(*first, caller=caller)
        where = jail.resolve(command.cwd if command.cwd is not None else str(jail.root))
    except PorticoError as error:
        error.field = "cwd"
        raise
    if not where.is_dir():
        raise BadRequest(f"There is no folder {str(where)!r}.", field="cwd")
    return str(where)


def checked_title(title: str) -> str:
    if len(title) > limits.TITLE_CHARS:
        raise BadRequest(f"A title has at most {limits.TITLE_CHARS} characters.", field="title")
    return title


def holder(terminal: OpenTerminal, client: str, connected: Container[str]) -> str | None:
    """Who keeps this client (none: a token) from using the terminal."""
    if terminal.command:
        return "An agent"
    claim = terminal.claim
    owner = str(claim.get("clientId")) if claim.get("kind") == "client" else ""
    editor = owner not in ("", client) and not owner.startswith("token:")
    if not editor or (client and owner not in connected):
        return None
    return "Another client" if client else "An editor"


def check_free(terminal: OpenTerminal, caller: Caller, connected: Container[str]) -> None:
    who = holder(terminal, caller.client, connected)
    if who is not None and terminal.command and caller.client:
        raise Forbidden("An agent runs a command in this terminal: it can be watched and closed.")
    if who is not None:
        raise Forbidden(f"{who} holds the terminal {terminal.id!r}: watch it here, or open another one.")


def check_close(terminal: OpenTerminal, caller: Caller, connected: Container[str]) -> None:
    if caller.client and not terminal.command:
        check_free(terminal, caller, connected)


def check_input(terminal: OpenTerminal, data: str, caller: Caller, connected: Container[str]) -> None:
    check_free(terminal, caller, connected)
    if terminal.exited:
        raise Conflict(f"The terminal {terminal.id!r} has ended; open another one.")
    if len(data) > INPUT_MAX:
        raise BadRequest("That is too much to type at once.", field="data")
