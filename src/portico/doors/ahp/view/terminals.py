"""Terminals on the wire: their state, their list in the root's, and the actions of their events. Pure."""

from portico.doors.ahp.view import names
from portico.doors.ahp.wire.envelope import Outgoing
from portico.doors.ahp.wire.record import Json
from portico.features.terminals import events as te
from portico.features.terminals.state import TerminalState
from portico.kernel.events import Record
from portico.kernel.host import Host
from portico.workspace.scrollback import ShellCommand


def claim(host: Host, of: TerminalState) -> Json:
    """Claims of clients are already in the format of the protocol; a terminal of an agent belongs to its chat."""
    session = host.find(of.session) if of.command and of.session is not None else None
    if session is None:
        return of.claim
    family = host.catalogue.root(session)
    return {
        "kind": "session",
        "session": names.session_uri(family.summary),
        "chat": names.chat_uri(session.summary),
    }


def state(host: Host, of: TerminalState) -> Json:
    """Contains the old and the new form of the exit: `exitCode`, and `lifecycle` since 0.9."""
    shown: Json = {
        "title": of.title,
        "cwd": names.file_uri(of.cwd),
        "cols": of.cols,
        "rows": of.rows,
        "content": [_part(part) for part in of.shown.parts],
        "claim": claim(host, of),
        "isPty": True,
        **_life(of),
    }
    return shown | ({"supportsCommandDetection": True} if of.detects else {})


def info(host: Host, of: TerminalState) -> Json:
    shown: Json = {"resource": names.terminal_uri(of), "title": of.title, "claim": claim(host, of)}
    return shown | _life(of)


def _life(of: TerminalState) -> Json:
    if not of.exited:
        return {"lifecycle": {"status": "running"}}
    code: Json = {} if of.exit_code is None else {"exitCode": of.exit_code}
    return {"lifecycle": {"status": "exited", **code}, **code}


def _part(part: object) -> Json:
    if not isinstance(part, ShellCommand):
        return {"type": "unclassified", "value": getattr(part, "value", "")}
    shown: Json = {
        "type": "command",
        "commandId": part.command_id,
        "commandLine": part.line,
        "output": part.output,
        "timestamp": int(part.started * 1000),
        "isComplete": part.complete,
    }
    if part.exit_code is not None:
        shown["exitCode"] = part.exit_code
    return shown | ({"durationMs": int(part.seconds * 1000)} if part.seconds is not None else {})


def actions(record: Record) -> list[Outgoing]:
    match record.event:
        case te.TerminalData() as event:
            return [Outgoing("data", {"data": event.text})]
        case te.TerminalCommand(command=command, line=line):
            fields: Json = {"commandId": command, "commandLine": line, "timestamp": record.time}
            return [Outgoing("commandExecuted", fields)]
        case te.TerminalCommandEnded(command=command, code=code, milliseconds=spent):
            ended: Json = {"commandId": command, "durationMs": spent}
            return [Outgoing("commandFinished", ended | ({"exitCode": code} if code is not None else {}))]
        case te.TerminalDetects():
            return [Outgoing("commandDetectionAvailable", {})]
        case te.TerminalResized(cols=cols, rows=rows, by=by):
            return [Outgoing("resized", {"cols": cols, "rows": rows}, by)]
        case te.TerminalClaimed(claim=given, by=by):
            return [Outgoing("claimed", {"claim": given}, by)]
        case te.TerminalTitled(title=title, by=by):
            return [Outgoing("titleChanged", {"title": title}, by)]
        case te.TerminalMoved(cwd=cwd):
            return [Outgoing("cwdChanged", {"cwd": names.file_uri(cwd)})]
        case te.TerminalCleared(by=by):
            return [Outgoing("cleared", {}, by)]
        case te.TerminalExited(code=code):
            return [Outgoing("exited", {"exitCode": code} if code is not None else {})]
    return []
