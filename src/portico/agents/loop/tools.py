"""The tools of the built-in agent: list, search, create, edit and run, inside the allowed folders.

Each tool defines its arguments (which are also its schema), plans a call, and then performs it. A person approves
exactly the planned call: the file's `etag` is passed from the plan to the action.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec import UNSET, Struct, UnsetType

from portico.agents.loop.roots import Roots
from portico.kernel.action import Action, command
from portico.kernel.call import Call
from portico.kernel.errors import AlreadyExists, BadRequest, Conflict, PorticoError
from portico.kernel.events import Json, ToolSpec
from portico.sandbox.policy import Confinement
from portico.workspace import patch
from portico.workspace.files import Text
from portico.workspace.glob import Glob
from portico.workspace.process import COMMAND_SECONDS, command_environment, run
from portico.workspace.replacement import replace_one
from portico.workspace.search import LIST_DEFAULT, LIST_MAX, MATCH_DEFAULT, MATCH_MAX, find, search
from portico.workspace.text_form import read_form

FILE_BYTES = 64 * 1024
"""Of one file in one answer: 16,000 tokens, a long source file."""
CALL_BYTES = 128 * 1024
"""Of all files in one call."""
FILES_MAX = 50
HUGE_BYTES = 1024 * 1024
"""A file above this is not begun without a range: its first piece would only mislead."""
COMMAND_SECONDS_MAX = 3600.0
PREVIEW_LINES = 2000
"""Lines of a diff that a person gets to see."""
NO_INPUT = "commands have no terminal and no input. Use startCommand for one that does not end, or a longer timeout"
LEFT_RUNNING = "processes that it left running were ended. Use startCommand for what has to keep running"
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\n\r])", re.MULTILINE)
"""What a terminal would show no more: progress bars write a line some thousand times."""
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
EDIT_CHARS = 64 * 1024
"""Limit for either side of an edit that is stored with its call: as much as a model reads of one file in one answer."""


class ListFiles(Struct, forbid_unknown_fields=True):
    glob: str = ""
    max: int = LIST_DEFAULT


class ReadFiles(Struct, forbid_unknown_fields=True):
    files: list[str]
    range: list[int] | UnsetType = UNSET


class SearchArguments(Struct, forbid_unknown_fields=True):
    pattern: str
    regex: bool = False
    glob: str = ""
    max: int = MATCH_DEFAULT


class CreateFile(Struct, forbid_unknown_fields=True):
    path: str
    content: str


class SearchReplace(Struct, forbid_unknown_fields=True):
    search: str
    replace: str
    all: bool = False


class EditFile(Struct, forbid_unknown_fields=True):
    path: str
    search: str | UnsetType = UNSET
    replace: str | UnsetType = UNSET
    all: bool = False
    edits: list[SearchReplace] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    diff: str | UnsetType = UNSET


class RunCommandArguments(Struct, forbid_unknown_fields=True):
    command: str | list[str]
    cwd: str = "."
    timeout: float = COMMAND_SECONDS


_LOOK = Action("read")
Arguments = ListFiles | ReadFiles | SearchArguments | CreateFile | EditFile | RunCommandArguments


@dataclass(frozen=True)
class PlannedCall:
    """What a call is about to do, as a person is asked."""

    action: Action
    title: str
    act: Callable[[Call], Awaitable[str]]
    """Does it for the call, which takes live output and content. Returns what the model reads."""
    diff: str | None = None
    content: list[Json] = field(default_factory=list)
    """For those who look at it afterwards: both sides of a file that it changes, the data that a server gave."""
    exits: bool = False
    """A command that was waited for: success is exit code 0."""
    free: bool = False
    """Touches nothing but the conversation (a plan, a question): there is nothing to approve."""

    @property
    def changes(self) -> bool:
        return self.action.kind != "read"


@dataclass
class LoopToolbox:
    """The tools of one run. It remembers which files the run has read, in which state."""

    roots: Roots
    confine: Callable[[], Awaitable[Confinement]]
    """Returns how a command is started."""
    seen: dict[str, str] = field(default_factory=dict)

    async def plan(self, tool: str, arguments: Json) -> PlannedCall:
        """Check a call and return what it would do. Raises a PorticoError whose message goes back to the model."""
        shape = _SHAPES.get(tool)
        if shape is None:
            raise BadRequest(f"There is no tool {tool!r}; there are: {', '.join(_SHAPES)}.", field="tool")
        try:
            wanted: Arguments = msgspec.convert(arguments, shape, strict=False)
        except msgspec.ValidationError as error:
            raise BadRequest(f"The arguments of {tool!r} do not fit: {error}.", field="arguments") from None
        match wanted:
            case ListFiles():
                return PlannedCall(_LOOK, f"List files {wanted.glob}".rstrip(), lambda _: self._list(wanted))
            case ReadFiles():
                return self._plan_read(wanted)
            case SearchArguments():
                return PlannedCall(_LOOK, f"Search for {wanted.pattern!r}", lambda _: self._search(wanted))
            case CreateFile():
                return await self._plan_create(wanted)
            case EditFile():
                return await self._plan_edit(wanted)
            case RunCommandArguments():
                return await self._plan_run(wanted)

    # -- looking -----------------------------------------------------------------------------------------------

    async def _list(self, wanted: ListFiles) -> str:
        limit = min(max(1, wanted.max), LIST_MAX)
        names: list[str] = []
        cut = False
        for prefix, jail in self.roots.parts():
            # A glob is about the whole path: below a part of the project it is matched here.
            found = await find(jail, "" if prefix else wanted.glob, LIST_MAX if prefix else limit)
            names += [prefix + name for name in found.paths if not prefix or _fits(wanted.glob, prefix + name)]
            cut = cut or found.cut
        names.sort()
        cut = cut or len(names) > limit
        shown = "\n".join(names[:limit]) or "No files."
        return f"{shown}\n[cut: there are more; use a narrower glob or a larger max]" if cut else shown

    def _plan_read(self, wanted: ReadFiles) -> PlannedCall:
        if not 1 <= len(wanted.files) <= FILES_MAX:
            raise BadRequest(f"'files' names 1 to {FILES_MAX} files.", field="files")
        if not isinstance(wanted.range, UnsetType) and len(wanted.range) != 2:
            raise BadRequest("'range' is [first line, last line].", field="range")
        named = ", ".join(wanted.files)
        return PlannedCall(
            Action("read", files=tuple(wanted.files)), f"Read {named}"[:200], lambda _: self._read(wanted)
        )

    async def _read(self, wanted: ReadFiles) -> str:
        room = CALL_BYTES
        pieces: list[str] = []
        refused: PorticoError | None = None
        for path in wanted.files:
            try:
                text, used = await self._read_one(path, wanted.range, min(room, FILE_BYTES))
                room -= used
            except PorticoError as error:
                text, refused = f"error: {error.message}", error
            pieces.append(f"=== {path}\n{text}")
        if refused is not None and len(wanted.files) == 1:
            raise refused
        return "\n".join(pieces)

    async def _read_one(self, path: str, lines: list[int] | UnsetType, room: int) -> tuple[str, int]:
        at = self.roots.within(path)
        first, last = (1, None) if isinstance(lines, UnsetType) else (lines[0], lines[1])
        status = await self.roots.files.stat(at)
        if isinstance(lines, UnsetType) and status.kind == "file" and status.size > HUGE_BYTES:
            return f"[not shown: {status.size} bytes; ask for a range of lines, or search]", 0
        if room <= 0:
            return "[not shown: this call has shown enough; read it in another one]", 0
        found = await self.roots.files.read_text(at, first, last, room)
        note = ""
        if found.binary:
            other = await self._read_other(at, first, last, room)
            if other is None:
                hint = "; viewImage shows pictures" if path.lower().endswith(PICTURES) else ""
                return f"[not shown: binary file of {found.size} bytes{hint}]", 0
            found, note = other
        self.seen[self.roots.name(status.path)] = found.etag
        text = note + found.text.removeprefix("\ufeff").replace("\r\n", "\n")
        if found.cut:
            hint = "ask for a range" if found.last > first else "this line is longer; search in it, or use a command"
            text += f"\n[cut after line {found.last}: the file has {found.size} bytes; {hint}]"
        return text, len(found.text)

    async def _read_other(self, at: str, first: int, last: int | None, room: int) -> tuple[Text, str] | None:
        """Read a text in another encoding than UTF-8, with a note that names the encoding; None: it is not a text."""
        whole = await self.roots.files.read(at)
        form = await asyncio.to_thread(read_form, whole.data)
        if form is None or len(whole.data) < whole.size:
            return None
        lines = form.text.splitlines(keepends=True)[first - 1 : last]
        text = "".join(lines)
        shown = Text(text[:room], first, first + len(lines) - 1, len(text) > room, False, whole.size, whole.etag)
        return shown, f"[encoding: {form.encoding}; an edit keeps it]\n"

    async def _search(self, wanted: SearchArguments) -> str:
        limit = min(max(1, wanted.max), MATCH_MAX)
        lines: list[str] = []
        cut = ""
        for prefix, jail in self.roots.parts():
            glob = wanted.glob.removeprefix(prefix)
            found = await search(jail, wanted.pattern, regex=wanted.regex, glob=glob, limit=limit)
            lines += [f"{prefix}{match.path}:{match.line}: {match.text}" for match in found.matches]
            cut = cut or found.cut
        shown = "\n".join(lines[:limit]) or "No matches."
        cut = cut or ("matches" if len(lines) > limit else "")
        return f"{shown}\n[cut by {cut}: there may be more; narrow the search]" if cut else shown

    # -- changing ----------------------------------------------------------------------------------------------

    async def _plan_create(self, wanted: CreateFile) -> PlannedCall:
        name = await asyncio.to_thread(self.roots.check, wanted.path)
        if await self._exists(name):
            raise AlreadyExists(f"{name!r} exists already; read it and use editFile.")
        diff = await asyncio.to_thread(patch.diff, "", wanted.content, name, old_exists=False)
        return PlannedCall(
            Action("write", files=(name,)),
            f"Create {name}",
            lambda _: self._create(name, wanted.content),
            diff=_shown(diff),
            content=_edit(self.roots.at(name), None, wanted.content),
        )

    async def _create(self, name: str, content: str) -> str:
        data = _encoded(content)
        status = await self.roots.files.write(self.roots.at(name), data, create_only=True, parents=True)
        self.seen[name] = status.etag
        return f"Created {name} ({len(data)} bytes)."

    async def _plan_edit(self, wanted: EditFile) -> PlannedCall:
        _check_edit(wanted)
        if wanted.search == "" and isinstance(wanted.replace, str):
            if not self.roots.has(wanted.path):  # other agents create files in this way
                return await self._plan_create(CreateFile(wanted.path, wanted.replace))
            wanted = msgspec.structs.replace(wanted, search=UNSET, replace=UNSET, content=wanted.replace)
            is_new = True
        else:
            is_new = False
        name = await asyncio.to_thread(self.roots.check, wanted.path)
        found = await self.roots.files.read(self.roots.at(name))
        if name not in self.seen and found.size:
            raise Conflict(f"Read {name!r} before you edit it.")
        if self.seen.get(name, found.etag) != found.etag:
            raise Conflict(f"{name!r} has changed since you read it. Read it again, then edit.")
        form = await asyncio.to_thread(read_form, found.data)
        if form is None or len(found.data) < found.size:
            raise BadRequest(f"{name!r} is a binary file, or too large to edit.", field="path")
        before = form.text
        if is_new and before:
            raise BadRequest("'search' is empty, and the file is not: give the text to be replaced.", field="search")
        after, notes = await asyncio.to_thread(_edited, before, wanted)
        if after == before:
            raise BadRequest(f"This would change nothing in {name!r}.", field="content")
        data = await asyncio.to_thread(form.encode, after)
        diff = _shown(await asyncio.to_thread(patch.diff, before, after, name))
        return PlannedCall(
            Action("write", files=(name,)),
            f"Edit {name}",
            lambda _: self._edit(name, data, found.etag, notes),
            diff=diff,
            content=_edit(self.roots.at(name), before, after),
        )

    async def _edit(self, name: str, data: bytes, etag: str, notes: list[str]) -> str:
        """Write with the etag that was shown: changes made during the approval are not overwritten."""
        status = await self.roots.files.write(self.roots.at(name), data, if_match=etag)
        self.seen[name] = status.etag
        return "\n".join([f"Edited {name} ({status.size} bytes now).", *(f"[{note}]" for note in notes)])

    async def _exists(self, name: str) -> bool:
        try:
            await self.roots.files.stat(self.roots.at(name), follow=False)
        except PorticoError as error:
            if error.code == "not_found":
                return False
            raise
        return True

    # -- running -----------------------------------------------------------------------------------------------

    async def _plan_run(self, wanted: RunCommandArguments) -> PlannedCall:
        if not wanted.command or not 0 < wanted.timeout <= COMMAND_SECONDS_MAX:
            raise BadRequest(
                f"runCommand needs a command, and 0 < timeout <= {COMMAND_SECONDS_MAX:g}.", field="command"
            )
        folder = await asyncio.to_thread(self.roots.jail.resolve, self.roots.within(wanted.cwd))
        action = command(wanted.command, cwd=str(folder))

        async def act(call: Call) -> str:
            return await _run(action, await self.confine(), wanted.timeout, call.output)

        place = "" if folder == self.roots.project else f" (in {self.roots.name(folder)})"
        return PlannedCall(action, f"Run {action.text}{place}"[:200], act, exits=True)


async def _run(action: Action, policy: Confinement, timeout: float, report: Callable[[str], None]) -> str:
    line = action.argv or action.line or ""
    env = command_environment()
    done = await run(line, policy=policy, cwd=Path(action.cwd), env=env, timeout=timeout, on_output=report)
    ending = f"timed out after {timeout:g} s and was ended; {NO_INPUT}" if done.timed_out else f"exit code {done.code}"
    ending += f"; {LEFT_RUNNING}" if done.left else ""
    text = f"{_OVERWRITTEN.sub('', done.output).rstrip()}\n[{ending}]".lstrip()
    if done.code != 0 or done.timed_out:
        raise CommandFailed(text, None if done.timed_out else done.code)
    return text


class CommandFailed(PorticoError):
    """The command ran and failed; the whole output goes to the model."""

    code = "agent_failed"

    def __init__(self, message: str, exit_code: int | None) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def _check_edit(wanted: EditFile) -> None:
    names = ("search", "edits", "content", "diff")
    ways = [name for name in names if not isinstance(getattr(wanted, name), UnsetType)]
    if len(ways) != 1:
        raise BadRequest(
            "editFile takes one of: 'search' and 'replace', or 'edits' (a list of these), or 'content' (the whole new "
            "file), or 'diff'.",
            field="search",
        )
    if ways == ["edits"] and not wanted.edits:
        raise BadRequest("'edits' is empty: give at least one {search, replace}.", field="edits")
    if ways == ["search"] and isinstance(wanted.replace, UnsetType):
        raise BadRequest("'search' needs 'replace': the text that takes its place.", field="replace")


def _edited(before: str, wanted: EditFile) -> tuple[str, list[str]]:
    """The new text, and what the model should know about how it was made. All edits fit, or none is made."""
    if not isinstance(wanted.content, UnsetType):
        return wanted.content.replace("\r\n", "\n"), []
    if not isinstance(wanted.diff, UnsetType):
        return patch.apply(before, wanted.diff.replace("\r\n", "\n")), []
    edits = wanted.edits
    if isinstance(edits, UnsetType):
        edits = [SearchReplace(str(wanted.search), str(wanted.replace), wanted.all)]
    text, notes = before, []
    for number, each in enumerate(edits, 1):
        search, new = each.search.replace("\r\n", "\n"), each.replace.replace("\r\n", "\n")
        try:
            made = replace_one(text, search, new, each.all)
        except BadRequest as error:
            where = f"Edit {number} of {len(edits)}, none was made: " if len(edits) > 1 else ""
            raise BadRequest(f"{where}{error.message}", field="search") from None
        text = made.text
        notes += [made.note] if made.note else []
        notes += [f"{made.places} places were replaced"] if each.all else []
    return text, notes


def _fits(glob: str, name: str) -> bool:
    return Glob(glob).matches(name) if any(sign in glob for sign in "*?[{") else glob in name


def _shown(diff: str) -> str:
    lines = diff.splitlines(keepends=True)
    if len(lines) <= PREVIEW_LINES:
        return diff
    return "".join(lines[:PREVIEW_LINES]) + f"[... {len(lines) - PREVIEW_LINES} more lines ...]\n"


def _edit(path: str, old: str | None, new: str) -> list[Json]:
    if max(len(old or ""), len(new)) > EDIT_CHARS:
        return []
    return [patch.edit(path, old, new)]


def _encoded(content: str) -> bytes:
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadRequest("The content has characters that are no text (lone surrogates).", field="content") from error


_SHAPES: dict[str, type[Arguments]] = {
    "listFiles": ListFiles,
    "readFiles": ReadFiles,
    "search": SearchArguments,
    "createFile": CreateFile,
    "editFile": EditFile,
    "runCommand": RunCommandArguments,
}
READS = frozenset({"listFiles", "readFiles", "search"})
"""Tools that change nothing: calls of them run at the same time."""
CHANGES = frozenset({"createFile", "editFile"})
_TEXT: Json = {"type": "string"}
_EDIT: Json = {
    "type": "object",
    "properties": {"search": _TEXT, "replace": _TEXT, "all": {"type": "boolean"}},
    "required": ["search", "replace"],
}


def _spec(name: str, description: str, required: Sequence[str], **properties: Json) -> ToolSpec:
    schema: Json = {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
    return ToolSpec(name, description, schema)


TOOLS: list[ToolSpec] = [
    _spec(
        "listFiles",
        f"Names of files; 'glob' is a pattern or a piece of the path. At most {LIST_MAX}.",
        [],
        glob=_TEXT,
        max={"type": "integer"},
    ),
    _spec(
        "readFiles",
        "Contents of files; 'range' is [first line, last line].",
        ["files"],
        files={"type": "array", "items": _TEXT},
        range={"type": "array", "items": {"type": "integer"}},
    ),
    _spec(
        "search",
        "Lines that contain 'pattern', with their numbers.",
        ["pattern"],
        pattern=_TEXT,
        regex={"type": "boolean"},
        glob=_TEXT,
        max={"type": "integer"},
    ),
    _spec("createFile", "A new file; fails if it exists.", ["path", "content"], path=_TEXT, content=_TEXT),
    _spec(
        "editFile",
        "Changes a file that you have read: 'search' (an exact piece of it that occurs once, with whole lines around "
        "it) is replaced by 'replace'; 'all' replaces every place. 'edits' makes several such changes, all or none. Or "
        "the whole new 'content', or a unified 'diff'.",
        ["path"],
        path=_TEXT,
        search=_TEXT,
        replace=_TEXT,
        all={"type": "boolean"},
        edits={"type": "array", "items": _EDIT},
        content=_TEXT,
        diff=_TEXT,
    ),
    _spec(
        "runCommand",
        "Runs a shell line (or a list of arguments) and waits for it.",
        ["command"],
        command={"type": ["string", "array"], "items": _TEXT},
        cwd=_TEXT,
        timeout={"type": "number"},
    ),
]
