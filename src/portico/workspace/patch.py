"""Unified diffs: created for people and approvals, applied for models.

Models count badly, so line numbers and counts in a hunk header are only a hint. Content is never guessed: all context
and removed lines must match exactly, in one place only; otherwise nothing is changed and the error states the reason.
"""

import difflib
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from portico.kernel.errors import BadRequest, Conflict, TooLarge

DIFF_LINES_MAX = 20_000  # the comparison takes quadratic time; above this, the changed middle is one block
PATCH_MAX = 4 * 1024 * 1024  # characters of a diff that is applied
EDITS_MAX = 400  # lines added and removed: time and memory of the shortest edit are quadratic; 50 ms and 10 MB
CONTEXT = 3  # lines, the usual default
PLACES_SHOWN = 5  # matches of an ambiguous hunk that are shown; more would not help
COMPARED_MAX = 10_000_000  # lines compared in search of the hunks of one diff: a tenth of a second
NO_NEWLINE = "\\ No newline at end of file"

_HEAD = re.compile(r"@@(?:\s*-(?P<old>\d+)(?:,\d+)?\s+\+\d+(?:,\d+)?\s*@@.*)?")


class Hunk(Struct):
    """A hunk. `old` and `new` are its lines without line ends; `start` is the line in its header (from 1), or None."""

    start: int | None
    old: list[str]
    new: list[str]
    open_old: bool = False  # the last line has no newline
    open_new: bool = False
    blank: int = 0  # empty lines at its end so far


def diff(old: str, new: str, path: str, *, old_exists: bool = True) -> str:
    """Return the unified diff from `old` to `new`; empty if they are equal."""
    if old == new and old_exists:
        return ""
    before, after = _lines(old), _lines(new)
    source = f"a/{path}" if old_exists else "/dev/null"
    if max(len(before), len(after)) > DIFF_LINES_MAX:
        lines = _coarse(before, after, source, f"b/{path}")
    else:
        lines = [f"--- {source}\n", f"+++ b/{path}\n", *_hunks(before, after)]
    return "".join(line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}\n" for line in lines)


def edit(path: str, old: str | None, new: str) -> dict[str, Any]:
    """Return the content block for a file change of a tool call, with the diff that every client shows and counts."""
    made = diff(old or "", new, path.lstrip("/"), old_exists=old is not None)
    return {"type": "diff", "path": path, "old": old, "new": new, "diff": made}


def counted(diff: str) -> dict[str, int]:
    """Count the added and removed lines."""
    lines = diff.splitlines()
    body = lines[next((at for at, line in enumerate(lines) if line.startswith("@@")), len(lines)) :]
    return {"added": sum(line.startswith("+") for line in body), "removed": sum(line.startswith("-") for line in body)}


def _hunks(before: list[str], after: list[str]) -> Iterator[str]:
    for group in _Matcher(before, after).get_grouped_opcodes(CONTEXT):
        (_, first, _, start, _), (_, _, last, _, end) = group[0], group[-1]
        yield f"@@ -{_range(first, last)} +{_range(start, end)} @@\n"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (" " + line for line in before[i1:i2])
            else:
                yield from ("-" + line for line in before[i1:i2])
                yield from ("+" + line for line in after[j1:j2])


class _Matcher(difflib.SequenceMatcher[str]):
    """Matches the lines that the shortest edit keeps, if one is found. Otherwise very frequent lines are excluded from
    the comparison: with them, two files of 4,000 lines took two seconds."""

    def __init__(self, before: list[str], after: list[str]) -> None:
        super().__init__(None, before, after)
        self._sides = before, after

    def get_matching_blocks(self) -> list[difflib.Match]:
        kept = _kept(*self._sides)
        return super().get_matching_blocks() if kept is None else [difflib.Match(*each) for each in kept]


def _range(start: int, end: int) -> str:
    length = end - start
    return str(start + 1) if length == 1 else f"{start + bool(length)},{length}"


def _kept(before: list[str], after: list[str]) -> list[tuple[int, int, int]] | None:
    """Return the runs of lines that the shortest edit keeps, and an empty one at the end (Myers, "An O(ND) Difference
    Algorithm"): the same number of added and removed lines as in git. None: more than `EDITS_MAX`."""
    reach, ways = {1: 0}, []
    for edits in range(min(len(before) + len(after), EDITS_MAX) + 1):
        ways.append(reach.copy())
        for way in range(-edits, edits + 1, 2):
            down = way == -edits or (way != edits and reach[way - 1] < reach[way + 1])
            at = reach[way + 1] if down else reach[way - 1] + 1
            while at < len(before) and at - way < len(after) and before[at] == after[at - way]:
                at += 1
            reach[way] = at
            if at >= len(before) and at - way >= len(after):
                return _runs(ways, len(before), len(after))
    return None


