"""Calls of tools that other agents have, as calls of our own.

Models are trained with the tools of other agents and call them although they are not offered: `bash`, `Edit`,
`str_replace_editor`, `apply_patch`. The translation happens before a call is judged: rules, cards and the execution see
only our own tool. A call that means nothing here stays as it is, and the model gets the list of tools.
"""

import re
from collections.abc import Callable, Collection

from portico.agents.loop.arguments import canonical
from portico.agents.loop.other_names import EDITOR, FINISH, own_name
from portico.agents.loop.protocol import ModelAction
from portico.kernel.events import Json

_FIELDS: dict[str, dict[str, str]] = {
    "runCommand": {"cmd": "command", "script": "command", "line": "command", "input": "command", "code": "command"},
    "readFiles": {"paths": "files", "target_files": "files", "absolute_paths": "files"},
    "listFiles": {"pattern": "glob", "dir_path": "path", "relative_workspace_path": "path", "target_directory": "path"},
    "search": {
        **dict.fromkeys(("query", "regex", "search_term", "text", "q"), "pattern"),
        **dict.fromkeys(("include", "file_pattern", "include_pattern", "includes"), "glob"),
    },
    "createFile": dict.fromkeys(("text", "file_text", "contents", "code", "data", "code_edit"), "content"),
    "editFile": {
        **dict.fromkeys(("old", "find", "old_content", "target"), "search"),
        **dict.fromkeys(("new", "new_content", "replacement", "with"), "replace"),
        **dict.fromkeys(("patch", "input"), "diff"),
        "code_edit": "content",
    },
    "plan": dict.fromkeys(("todos", "plan", "items", "todoList", "tasks"), "steps"),
    "webFetch": {"link": "url", "uri": "url", "address": "url"},
    "askUser": {"prompt": "question", "message": "question", "follow_up": "choices", "options": "choices"},
    "delegate": {"prompt": "task", "message": "task", "description": "title"},
    "viewImage": {"file_path": "path"},
    FINISH: dict.fromkeys(("result", "summary", "answer", "message", "text", "final_answer"), "finalSummary"),
}
_IGNORED = {"webFetch": ("prompt", "format", "timeout"), "delegate": ("subagent_type", "model")}
"""How other agents would treat the result."""
_FILE_FIELDS = dict.fromkeys(
    ("file_path", "filePath", "filename", "file", "target_file", "absolute_path", "uri"), "path"
)
_BEGIN = re.compile(
    r"\A\s*(?:\*\*\* Begin Patch\s*\n)?\*\*\* (Add|Update|Delete) File: *([^\n]+?) *\n(.*)\Z", re.DOTALL
)
_END = re.compile(r"\n?\*\*\* End Patch\s*\Z")


def translated(action: ModelAction, offered: Collection[str], exists: Callable[[str], bool]) -> ModelAction:
    """The call of an offered tool that is meant; `exists`: whether a path exists."""
    names = tuple(offered)
    if action.problem or action.tool in names:
        return action
    if (ours := canonical(action.tool, (*names, FINISH))) in (*names, FINISH):
        if ours not in _FIELDS:
            return _made(action, ours, action.arguments)
        return _call(action, ours, dict(action.arguments), names, lambda path: False)
    ours = own_name(action.tool, names)
    if ours == EDITOR:
        return _editor(action, names, exists)
    return _call(action, ours, dict(action.arguments), names, exists) if ours else action


def _call(
    action: ModelAction, ours: str, said: Json, names: tuple[str, ...], exists: Callable[[str], bool]
) -> ModelAction:
    known = _FIELDS[ours]
    if ours in ("createFile", "editFile", "readFiles"):
        known = {**_FILE_FIELDS, **known}
    said = {known[name] if name in known and known[name] not in said else name: value for name, value in said.items()}
    if ours == "runCommand":
        _command(said)
    if ours == "readFiles":
        _lines(said)
    if ours in ("listFiles", "search"):
        _folder(said)
    if ours == "askUser":
        _question(said)
    for name in _IGNORED.get(ours, ()):
        said.pop(name, None)
    if ours == "editFile" and isinstance(patch := said.get("diff"), str) and "*** " in patch:
        return _patch(action, patch, names)
    path = said.get("path")
    if ours == "createFile" and "editFile" in names and isinstance(path, str) and exists(path):
        ours = "editFile"
    return _made(action, ours, said)


def _made(action: ModelAction, tool: str, arguments: Json, problem: str = "") -> ModelAction:
    return ModelAction(tool, arguments, action.id, problem)


