"""Requests to leave the sandbox: a person is asked about a host or a path, with the same card as for every other call.

An unknown host is asked about when a program connects to it; the connection waits. Every agent also has the tool
`request_access`. "Allow once" and "Deny" hold until the turn ends, so that a program which opens ten connections asks
once. The other answers are grants.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from portico.features.approvals.policy import LEAVES
from portico.features.sandboxes.grants import HOST, READ, WRITE, SandboxGrants, covers_of, grants_of, paths_of
from portico.features.sandboxes.record import NetworkRecord
from portico.kernel import events as e
from portico.kernel.approval import Decision
from portico.kernel.call import Call
from portico.kernel.decide.approval import DENY, ONCE, SESSION
from portico.kernel.errors import BadRequest
from portico.kernel.events import ErrorInfo, Json, Option, Record, ToolSpec
from portico.kernel.host import Host
from portico.kernel.session import Session
from portico.kernel.state import SessionState
from portico.kernel.tool import Tool, ToolResult
from portico.sandbox.network import Destination, Verdict, parse_target
from portico.sandbox.policy import SECRET_HOME, SECRET_SYSTEM, Mode
from portico.workspace.jail import is_closed

FOLDER = Option("allow-folder", "Allow always in this folder", True, "project")
OPTIONS = [ONCE, SESSION, FOLDER, DENY]
ASK_SECONDS = 60.0
"""How long a connection waits for a person: programs give up after one or two minutes."""
ASKS = 20
"""Hosts of one turn that a person is asked about. Nobody reads more cards; a program that tries more is broken."""
NETWORK, REQUEST_ACCESS = "network", "request_access"
_NEVER = ("/proc", "/sys", "/dev", "/run", "/var/run", "/boot")
"""Paths of the running system. They are no files that a task needs."""


class AccessArguments(Struct, forbid_unknown_fields=True):
    why: str
    path: str = ""
    host: str = ""
    write: bool = False


_SPEC = ToolSpec(
    REQUEST_ACCESS,
    "Your commands run in a sandbox. Ask the user for access to a file or folder outside of it, or to a network host,"
    " when a command fails because of that. Name either 'path' or 'host', and say why you need it.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "An absolute path of a file or folder."},
            "host": {"type": "string", "description": "A host name, with a port unless it is 443."},
            "write": {"type": "boolean", "description": "For a path: also to write. Default: only to read."},
            "why": {"type": "string", "description": "One sentence that the user reads."},
        },
        "required": ["why"],
    },
    "Request access",
)


Changed = Callable[[str], Coroutine[Any, Any, None]]


class _Answers(Struct):
    """The answers that hold until the turn ends."""

    allowed: dict[str, str] = {}
    """Who allowed it, by what it covers."""
    denied: dict[str, Verdict] = {}
    asked: int = 0


class AccessRequests:
    def __init__(self, host: Host, mode: Callable[[Session], Mode], changed: Changed) -> None:
        """`changed` is called with a session whose grants have changed."""
        self._host = host
        self._mode = mode
        self._changed = changed
        self._answers: dict[tuple[str, str], _Answers] = {}
        """By session and turn."""
        self._paths: dict[str, SandboxGrants] = {}
        """The paths that the agent's process of a session has."""
        host.tools[REQUEST_ACCESS] = Tool(_SPEC, self._request, self._offered)

    def granted(self, session: Session) -> SandboxGrants:
        """Return what the session may use beyond its policy: its grants, and what is allowed in its running turn."""
        self._paths.setdefault(session.id, paths_of(session))
        turn = session.running
        answers = self._answers.get((session.channel, turn.id)) if turn is not None else None
        once = [each for each in answers.allowed if not each.startswith(HOST)] if answers is not None else []
        return grants_of([*covers_of(session), *once])

    def grants_changed(self, record: Record) -> None:
        """Update the sandboxes of the sessions that a grant is for; when one is revoked, of all."""
        grant = record.event.grant if isinstance(record.event, e.GrantAdded) else None
        if grant is not None and not any(each.startswith((HOST, READ, WRITE)) for each in grant.covers):
            return
        ident = grant.session if grant is not None and grant.session else ""
        self._host.own(self._apply(ident), "sandboxes after a change of grants")

    async def _apply(self, ident: str) -> None:
        await self._changed(ident)
        for each, before in list(self._paths.items()):
            session = self._host.find(each)
            if session is None or not session.loaded:
                del self._paths[each]
            elif (paths := paths_of(session)) != before:
                self._paths[each] = paths
                _restart(session)

    def _of_turn(self, session: Session, turn: str) -> _Answers:
        for key in [each for each in self._answers if each[0] == session.channel and each[1] != turn]:
            del self._answers[key]  # its turn has ended
        return self._answers.setdefault((session.channel, turn), _Answers())

    # -- hosts ---------------------------------------------------------------------------------------------------

    async def decide(self, session: Session, target: Destination) -> Verdict:
        """Return whether a connection to a host that the policy does not name is allowed."""
        cover, turn = f"{HOST}{target}", session.running
        if cover in covers_of(session):
            return Verdict(True, "grant")
        if turn is None:
            return Verdict(False, "policy", f"{_refused(target)} No turn is running, so nobody can be asked.")
        answers = self._of_turn(session, turn.id)
        if cover in answers.allowed:
            return Verdict(True, answers.allowed[cover])
        if cover in answers.denied:
            return answers.denied[cover]
        if answers.asked >= ASKS:
            return Verdict(False, "policy", f"{_refused(target)} This turn has asked about {ASKS} hosts already.")
        answers.asked += 1
        title = f"{session.state.agent} wants to reach {target}, first time in this session"
        given = msgspec.json.encode({"host": target.host, "port": target.port}).decode()
        call = turn.tool(NETWORK, given, title=title)
        decision = await _approve(call, cover, title, ASK_SECONDS)
        why = "" if decision.allowed else f"{_refused(target)} {_reason(decision)}"
        await call.end(ok=decision.allowed, output="Allowed." if decision.allowed else why, error=_error(why))
        verdict = Verdict(decision.allowed, decision.by, why)
        if decision.allowed:
            answers.allowed[cover] = decision.by
        elif decision.by != "timeout":
            answers.denied[cover] = verdict
        return verdict

    # -- the tool ------------------------------------------------------------------------------------------------

    def _offered(self, state: SessionState) -> bool:
        session = self._host.find(state.id)
        return session is not None and session.loaded and self._mode(session) != "off"

    async def _request(self, arguments: Json, call: Call) -> ToolResult:
        try:
            asked = msgspec.convert(arguments, AccessArguments)
        except msgspec.ValidationError as error:
            raise BadRequest(f"The arguments are not valid: {error}.") from None
        if bool(asked.path) is bool(asked.host):
            raise BadRequest("Name either 'path' or 'host'.", field="path")
        session = call.turn.session
        if asked.host:
            cover, subject = self._host_cover(session, asked.host)
        else:
            cover = await asyncio.to_thread(_path_cover, asked.path, asked.write)
            subject = cover.replace(":", " ", 1)
        title = f"{session.state.agent} asks for access: {subject}"
        decision = await _approve(call, cover, f"{title} ({asked.why[:300]})" if asked.why else title)
        if not decision.allowed:
            text = f"Access to {subject} was refused. {_reason(decision)}"
            return ToolResult(False, text, ErrorInfo("denied", text))
        self._of_turn(session, call.turn.id).allowed[cover] = decision.by
        await self._changed(session.id)
        return ToolResult(True, _granted_text(cover, subject, decision))

    def _host_cover(self, session: Session, host: str) -> tuple[str, str]:
        target = parse_target(host, 443)
        if target is None:
            raise BadRequest(
                f"{host!r} is no host: write a name, or a name and a port (example.com:8080).", field="host"
            )
        if self._mode(session) == "strict":
            raise BadRequest("This sandbox is 'strict': it reaches only the model. Nobody is asked.", field="host")
        return f"{HOST}{target}", str(target)


