"""Search and replace in a text, as models edit files: one place that is meant without doubt, or nothing changes."""

import difflib
from collections.abc import Iterator
from typing import NamedTuple

from portico.kernel.errors import BadRequest

PLACES_SHOWN = 5
"""Where an ambiguous piece occurs; more would not help."""
SIMILAR = 0.6
"""How like a line must be to be the one that was meant."""
BLOCK_LINES = 15
"""Of the nearest block that an error shows."""
LINES_MAX = 50_000
"""Of a file in which a block is looked for that is not there exactly."""


class Replaced(NamedTuple):
    text: str
    note: str = ""
    """What was different in the file, where the piece was not there exactly."""
    places: int = 1


def replace(text: str, search: str, replacement: str) -> str:
    return replace_one(text, search, replacement).text


def replace_one(text: str, search: str, replacement: str, every: bool = False) -> Replaced:
    """Replace `search`: try an exact match, then ignore whitespace at line ends, then indentation. No match or several
    are an error that lists possible places; `every` replaces all exact matches."""
    if not search:
        raise BadRequest("'search' is empty: give the text to be replaced.", field="search")
    lines = list(_lines(text, search))
    if every and lines:
        return Replaced(text.replace(search, replacement), places=len(lines))
    if len(lines) == 1:
        return Replaced(text.replace(search, replacement, 1))
    if lines:
        where = ", ".join(map(str, lines[:PLACES_SHOWN]))
        raise BadRequest(
            f"'search' occurs {len(lines)} times (lines {where}): take more lines around it, so that it occurs once, "
            "or set 'all' to replace every one.",
            field="search",
        )
    found = _tolerant(text, search, replacement)
    if found is not None:
        return found
    hint = _nearest(text, search)
    raise BadRequest(f"'search' does not occur in the file, character for character. {hint}", field="search")


def _lines(text: str, search: str) -> Iterator[int]:
    """The number of the line in which each place begins."""
    at = text.find(search)
    while at >= 0:
        yield text.count("\n", 0, at) + 1
        at = text.find(search, at + len(search))


# -- whitespace ------------------------------------------------------------------------------------------------


def _tolerant(text: str, search: str, replacement: str) -> Replaced | None:
    wanted = search.strip("\n").split("\n")
    lines = text.split("\n")
    if not any(line.strip() for line in wanted) or len(lines) > LINES_MAX:
        return None
    ends = _places([line.rstrip() for line in lines], [line.rstrip() for line in wanted])
    if len(ends) == 1:
        made = _swap(lines, ends[0], len(wanted), _body(search, replacement))
        return Replaced(made, f"line {ends[0] + 1}: whitespace at the ends of lines differs from 'search'")
    if ends:
        return None
    bare = _places([line.strip() for line in lines], [line.strip() for line in wanted])
    if len(bare) != 1:
        return None
    shift = _shift(wanted, lines[bare[0] : bare[0] + len(wanted)])
    if shift is None:
        return None
    body = [_indented(line, *shift) for line in _body(search, replacement)]
    made = _swap(lines, bare[0], len(wanted), body)
    return Replaced(
        made, f"line {bare[0] + 1}: the indentation differs from 'search'; 'replace' was indented like the file"
    )


def _places(lines: list[str], wanted: list[str]) -> list[int]:
    first, size = wanted[0], len(wanted)
    return [at for at, line in enumerate(lines) if line == first and lines[at : at + size] == wanted]


def _body(search: str, replacement: str) -> list[str]:
    """The lines that take the place; newlines around both count as around neither."""
    before, after = len(search) - len(search.lstrip("\n")), len(search) - len(search.rstrip("\n"))
    for _ in range(before):
        replacement = replacement.removeprefix("\n")
    for _ in range(after):
        replacement = replacement.removesuffix("\n")
    return replacement.split("\n") if replacement else []


def _swap(lines: list[str], at: int, size: int, body: list[str]) -> str:
    return "\n".join([*lines[:at], *body, *lines[at + size :]])


def _shift(wanted: list[str], found: list[str]) -> tuple[str, str] | None:
    """The indentation that 'search' has and the file has instead; None when it is not the same for all lines."""
    pairs = [(_indent(a), _indent(b)) for a, b in zip(wanted, found, strict=True) if a.strip()]
    ours, theirs = min(pairs, key=lambda pair: len(pair[0]))
    fits = all(a.startswith(ours) and b == theirs + a[len(ours) :] for a, b in pairs)
    return (ours, theirs) if fits else None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _indented(line: str, ours: str, theirs: str) -> str:
    return theirs + line.removeprefix(ours) if line.strip() else line


# -- hints -----------------------------------------------------------------------------------------------------


def _nearest(text: str, search: str) -> str:
    """The block that may have been meant."""
    lines = text.splitlines()
    wanted = search.strip("\n").splitlines() or [search]
    start = _block(lines, wanted) if len(lines) <= LINES_MAX else None
    if start is None:
        return "Read the file again."
    if len(wanted) == 1:
        return f"The nearest line is {start + 1}: {lines[start]!r}."
    shown = lines[start : start + min(len(wanted), BLOCK_LINES)]
    block = "\n".join(shown)
    return f"The nearest block is in lines {start + 1} to {start + len(shown)}:\n{block}"


def _block(lines: list[str], wanted: list[str]) -> int | None:
    """Where most lines are the same; else where the first line is similar."""
    bare, sought = [line.strip() for line in lines], [line.strip() for line in wanted]
    places: dict[str, list[int]] = {}
    for at, line in enumerate(bare):
        places.setdefault(line, []).append(at)
    scores: dict[int, int] = {}
    for offset, line in enumerate(sought):
        for at in places.get(line, [])[:200] if line else []:
            scores[at - offset] = scores.get(at - offset, 0) + 1
    if scores:
        best = max(scores, key=lambda at: (scores[at], -at))
        if scores[best] > 1 or len(sought) == 1:
            return max(0, best)
    first = next((line for line in sought if line), sought[0])
    near = difflib.get_close_matches(first, bare, n=1, cutoff=SIMILAR)
    return max(0, bare.index(near[0]) - sought.index(first)) if near else None
