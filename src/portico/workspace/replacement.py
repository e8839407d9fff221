"""Search and replace in a text, as models edit files: one place that is meant without doubt, or nothing changes."""

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from portico.kernel.errors import BadRequest

PLACES_SHOWN = 5
"""Where an ambiguous piece occurs; more would not help."""
SIMILAR = 0.6
"""How like a line must be to be the one that was meant."""
BLOCK_LINES = 15
"""Of the nearest block that an error shows."""
TAB_SIZES = (4, 2, 8, 3)
"""Spaces of one level where the file has tabs, or the other way round."""
SIGNS_MAX = 128 * 1024
"""Characters of a file in which signs of another form are looked for: a tenth of a second."""
LINES_MAX = 50_000
"""Of a file in which a block is looked for that is not there exactly."""


BOM = "\ufeff"


class Replaced(NamedTuple):
    text: str
    note: str = ""
    """What was different in the file, where the piece was not there exactly."""
    places: int = 1


def replace(text: str, search: str, replacement: str) -> str:
    return replace_one(text, search, replacement).text


def replace_one(text: str, search: str, replacement: str, every: bool = False) -> Replaced:
    """Replace `search`: try an exact match, then ignore whitespace at line ends, then indentation, then how signs are
    written (quotes, spaces, composed letters). No match or several are an error that lists possible places; `every`
    replaces all matches."""
    search = search.removeprefix(BOM)
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
    found = _tolerant(text, search, replacement) or _similar_signs(text, search, replacement, every)
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
    body = [shift(line) for line in _body(search, replacement)]
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


def _shift(wanted: list[str], found: list[str]) -> Callable[[str], str] | None:
    """How a line gets the indentation of the file; None when it is not the same change for all lines."""
    pairs = [(_indent(a), _indent(b)) for a, b in zip(wanted, found, strict=True) if a.strip()]
    ours, theirs = min(pairs, key=lambda pair: len(pair[0]))
    if not all(a.startswith(ours) for a, _ in pairs):
        return None
    deeper = [(a[len(ours) :], b) for a, b in pairs]
    conversions: list[Callable[[str], str]] = [_same]
    conversions += [partial(each, size) for each in (_tabs, _spaces) for size in TAB_SIZES]
    for convert in conversions:
        if all(b == theirs + convert(a) for a, b in deeper):
            return partial(_indented, ours, theirs, convert)
    return None


def _same(indent: str) -> str:
    return indent


def _tabs(size: int, indent: str) -> str:
    """Levels of so many spaces as tabs; what is left stays."""
    levels, rest = divmod(len(indent), size)
    return "\t" * levels + " " * rest if not indent.strip(" ") else indent


def _spaces(size: int, indent: str) -> str:
    return indent.replace("\t", " " * size)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _indented(ours: str, theirs: str, convert: Callable[[str], str], line: str) -> str:
    if not line.strip():
        return line
    indent = _indent(line)
    return theirs + convert(indent.removeprefix(ours)) + line[len(indent) :]


# -- signs -----------------------------------------------------------------------------------------------------

_SIGNS = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2008\u2009\u202f\u205f\u3000", " "),
    **dict.fromkeys("\ufeff\u200b\u2060\u00ad", ""),
    "\u2026": "...",
}
"""Signs that models write in another form than the file has them."""
_UNIT = re.compile(r".[\u0300-\u036f\u1ab0-\u1aff\u20d0-\u20ff\ufe0f]*", re.DOTALL)


class _Folded:
    """A text with one form for each sign, and where its signs are in the text."""

    def __init__(self, text: str) -> None:
        self.source = text
        signs: list[str] = []
        self.starts: list[int] = []
        for unit in _UNIT.finditer(text):
            whole = unit[0]
            for sign in unicodedata.normalize("NFC", _SIGNS.get(whole, whole)):
                signs.append(sign)
                self.starts.append(unit.start())
        self.starts.append(len(text))
        self.text = "".join(signs)

    def places(self, wanted: str) -> list[tuple[int, int]]:
        """The begin and the end of each match in the folded text; a match does not end within a sign of the source."""
        found, at = [], self.text.find(wanted)
        while at >= 0:
            end = at + len(wanted)
            if (at == 0 or self.starts[at] != self.starts[at - 1]) and self.starts[end - 1] != self.starts[end]:
                found.append((at, end))
            at = self.text.find(wanted, end)
        return found

    def between(self, start: int, end: int) -> str:
        return self.source[self.starts[start] : self.starts[end]]


def fold(text: str) -> str:
    """The text with one form for each sign: two texts that look the same are equal."""
    return _Folded(text).text


def _similar_signs(text: str, search: str, replacement: str, every: bool) -> Replaced | None:
    wanted = _Folded(search).text
    if not wanted.strip() or len(text) > SIGNS_MAX or (text.isascii() and search.isascii()):
        return None
    folded = _Folded(text)
    places = folded.places(wanted)
    if not places or (len(places) > 1 and not every):
        return None
    made: list[str] = []
    end = 0
    for start, stop in places:
        made += [folded.between(end, start), _as_in_file(folded, start, wanted, replacement)]
        end = stop
    line = text.count("\n", 0, folded.starts[places[0][0]]) + 1
    note = f"line {line}: quotes, spaces, dashes or accents have another form than in 'search'; they were kept"
    return Replaced("".join([*made, folded.between(end, len(folded.text))]), note, len(places))


def _as_in_file(folded: _Folded, start: int, wanted: str, replacement: str) -> str:
    """The new text; what it has in common with the old one stays as the file has it."""
    new = _Folded(replacement)
    before = 0
    while before < min(len(wanted), len(new.text)) and wanted[before] == new.text[before]:
        before += 1
    after = 0
    while after < min(len(wanted), len(new.text)) - before and wanted[-1 - after] == new.text[-1 - after]:
        after += 1
    middle = new.between(before, len(new.text) - after)
    head = folded.between(start, start + before)
    return head + middle + folded.between(start + len(wanted) - after, start + len(wanted))


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