class SessionGate:
    """The gate of a running sandbox (`EgressGate`): asks in the session that uses it, and counts."""

    def __init__(self, access: AccessRequests, record: NetworkRecord, session: Session) -> None:
        self._access = access
        self._record = record
        self._session = session

    async def decide(self, target: Destination) -> Verdict:
        return await self._access.decide(self._session, target)

    def opened(self, target: Destination, by: str) -> None:
        self._record.opened(self._session, target, by)

    def moved(self, target: Destination, sent: int, received: int) -> None:
        self._record.moved(self._session, target, sent, received)

    def refused(self, target: Destination, by: str) -> None:
        self._record.refused(self._session, target, by)


def _restart(session: Session) -> None:
    """Start the agent again before its next turn: a running process cannot get other files."""
    session.runner.refresh()
    if session.running is not None:
        session.running.remark("Access to files has changed. The agent is restarted before its next turn.")


async def _approve(call: Call, cover: str, title: str, seconds: float | None = None) -> Decision:
    return await call.approve("other", title=title, options=OPTIONS, timeout=seconds, meta={LEAVES: [cover]})


def _path_cover(path: str, write: bool) -> str:
    """Return what a grant of this path covers, with links resolved. Raises BadRequest if it can never be granted."""
    if not os.path.isabs(path) or "\0" in path:
        raise BadRequest(f"{path!r} is no absolute path.", field="path")
    real = os.path.realpath(path)
    if not os.path.exists(real):
        raise BadRequest(f"There is no {path!r}.", field="path")
    secret = (*SECRET_SYSTEM, *(os.path.expanduser(f"~/{each}") for each in SECRET_HOME), *_NEVER)
    if real == "/" or is_closed(Path(real)) or any(_is_below(real, each) for each in secret):
        raise BadRequest(f"{path!r} is never visible in a sandbox. Ask the user to copy what you need.", field="path")
    return f"{WRITE if write else READ}{real}"


def _is_below(path: str, folder: str) -> bool:
    folder = os.path.realpath(folder)
    return path == folder or path.startswith(f"{folder}/")


def _refused(target: Destination) -> str:
    return f"Portico's sandbox refused the connection to {target}."


def _reason(decision: Decision) -> str:
    if decision.by == "timeout":
        return f"Nobody answered within {ASK_SECONDS:g} seconds."
    return f"It was denied by {decision.by}{f': {decision.reason}' if decision.reason else '.'}"


def _error(why: str) -> ErrorInfo | None:
    return ErrorInfo("denied", why) if why else None


def _granted_text(cover: str, subject: str, decision: Decision) -> str:
    lasting = {SESSION.id: "in this session", FOLDER.id: "in this folder"}.get(decision.option or "", "")
    text = f"Access to {subject} was allowed by {decision.by} {lasting or 'until this turn ends'}."
    if cover.startswith(HOST):
        return f"{text} Programs can connect now."
    later = " Your own process sees it after the turn, when it is restarted." if lasting else ""
    return f"{text} Commands that start from now on see it.{later}"