def _command(said: Json) -> None:
    """Codex has the list `["bash", "-lc", LINE]` and milliseconds."""
    command = said.get("command")
    if isinstance(command, list) and len(command) == 3 and command[1] in ("-c", "-lc"):
        said["command"] = command[2]
    for name in ("timeout_ms", "timeout"):
        value = said.get(name)
        if isinstance(value, int) and (name == "timeout_ms" or value > 3600):
            said.pop(name)
            said["timeout"] = max(1, value / 1000)


def _lines(said: Json) -> None:
    """`offset` and `limit`, or the names of the first and the last line."""
    first = next((said.pop(name) for name in ("offset", "start_line", "startLine") if name in said), None)
    last = next((said.pop(name) for name in ("end_line", "endLine") if name in said), None)
    limit = said.pop("limit", None)
    whole = said.pop("view_range", None)
    if isinstance(whole, list):
        said["range"] = whole
    elif any(isinstance(each, int) for each in (first, last, limit)):
        begin = max(1, first) if isinstance(first, int) else 1
        end = last if isinstance(last, int) else begin + limit - 1 if isinstance(limit, int) else -1
        said["range"] = [begin, end]


def _question(said: Json) -> None:
    """Claude Code asks several questions, with options that have descriptions."""
    asked = said.pop("questions", None)
    if isinstance(asked, list) and asked and isinstance(asked[0], dict):
        said |= {"question": asked[0].get("question"), "choices": asked[0].get("options")}
    if isinstance(choices := said.get("choices"), list):
        said["choices"] = [each.get("label") if isinstance(each, dict) else each for each in choices]


def _folder(said: Json) -> None:
    """Other agents name a folder and a pattern below it."""
    path, glob = said.pop("path", None), said.get("glob")
    folder = path.removeprefix("./").strip("/") if isinstance(path, str) and path not in (".", "/") else ""
    if folder and not path.startswith("/"):
        said["glob"] = f"{folder}/**/{glob}" if isinstance(glob, str) and glob not in ("", "*", "**/*") else folder


def _editor(action: ModelAction, names: tuple[str, ...], exists: Callable[[str], bool]) -> ModelAction:
    """Anthropic's text editor: one tool with a command."""
    said = dict(action.arguments)
    match command := said.pop("command", None):
        case "view":
            wanted = {"files": [said.get("path")]}
            return _made(
                action, "readFiles", wanted | ({"range": said["view_range"]} if said.get("view_range") else {})
            )
        case "create" | "write":
            return _call(action, "createFile", said, names, exists)
        case "str_replace":
            return _made(action, "editFile", {"replace": "", **_renamed_edit(said)})
        case "insert":
            return _insert(action, said)
    return _made(action, "editFile", {}, f"There is no command {command!r}: use readFiles, createFile or editFile.")


def _renamed_edit(said: Json) -> Json:
    names = {"old_str": "search", "new_str": "replace"}
    return {
        names.get(name, name): value for name, value in said.items() if name in (*names, "path", "search", "replace")
    }


def _insert(action: ModelAction, said: Json) -> ModelAction:
    line, text = said.get("insert_line"), said.get("insert_text", said.get("new_str"))
    if not isinstance(line, int) or not isinstance(text, str) or not text:
        return _made(action, "editFile", {}, "'insert' needs 'insert_line' and 'insert_text'; or use editFile.")
    lines = text.removesuffix("\n").split("\n")
    diff = "\n".join([f"@@ -{line},0 +{line + 1},{len(lines)} @@", *(f"+{each}" for each in lines), ""])
    return _made(action, "editFile", {"path": said.get("path"), "diff": diff})


def _patch(action: ModelAction, patch: str, names: tuple[str, ...]) -> ModelAction:
    """The patch of Codex, for one file: a result belongs to one call."""
    found = _BEGIN.match(patch)
    body = _END.sub("\n", found[3]) if found is not None else ""
    if found is None or re.search(r"^\*\*\* (?:Add|Update|Delete|Move)", body, re.MULTILINE) or found[1] == "Delete":
        words = "A patch adds or updates one file per call. Use runCommand to delete or move files."
        return _made(action, "editFile", {}, words)
    path, lines = found[2], [line for line in body.rstrip("\n").split("\n") if line != "*** End of File"]
    if found[1] == "Add" and "createFile" in names:
        return _made(action, "createFile", {"path": path, "content": "".join(f"{each[1:]}\n" for each in lines)})
    heads = ["@@" if line.startswith("@@") else line for line in lines]
    return _made(action, "editFile", {"path": path, "diff": "\n".join([*heads, ""])})
