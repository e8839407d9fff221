"""The evidence for a person who reviews a task: its diff, the output of the checks, its pictures."""

import asyncio
import base64
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from portico.features.jobs.check import Changes, Checked
from portico.kernel.errors import PorticoError
from portico.kernel.events import Json
from portico.kernel.session import Session
from portico.kernel.state import CallPart

CHANGED_LINES = 50
"""Maximum number of changed files named in the question; the diff contains all of them."""
DIFF_CHARS = 20_000
"""Maximum size of the diff: some 400 lines. The session page shows the rest."""
PICTURES = 4
PICTURE_BYTES = 256 * 1024
"""Maximum size of one picture, because pictures are stored in the log. Of a larger one, only the name is given."""
PICTURE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}


def named(question: str, changes: Changes) -> str:
    """The question with the names of the changed files, for doors that show only the text."""
    lines = [f"- {path} ({count} lines)" for path, count in changes.items()][:CHANGED_LINES]
    return "\n".join([question, *(["", "Changed files:", *lines] if lines else [])])


async def evidence(sessions: Sequence[Session], cwd: str, changes: Changes, checks: Iterable[Checked]) -> list[Json]:
    diff = await _diff(sessions) if changes else ""
    shown: list[Json] = [{"type": "diff", "title": "What was changed", "text": diff}] if diff else []
    shown += [{"type": "text", "title": each.reason.partition("\n")[0], "text": each.output} for each in checks]
    files = [path for path in changes if Path(path).suffix.lower() in PICTURE_TYPES]
    pictures = await asyncio.to_thread(_pictures, Path(cwd), files)
    return [*shown, *[*pictures, *_told(sessions)][:PICTURES]]


async def _diff(sessions: Sequence[Session]) -> str:
    found = []
    for session in sessions:
        try:
            found.append(await session.diff())
        except PorticoError as error:
            found.append(f"{error.message}\n")
    text = "".join(found)
    return cut_lines(text, DIFF_CHARS)


def cut_lines(text: str, chars: int) -> str:
    """The first lines of a text. It is masked later: no part of a secret is left at the cut."""
    if len(text) <= chars:
        return text
    kept, _, _ = text[:chars].rpartition("\n")
    return f"{kept}\n[... cut after {chars} characters ...]\n"


def _pictures(folder: Path, names: list[str]) -> list[Json]:
    """Pictures that the task created or changed; links are not followed."""
    found: list[Json] = []
    for name in names[:PICTURES]:
        path = folder / name
        if path.is_symlink() or not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
            continue
        size = os.path.getsize(path)
        if size > PICTURE_BYTES:
            found.append({"type": "text", "title": name, "text": f"A picture of {size} bytes, too large to show here."})
        else:
            found.append(
                _picture(name, base64.b64encode(path.read_bytes()).decode(), PICTURE_TYPES[path.suffix.lower()])
            )
    return found


def _told(sessions: Sequence[Session]) -> list[Json]:
    """Pictures that tools returned to the agent in its last turn, such as screenshots."""
    parts = [part for session in sessions if session.loaded for turn in session.state.turns[-1:] for part in turn.parts]
    content = [each for part in parts if isinstance(part, CallPart) for each in part.content]
    return [
        _picture("A picture that the agent saw", data, str(each["mimeType"]))
        for each in content
        if each.get("type") == "image" and each.get("mimeType") in PICTURE_TYPES.values()
        if isinstance(data := each.get("data"), str) and len(data) * 3 // 4 <= PICTURE_BYTES
    ]


def _picture(title: str, data: str, kind: str) -> Json:
    return {"type": "image", "title": title, "data": data, "mimeType": kind}
