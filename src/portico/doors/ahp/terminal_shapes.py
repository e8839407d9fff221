"""Terminals on the wire: their state, their list in the root's, and the actions of their events. Pure."""

from portico import events as e
from portico.doors.ahp import names
from portico.doors.ahp.record import Json
from portico.doors.ahp.translate import Said
from portico.events import Record
from portico.host.terminals import OpenTerminal
from portico.workspace.scrollback import Command


def state(of: OpenTerminal) -> Json:
    """Old and new forms of the end together: `exitCode`, and `lifecycle` since 0.9."""
    shown: Json = {
        "title": of.title,
        "cwd": names.file_uri(of.cwd),
        "cols": of.cols,
        "rows": of.rows,
        "content": [_part(part) for part in of.shown.parts],
        "claim": of.claim,
        "isPty": True,
        **_life(of),
    }
    return shown | ({"supportsCommandDetection": True} if of.detects else {})


def info(of: OpenTerminal) -> Json:
    shown: Json = {"resource": of.uri or names.TERMINAL + of.id, "title": of.title, "claim": of.claim}
    return shown | _life(of)


def _life(of: OpenTerminal) -> Json:
    if not of.exited:
        return {"lifecycle": {"status": "running"}}
    code: Json = {} if of.exit_code is None else {"exitCode": of.exit_code}
    return {"lifecycle": {"status": "exited", **code}, **code}


def _part(part: object) -> Json:
    if not isinstance(part, Command):
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


def actions(record: Record) -> list[Said]:
    match record.event:
        case e.TerminalData() as event:
            return [Said("data", {"data": event.text})]
        case e.TerminalCommand(command=command, line=line):
            fields: Json = {"commandId": command, "commandLine": line, "timestamp": record.time}
            return [Said("commandExecuted", fields)]
        case e.TerminalCommandEnded(command=command, code=code, milliseconds=spent):
            ended: Json = {"commandId": command, "durationMs": spent}
            return [Said("commandFinished", ended | ({"exitCode": code} if code is not None else {}))]
        case e.TerminalDetects():
            return [Said("commandDetectionAvailable", {})]
        case e.TerminalResized(cols=cols, rows=rows, by=by):
            return [Said("resized", {"cols": cols, "rows": rows}, by)]
        case e.TerminalClaimed(claim=claim, by=by):
            return [Said("claimed", {"claim": claim}, by)]
        case e.TerminalTitled(title=title, by=by):
            return [Said("titleChanged", {"title": title}, by)]
        case e.TerminalMoved(cwd=cwd):
            return [Said("cwdChanged", {"cwd": names.file_uri(cwd)})]
        case e.TerminalCleared(by=by):
            return [Said("cleared", {}, by)]
        case e.TerminalExited(code=code):
            return [Said("exited", {"exitCode": code} if code is not None else {})]
    return []
