"""What an ACP agent wants to do, as one `Action`: from a request to run a command, or from a request for permission.

The attack: a permission that names one thing and is for another. A title that looks like a harmless command, arguments
or an environment beside the command, a kind `read` with a command inside. So a title is never a command, every field
of the input is either understood or makes the whole unclear, and the kind follows from the fields: what the agent calls
it counts only where it asks for more.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from portico.agents.acp.update import Track
from portico.agents.agent import Json
from portico.kernel.action import Action, Kind, command
from portico.workspace.jail import Jail

_COMMAND = ("command", "cmd")
_ARGUMENTS = ("args", "arguments", "argv")
_FOLDER = ("cwd", "workdir", "working_directory", "workingDirectory", "dir_path")
_ENVIRONMENT = ("env", "environment")
_PATH = ("path", "file_path", "filePath", "filepath", "fileName", "file_name", "abs_path", "absolute_path")
_REMARKS = frozenset(
    {"description", "explanation", "summary", "reason", "justification", "title", "intent", "intention", "call_id"}
    | {"timeout", "timeout_ms", "timeoutMs", "timeout_secs", "yield_time_ms", "max_output_tokens", "initial_wait"}
)
"""Words for people, and for how long to wait: they change nothing of what is done."""
_RANGE = frozenset({"line", "limit", "offset", "start_line", "end_line", "view_range", "startLine", "endLine"})
_SEARCH = frozenset({"pattern", "query", "regex", "glob", "include", "exclude", "case_sensitive", "output_mode"})
_CONTENT = frozenset(
    {"content", "text", "old_string", "new_string", "old_str", "new_str", "oldText", "newText", "oldString"}
    | {"newString", "replace_all", "replaceAll", "file_text", "insert_line", "diff", "edits", "insert_text"}
)
_WRITES = frozenset({"edit", "delete", "move"})
_READS = frozenset({"read", "search"})


def terminal_action(params: Json, jail: Jail) -> Action:
    """Of `terminal/create`. The folder is inside the session's, or this is refused."""
    program, arguments = str(params.get("command", "")), [str(each) for each in params.get("args") or []]
    folder = str(jail.resolve(str(params.get("cwd") or jail.root)))
    env = _variables(params.get("env") or {})
    # Some agents send a whole shell line as the command.
    line = [program, *arguments] if arguments or (program and " " not in program) else program
    return command(line, cwd=folder, env=env)


def permission_action(track: Track, cwd: str) -> Action:
    """Of `session/request_permission`."""
    if track.own:
        return Action()  # our own tool: it asks for itself, by its own name, when it is called
    given = track.input if isinstance(track.input, dict) else {}
    diffs = [str(each["path"]) for each in track.diffs]
    if run := _first(given, _COMMAND):
        return _command(given, run, cwd, [*diffs, *track.locations])
    named = [str(given[name]) for name in _PATH if given.get(name)]
    files = diffs or named[:1] or track.locations[:1]
    if track.kind in _READS and not diffs:
        files = [*files, *_patterns(given)]
    beside = {os.path.join(cwd, each) for each in (*named, *track.locations)} - {
        os.path.join(cwd, each) for each in files
    }
    kind = _kind(track.kind, bool(diffs))
    known = {*_PATH, *_REMARKS, *(_CONTENT if kind == "write" else ()), *((_RANGE | _SEARCH) if kind == "read" else ())}
    odd = [str(name) for name, value in given.items() if name not in known and value not in (None, "", [], {})]
    return Action(kind, files=tuple(dict.fromkeys(files)), unclear=_unclear(track, odd, several=bool(beside)))


def _patterns(given: Mapping[str, Any]) -> list[str]:
    """Patterns of a search that leave its folder, regardless of which folder it is: `/etc/*`, `../*`, `~/.ssh`."""
    said = [str(value) for name, value in given.items() if name in _SEARCH and isinstance(value, str)]
    return [os.path.expanduser(each) for each in said if each.startswith(("/", "~")) or ".." in each.split("/")]


def _kind(claimed: str, diffs: bool) -> Kind:
    if diffs or claimed in _WRITES:
        return "write"
    if claimed == "execute":
        return "shell"  # without a command that could be judged: it asks
    return "read" if claimed in _READS else "other"


def _unclear(track: Track, odd: list[str], *, several: bool) -> str:
    if track.input is not None and not isinstance(track.input, dict):
        return "its input is no object"
    if odd:
        return f"fields that are not known: {', '.join(odd)}"
    if several:
        return "it names further files"
    return "" if track.named else "only its title says which tool it is"


def _command(given: Mapping[str, Any], run: Any, cwd: str, files: list[str]) -> Action:
    odd = _unknown(given) + (["files beside a command"] if files else [])
    words = [str(each) for each in run] if isinstance(run, list) else [str(run)]
    more: Any = _first(given, _ARGUMENTS) or []
    if not isinstance(more, list):
        odd.append("args")
        more = [more]
    folder = str(_first(given, _FOLDER) or "")
    env = _variables(_first(given, _ENVIRONMENT) or {})
    line: str | list[str] = [*words, *map(str, more)] if more or isinstance(run, list) else words[0]
    found = command(line, cwd=os.path.normpath(os.path.join(cwd, folder)), env=env)
    unclear = f"fields that are not known: {', '.join(odd)}" if odd else ""
    return Action("shell", found.line, found.argv, found.env, found.cwd, unclear=unclear)


def _unknown(given: Mapping[str, Any]) -> list[str]:
    """Fields that were not understood; also a second name for the same thing (`command` and `cmd`)."""
    said = [str(name) for name, value in given.items() if value not in (None, "", [], {}, False)]
    seconds = [
        name
        for names in (_COMMAND, _ARGUMENTS, _FOLDER, _ENVIRONMENT)
        for name in [each for each in said if each in names][1:]
    ]
    known = {*_COMMAND, *_ARGUMENTS, *_FOLDER, *_ENVIRONMENT, *_REMARKS}
    return [name for name in said if name not in known or name in seconds]


def _first(given: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((given[name] for name in names if given.get(name)), None)


def _variables(given: Any) -> dict[str, str]:
    """As an object, or as a list of names and values; anything else is shown and asks."""
    if isinstance(given, dict):
        return {str(name): str(value) for name, value in given.items()}
    found: Iterable[Any] = given if isinstance(given, list) else [given]
    pairs = [(each.get("name"), each.get("value")) if isinstance(each, dict) else ("env", each) for each in found]
    return {str(name): str(value) for name, value in pairs}