def _runs(ways: list[dict[int, int]], i: int, j: int) -> list[tuple[int, int, int]]:
    """Trace the edit path backwards and collect the kept lines."""
    found = [(i, j, 0)]
    for edits, reach in reversed(list(enumerate(ways))):
        way = i - j
        down = way == -edits or (way != edits and reach[way - 1] < reach[way + 1])
        start = reach[way + 1] if down else reach[way - 1] + 1
        if i > start:
            found.append((start, start - way, i - start))
        i, j = (start, start - way - 1) if down else (start - 1, start - way)
    return found[::-1]


def _lines(text: str) -> list[str]:
    """Split text only at newlines; `splitlines` also splits at form feeds and similar characters."""
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _coarse(before: list[str], after: list[str], source: str, target: str) -> list[str]:
    same = 0
    while same < min(len(before), len(after)) and before[same] == after[same]:
        same += 1
    tail = 0
    while tail < min(len(before), len(after)) - same and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    removed, added = before[same : len(before) - tail], after[same : len(after) - tail]
    lead, trail = before[max(0, same - CONTEXT) : same], before[len(before) - tail :][:CONTEXT]
    first = same - len(lead) + 1
    around = len(lead) + len(trail)
    head = f"@@ -{first},{len(removed) + around} +{first},{len(added) + around} @@\n"
    body = [*(" " + line for line in lead), *("-" + line for line in removed)]
    return [
        f"--- {source}\n",
        f"+++ {target}\n",
        head,
        *body,
        *("+" + line for line in added),
        *(" " + x for x in trail),
    ]


def apply(text: str, patch: str) -> str:
    """Return `text` with the diff applied, completely or not at all."""
    if len(patch) > PATCH_MAX:
        raise TooLarge(f"The diff has {len(patch)} characters; {PATCH_MAX} is the limit.")
    hunks = parse(patch)
    try:
        return _apply(text, hunks, "\n")
    except Conflict:
        # Models do not see carriage returns. In a file that has them on every line they are implied.
        if "\r\n" not in text or "\n" in text.replace("\r\n", ""):
            raise
        return _apply(text, [_without_returns(hunk) for hunk in hunks], "\r\n")


def _apply(text: str, hunks: list[Hunk], end: str) -> str:
    lines = text.split(end)
    ended = lines[-1] == ""
    if ended:
        lines.pop()
    result: list[str] = []
    done = 0
    finder = _Finder(lines)
    for number, hunk in enumerate(hunks, 1):
        at = _locate(finder, hunk, done, number)
        result += lines[done:at] + hunk.new
        done = at + len(hunk.old)
        if done == len(lines) and (hunk.open_old or hunk.open_new):
            ended = not hunk.open_new
    result += lines[done:]
    return end.join(result) + (end if ended and result else "")


def parse(patch: str) -> list[Hunk]:
    """Parse the hunks of a one-file diff. File headers, git's extra lines and an enclosing code fence are skipped."""
    reader = _Reader(patch)
    reader.run()
    if reader.files > 1:
        raise BadRequest("The diff is for more than one file; send one call per file.", field="diff")
    if not any(hunk.old != hunk.new or hunk.open_old != hunk.open_new for hunk in reader.hunks):
        raise BadRequest("The diff changes nothing: it needs '@@' hunks with '+' or '-' lines.", field="diff")
    return reader.hunks


