"""Foreign text inside Markdown, shown as it is.

The attack: a command, a path or a title that an agent made up is shown on an approval card, and Markdown, HTML or an
invisible character in it makes the person see something else than what will run. So every such text goes through
`escape` before it is put into Markdown, whichever door does it.
"""

import re
import unicodedata
from collections.abc import Iterable

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_SPACES = re.compile(r"^ +| {2,}| +$", re.MULTILINE)
_EMPTY_LINE = re.compile(r"^$", re.MULTILINE)
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
"""Unicode categories of what shows nothing, or something else than itself: controls, formats (zero-width and bidi
characters), surrogates, private and unassigned code points, separators."""
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | frozenset(map(chr, range(0xFE00, 0xFE10)))
"""Letters and marks that show nothing."""
_PADDING = 40
"""Blanks in a row, or empty lines, that can push the rest of a text out of view."""
_PADDED = re.compile(rf"\s{{{_PADDING},}}")


def escape(text: str) -> str:
    """Text that Markdown shows character by character: no markup, no link, no HTML, nothing invisible, and it wraps."""
    text = _PUNCTUATION.sub(r"\\\1", visible(text.replace("\r\n", "\n").replace("\t", "    ")))
    text = _SPACES.sub(_blanks, text)
    return _EMPTY_LINE.sub("&nbsp;", text) if "\n" in text else text


def escape_line(text: str) -> str:
    """The same, in one line: for headings and lists."""
    return escape(" ".join(text.split()))


def visible(text: str) -> str:
    """The text with a name in the place of everything that cannot be seen: `<U+200B>`. Line ends and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"<U+{ord(each):04X}>" if _is_invisible(each) else each for each in text)


def is_disguised(text: str) -> bool:
    """Whether a view that shows text verbatim would still hide something: invisible characters, or a tail far off."""
    return visible(text) != text or _PADDED.search(text) is not None


def _is_invisible(character: str) -> bool:
    if character in " \n\t":
        return False
    return unicodedata.category(character) in _INVISIBLE or character in _BLANK


def _blanks(run: re.Match[str]) -> str:
    """Every other blank is kept by `&nbsp;`, so that a long run can still be wrapped; so are both ends of a line."""
    text, size = run.string, len(run[0])
    kept = set(range(0 if run.start() == 0 or text[run.start() - 1] == "\n" else 1, size, 2))
    if run.end() == len(text) or text[run.end()] == "\n":
        kept.add(size - 1)
    return "".join("&nbsp;" if at in kept else " " for at in range(size))


# -- plans -----------------------------------------------------------------------------------------------------

PLAN = "plan"
"""The tool whose calls show a plan: the content is a checklist, which every door and the pages show as a plan."""
_MARKS = {"completed": "x", "in_progress": "~"}
_STATES = {mark: status for status, mark in _MARKS.items()}
_STEP = re.compile(r"- \[(.)\] (.*)")


def checklist(steps: Iterable[tuple[str, str]]) -> str:
    """Each text with its status in the terms of ACP (`pending`, `in_progress`, `completed`)."""
    return "\n".join(f"- [{_MARKS.get(status, ' ')}] {' '.join(text.split())}" for text, status in steps)


def checklist_steps(text: str) -> list[tuple[str, str]]:
    return [(words, _STATES.get(mark, "pending")) for mark, words in _STEP.findall(text)]
