"""The content of a call named `plan`: a Markdown checklist, which every door and the pages show as a plan."""

import re
from collections.abc import Iterable, Sequence

from portico.events import Json

TOOL = "plan"
_MARKS = {"completed": "x", "in_progress": "~"}
_STATES = {"x": "completed", "~": "in_progress"}
_LINE = re.compile(r"- \[(.)\] (.*)")


def plan_content(steps: Iterable[tuple[str, str]]) -> list[Json]:
    """`steps`: each text with its status in the terms of ACP (`pending`, `in_progress`, `completed`)."""
    lines = [f"- [{_MARKS.get(status, ' ')}] {' '.join(text.split())}" for text, status in steps]
    return [{"type": "text", "text": "\n".join(lines)}]


def plan_steps(content: Sequence[Json]) -> list[tuple[str, str]]:
    """The steps of such a content."""
    text = "\n".join(str(each.get("text")) for each in content if each.get("type") == "text")
    return [(words, _STATES.get(mark, "pending")) for mark, words in _LINE.findall(text)]
