"""What a call shows in an editor: texts, pictures, diffs, the files that it is about. Pure."""

import os
import re
from collections.abc import Iterable
from typing import Any

import acp
import msgspec
from acp.schema import ToolCallLocation

from portico.kernel.events import Json
from portico.markdown import visible

OUTPUT_CHARS = 100_000
"""Of a finished tool's output; the whole is in the host."""
LOCATIONS = 20
"""Files of one call. An editor opens them as the agent works; nobody follows more."""
_PATHS = ("path", "file_path", "filePath", "file", "filename", "absolute_path", "notebook_path", "target_file")
_LISTS = ("paths", "files")
_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NO_NEWLINE = "\\"
"""First character of the line that follows a last line without a line end."""


def words(text: str) -> Any:
    return acp.tool_content(acp.text_block(text))


def contents(content: list[Json]) -> list[Any]:
    """Terminals of the host are no terminals of the editor; sub-agents are shown by their text."""
    found: list[Any] = []
    for each in content:
        kind, text = each.get("type"), each.get("text")
        if kind == "diff" and isinstance(each.get("path"), str):
            found += _diffs_of(each)
        elif kind == "text" and isinstance(text, str):
            found.append(words(text))
        elif (picture := _picture(each)) is not None:
            found.append(acp.tool_content(picture))
    return found


def _diffs_of(item: Json) -> list[Any]:
    """Both sides, or the hunks of an edit of which only the diff was reported."""
    path, new = item["path"], item.get("new")
    if isinstance(new, str) or not isinstance(item.get("diff"), str):
        return [acp.tool_diff_content(path, str(new or ""), item.get("old"))]
    return hunks(path, item["diff"]) or [words(visible(item["diff"]))]


def _picture(item: Json) -> Any:
    data, media = item.get("data"), str(item.get("contentType") or item.get("mimeType") or "")
    return acp.image_block(data, media) if isinstance(data, str) and media.startswith("image/") else None


def hunks(path: str, diff: str) -> list[Any]:
    """A unified diff of one file as ACP's diffs, one for each hunk. Empty: it is cut, or not of one file."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", diff)  # not splitlines: a file may contain other separators
    found, at = [], next((at for at, line in enumerate(lines) if line.startswith("@@")), len(lines))
    is_new = any(line.startswith("--- /dev/null") for line in lines[:at])
    while at < len(lines):
        head = _HUNK.match(lines[at])
        if head is None:
            return []
        old, new, at = _sides(lines, at + 1, int(head[1] or 1), int(head[2] or 1))
        if old is None or new is None:
            return []
        found.append(acp.tool_diff_content(path, new, None if is_new else old))
    return found


def _sides(lines: list[str], at: int, before: int, after: int) -> tuple[str | None, str | None, int]:
    """Read the lines of one hunk, by the counts in its head."""
    old: list[str] = []
    new: list[str] = []
    while at < len(lines) and (len(old) < before or len(new) < after or lines[at].startswith(_NO_NEWLINE)):
        mark, line = lines[at][0], lines[at][1:]
        if mark == _NO_NEWLINE:
            for side in (old, new):
                if side and lines[at - 1][0] in (" ", "-" if side is old else "+"):
                    side[-1] = side[-1].removesuffix("\n")
        elif mark not in " +-":
            return None, None, at
        if mark in " -":
            old.append(line)
        if mark in " +":
            new.append(line)
        at += 1
    whole = len(old) == before and len(new) == after
    return ("".join(old), "".join(new), at) if whole else (None, None, at)


def locations(paths: Iterable[str], line: Any = None) -> list[ToolCallLocation] | None:
    """Absolute paths only: an editor does not know the agent's folder."""
    found = [each for each in dict.fromkeys(paths) if os.path.isabs(each)][:LOCATIONS]
    number = line if isinstance(line, int) and not isinstance(line, bool) and line >= 0 else None
    return [ToolCallLocation(path=each, line=number) for each in found] or None


def files_of(given: Any, cwd: str) -> list[str]:
    """The files that the arguments of a call name, as absolute paths."""
    if not isinstance(given, dict):
        return []
    single = [given[key] for key in _PATHS if isinstance(given.get(key), str)]
    listed = [each for key in _LISTS if isinstance(given.get(key), list) for each in given[key]]
    named = [each for each in (*single, *listed) if isinstance(each, str) and each and "\0" not in each]
    return [os.path.normpath(os.path.join(cwd, each.removeprefix("file://"))) for each in named] if cwd else named


def diff_paths(content: list[Json]) -> list[str]:
    return [str(each["path"]) for each in content if each.get("type") == "diff" and each.get("path")]


def children_of(content: list[Json]) -> list[str]:
    """The sessions of the sub-agents that a call runs."""
    return [str(each["session"]) for each in content if each.get("type") == "subagent" and each.get("session")]


def decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text) if text else None
    except (ValueError, RecursionError):
        return text


def attached(attachment: Json) -> Any:
    """A block for what a person attached to a message; None if there is nothing to show."""
    data, media = attachment.get("data"), str(attachment.get("contentType") or "")
    label = str(attachment.get("label") or attachment.get("displayName") or "attachment")
    uri = str(attachment.get("uri") or "")
    if isinstance(data, str) and media.startswith("image/"):
        return acp.image_block(data, media, uri=uri or None)
    if isinstance(data, str) and media.startswith("audio/"):
        return acp.audio_block(data, media)
    return acp.resource_link_block(label, uri) if uri else None
