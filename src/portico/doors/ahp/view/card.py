"""How a tool call looks: its kind, its message and its input, on an approval card and in the transcript.

Editors choose the view by `_meta.toolKind`. A shell call has its plain command line as `toolInput`, which is shown
verbatim; the input of any other call is shown only when its message is Markdown, so that message itself names what the
call is about. All of it is untrusted text of an agent, so it is escaped.
"""

import shlex
from typing import Any

import msgspec

from portico.doors.ahp.wire.record import Json
from portico.features.board.activity import doing
from portico.kernel.customization import SERVER
from portico.kernel.state import Approval, CallPart, SessionState
from portico.markdown import escape, is_disguised, visible

_KINDS = {"execute": "terminal", "read": "read", "search": "search"}
"""The views of editors, by our kinds of calls. All other kinds have the same view."""
_TITLES = {
    "terminal": "Run in terminal?",
    "write": "Write file?",
    "create": "Create file?",
    "delete": "Delete file?",
    "move": "Move file?",
    "read": "Read file?",
    "search": "Search files?",
    "fetch": "Fetch URL?",
}
_COMMANDS = ("command", "cmd", "commandLine", "command_line", "script")
_SUBJECTS = (
    *("path", "file_path", "filePath", "filepath", "fileName", "abs_path", "files", "url", "uri", "query"),
    *("pattern", "glob"),
)
"""Input fields that describe the subject of a call, as named by the known agents."""


def is_shell(call: CallPart) -> bool:
    return call.kind == "execute" or any(each.kind == "shell" for each in call.approvals if not each.result)


def tool_input(call: CallPart) -> str:
    """The content of `toolInput`: the command line of a shell call, the JSON of any other."""
    asked = last_asked(call)
    return shown_input(call, asked, call.input)


def shown_input(call: CallPart, asked: Approval | None, input: str) -> str:
    """The same for an input that the call had, or would have, with the approval that asks about it."""
    if not is_shell(call):
        return input
    if asked is not None and asked.command and input == asked.input:
        return asked.command  # what the rules judged, and what runs
    given = "" if input == "{}" else input  # some agents put the command into the title, and nowhere else
    return command_in(input) or given or (call.title if call.ready else "")


def edited_input(call: CallPart, asked: Approval, edited: str) -> str:
    """Convert an edited `toolInput` to JSON input: for a shell call only the command line was shown."""
    before = _decoded(asked.input)
    if not is_shell(call) or before is None or command_in(asked.input) is None:
        return edited
    field = next(name for name in _COMMANDS if before.get(name))
    return msgspec.json.encode({**before, field: edited}).decode()


def is_editable(call: CallPart, asked: Approval) -> bool:
    """False when the command is shown with an environment or a folder, which are separate fields of its input."""
    return asked.editable and (not is_shell(call) or asked.command in (None, command_in(asked.input)))


def risk(asked: Approval) -> Json:
    """The reason for the approval, in the field that editors show. A rule that always asks lowers the safety score."""
    safety = 0.2 if asked.why.startswith("It always asks") else 0.5
    return {"kind": "judge", "status": "complete", "reason": {"markdown": escape(asked.why)}, "safety": safety}


def activity(state: SessionState) -> str:
    """The session's activity, with the same text as in other lists; empty when it only writes text or nothing runs."""
    return visible(doing(state))


def command_in(input: str) -> str | None:
    found = _decoded(input) or {}
    for name in _COMMANDS:
        value = found.get(name)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            return shlex.join(map(str, value))
    return None


def last_asked(call: CallPart) -> Approval | None:
    """The last approval of the call itself, not of its result."""
    return next((each for each in reversed(call.approvals) if not each.result), None)


def meta(call: CallPart, seed: bool) -> Json:
    """`_meta` without the fields of an approval. Version 1 receives it only when the call starts."""
    if seed or not call.ready:
        return started(call.kind, call.server, call.tool) | call.meta
    if is_shell(call) and is_disguised(tool_input(call)):
        return {"language": "shellscript"} | call.meta  # a terminal view would hide some of it: the message does not
    kind = "execute" if is_shell(call) else call.kind
    return started(kind, call.server, call.tool) | subagent(call) | call.meta


def subagent(call: CallPart) -> Json:
    """The chat URI, the name and the task of the sub-agent that the call has started."""
    found = next((each for each in call.content if each.get("type") == "subagent" and each.get("uri")), None)
    if found is None:
        return {}
    words = {"subagentAgentName": found.get("agent"), "subagentDescription": found.get("title")}
    shown = {"toolKind": "subagent", "subagentChatUri": found["uri"]}
    return shown | {key: visible(str(value)) for key, value in words.items() if value}


def started(kind: str, server: str, tool: str) -> Json:
    """The `_meta` fields known when a call starts: its kind and its MCP server."""
    name = server.removeprefix(SERVER)
    shown: Json = {"mcpServerName": name, "mcpToolName": tool.removeprefix(f"{name}__")} if server else {}
    view = _KINDS.get(kind)
    if view is None:
        return shown
    return shown | ({"toolKind": view, "language": "shellscript"} if view == "terminal" else {"toolKind": view})


def message(call: CallPart) -> Json:
    """What the call does, in Markdown."""
    title = call.title or call.tool
    if is_shell(call):
        return {"markdown": escape(tool_input(call) or title)}
    subject = _subject(call)
    return {"markdown": escape(title if not subject or subject in title else f"{title}: {subject}")}


def past(call: CallPart) -> str | Json:
    """What the call did. For the tools of a client, the text comes from the client."""
    if call.past and call.owner is not None:
        return call.past
    return {"markdown": escape(call.past)} if call.past else message(call)


def intention(call: CallPart) -> Json:
    """The purpose of a command, shown with the command. A field of plain text."""
    said = (_decoded(call.input) or {}).get("description")
    words = said if isinstance(said, str) and said.strip() else call.title
    return {"intention": visible(words)} if is_shell(call) and words else {}


def confirmation_title(call: CallPart, asked: Approval) -> str:
    """The title of an approval. Editors truncate it and remove characters, so it names only the kind of call."""
    if asked.kind == "shell":
        return _TITLES["terminal"]
    if asked.kind == "write" and call.kind not in ("delete", "move"):
        created = asked.diff is not None and "--- /dev/null" in asked.diff.splitlines()
        return _TITLES["create" if created else "write"]
    return _TITLES.get(call.kind, f"Allow {visible(call.tool)}?")


def _subject(call: CallPart) -> str:
    asked = last_asked(call)
    if asked is not None and (asked.path or asked.command):
        return ", ".join(asked.files) or asked.path or asked.command or ""
    found = _decoded(call.input) or {}
    values = [found[name] for name in _SUBJECTS if found.get(name)]
    if values:
        return _words(values[0])
    return asked.title if asked is not None and asked.title not in (call.title, call.tool) else ""


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _decoded(input: str) -> Json | None:
    try:
        found = msgspec.json.decode(input) if input else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