class _Reader:
    def __init__(self, patch: str) -> None:
        self.lines = patch.removesuffix("\n").split("\n")
        if all(line.endswith("\r") for line in self.lines if line):
            self.lines = [line.removesuffix("\r") for line in self.lines]
        self.hunks: list[Hunk] = []
        self.files = 0
        self.sign = ""  # of the previous line, to which "no newline" refers

    def run(self) -> None:
        skip = 0
        for index, line in enumerate(self.lines):
            head = _HEAD.fullmatch(line.rstrip())
            if skip:
                skip -= 1
            elif self.is_file_head(index):
                self.files += 1
                skip = 1
            elif head:
                self.trim()
                self.hunks.append(Hunk(int(head["old"]) if head["old"] else None, [], []))
            elif self.hunks:
                self.take(self.hunks[-1], line)
        self.trim()

    def is_file_head(self, index: int) -> bool:
        """Detect a file header, also inside a hunk, where a removed `-- x` and an added `++ y` look like one: but no
        `@@` follows those."""
        here = [*self.lines[index : index + 3], "", ""]
        if not (here[0].startswith("--- ") and here[1].startswith("+++ ")):
            return False
        return not self.hunks or here[2].startswith("@@")

    def take(self, hunk: Hunk, line: str) -> None:
        sign, rest = line[:1], line[1:]
        if line == NO_NEWLINE:
            hunk.open_old = hunk.open_old or self.sign in ("-", " ")
            hunk.open_new = hunk.open_new or self.sign in ("+", " ")
            return
        if sign not in ("+", "-", " ", ""):
            if not line.startswith(("diff ", "index ", "```")):
                raise BadRequest(f"A line of a hunk starts with ' ', '+' or '-', not with {line[:20]!r}.", field="diff")
            return
        self.sign = sign
        if sign != "+":
            hunk.old.append(rest)
        if sign != "-":
            hunk.new.append(rest)
        hunk.blank = hunk.blank + 1 if sign == "" else 0

    def trim(self) -> None:
        """Drop blank lines at the end of a hunk that lack the space of a context line: they are separators."""
        if self.hunks and self.hunks[-1].blank:
            hunk = self.hunks[-1]
            del hunk.old[-hunk.blank :], hunk.new[-hunk.blank :]


def _without_returns(hunk: Hunk) -> Hunk:
    return Hunk(
        hunk.start,
        [line.removesuffix("\r") for line in hunk.old],
        [line.removesuffix("\r") for line in hunk.new],
        hunk.open_old,
        hunk.open_new,
    )


class _Finder:
    """Finds lines in a file. A hunk of very frequent lines could take hours, so the search is bounded."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self._places: dict[str, list[int]] = {}
        self._compared = 0

    def find(self, wanted: list[str], start: int) -> list[int]:
        """Return the positions from `start` on that match all these lines, at most one more than are shown."""
        index = self._index()
        # Search by the rarest line: usually it has only one position.
        rarest = min(range(len(wanted)), key=lambda at: len(index.get(wanted[at], ())))
        places = index.get(wanted[rarest], [])
        found: list[int] = []
        for at in places[bisect_left(places, start + rarest) :]:
            self._compared += len(wanted)
            if self._compared > COMPARED_MAX:
                raise Conflict("The diff could fit too many places. Give the right line numbers.", field="diff")
            if self.lines[at - rarest : at - rarest + len(wanted)] == wanted:
                found.append(at - rarest)
                if len(found) > PLACES_SHOWN:
                    break
        return found

    def _index(self) -> dict[str, list[int]]:
        if not self._places:
            for at, line in enumerate(self.lines):
                self._places.setdefault(line, []).append(at)
        return self._places


def _locate(finder: _Finder, hunk: Hunk, done: int, number: int) -> int:
    """Find the hunk's old lines from `done` on: at the line in its header, or at the only other match."""
    lines, size = finder.lines, len(hunk.old)
    if not size:
        if hunk.start is None and lines:
            raise Conflict(f"Hunk {number} only adds lines and does not say where. Give context lines.", field="diff")
        # Only additions: by convention the number is the line after which they are inserted.
        return max(done, min(hunk.start or 0, len(lines)))
    said = (hunk.start or 0) - 1
    if said >= done and lines[said : said + size] == hunk.old:
        return said
    places = finder.find(hunk.old, done)
    if len(places) == 1:
        return places[0]
    if places:
        shown = ", ".join(str(at + 1) for at in places[:PLACES_SHOWN])
        more = " and more" if len(places) > PLACES_SHOWN else ""
        raise Conflict(
            f"Hunk {number} fits several places (lines {shown}{more}). "
            "Give more context lines, or the right line number.",
            field="diff",
        )
    raise Conflict(f"Hunk {number} does not fit: {_nearest(lines, hunk)} Read the file again.", field="diff")


def _nearest(lines: list[str], hunk: Hunk) -> str:
    """Return the first line of the hunk that is missing in the file, as a hint for the next try."""
    known = set(lines)
    missing = next((line for line in hunk.old if line not in known), None)
    if missing is not None:
        return f"the file has no line {missing!r}."
    return "its lines are in the file, but not next to each other in this order."
