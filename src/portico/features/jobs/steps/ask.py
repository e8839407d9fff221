"""A question to a person, with what they need to decide."""

import base64
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from portico.features.jobs.entry import ANSWER
from portico.features.jobs.evidence import DIFF_CHARS, PICTURE_BYTES, PICTURE_TYPES
from portico.features.jobs.judge_check import value_of
from portico.features.jobs.step import AskDo, FlowStep
from portico.features.jobs.step_values import StepValues
from portico.features.jobs.steps.outcome import StepOutcome
from portico.features.jobs.task_sessions import TaskSessions
from portico.features.jobs.workflow.template import text_of
from portico.features.secrets.mask import Mask
from portico.kernel.events import Json
from portico.kernel.question import Asking
from portico.workspace.git import call

SHOWN_CHARS = 20_000
"""Of one value that is shown with a question."""
_FILE = "file:"


async def run(
    step: FlowStep, values: StepValues, sessions: TaskSessions, title: str, diff: Callable[[], Awaitable[str]]
) -> StepOutcome:
    do = step.do
    assert isinstance(do, AskDo)
    choices = [values.mask.text(values.text(each)) for each in do.choices]

    async def asking() -> Asking:
        shown = [await _shown(each, values, diff) for each in do.show]
        return Asking(values.mask.text(values.text(do.question)), _fields(choices), None, do.people, shown)

    try:
        answer = await sessions.ask_person(title, asking, do.expires)
    except TimeoutError:
        return StepOutcome(False, f"Nobody answered within {do.expires:g} seconds.")
    if answer.response != "accept":
        return StepOutcome(False, "The question was declined.")
    text = value_of(answer, ANSWER)
    return StepOutcome(True, f"Answer: {text}", output=text, answer=text)


def _fields(choices: list[str]) -> list[Json]:
    if not choices:
        return []
    options = [{"id": label, "label": label} for label in choices]
    return [{"id": ANSWER, "kind": "single-select", "message": "Choose", "required": True, "options": options}]


async def _shown(what: str, values: StepValues, diff: Callable[[], Awaitable[str]]) -> Json:
    if what == "changes":
        text = values.mask.text(await diff())
        return {"type": "diff", "title": "What was changed", "text": text[:DIFF_CHARS] or "Nothing was changed."}
    if what.startswith(_FILE):
        return _file(values.text(what.removeprefix(_FILE)), Path(values.cwd), values.mask)
    value: Any = values.value(what)
    title = values.mask.text(what.strip().removeprefix("{{").removesuffix("}}").strip())
    return {"type": "text", "title": title[:80], "text": values.mask.text(text_of(value))[:SHOWN_CHARS]}


def _file(name: str, folder: Path, mask: Mask) -> Json:
    """A file of the folder: a picture, or the beginning of its text."""
    path = (folder / name).resolve()
    name = mask.text(name)
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        return {"type": "text", "title": name, "text": "There is no such file in the folder."}
    kind = PICTURE_TYPES.get(path.suffix.lower())
    if kind is not None and path.stat().st_size <= PICTURE_BYTES:
        data = base64.b64encode(path.read_bytes()).decode()
        return {"type": "image", "title": name, "data": data, "mimeType": kind}
    with path.open("rb") as source:
        stream = mask.stream()
        found = stream.feed(source.read(SHOWN_CHARS))
        found += b"" if source.read(1) else stream.close()  # the beginning of a value that is cut off is not shown
    return {"type": "text", "title": name, "text": found.decode("utf-8", "replace")}


async def diff_of(folder: str, since: str = "HEAD") -> str:
    """What differs from a commit in a git work tree; empty elsewhere."""
    options = ("--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")
    done = await call(Path(folder), "diff", *options, since)
    return done.data.decode("utf-8", "replace") if done.code == 0 else ""
