"""Search and replace in a text, as models edit files: the piece must be there exactly, and once, or nothing changes."""

import difflib
from collections.abc import Iterator

from portico.errors import BadRequest

PLACES_SHOWN = 5
"""Where an ambiguous piece occurs; more would not help."""
SIMILAR = 0.6
"""How like a line must be to be the one that was meant."""


def replace(text: str, search: str, replacement: str) -> str:
    """Fails loudly: no place, or more than one, is an error that says where it may have been meant."""
    if not search:
        raise BadRequest("'search' is empty: give the text to be replaced.", field="search")
    lines = list(_lines(text, search))
    if len(lines) == 1:
        return text.replace(search, replacement, 1)
    if lines:
        where = ", ".join(map(str, lines[:PLACES_SHOWN]))
        raise BadRequest(
            f"'search' occurs {len(lines)} times (lines {where}): take more lines around it, so that it occurs once.",
            field="search",
        )
    hint = _nearest(text, search)
    raise BadRequest(f"'search' does not occur in the file, character for character. {hint}", field="search")


def _lines(text: str, search: str) -> Iterator[int]:
    """The number of the line in which each place begins."""
    at = text.find(search)
    while at >= 0:
        yield text.count("\n", 0, at) + 1
        at = text.find(search, at + len(search))


def _nearest(text: str, search: str) -> str:
    """The line that its first line may mean."""
    first = next((line for line in search.splitlines() if line.strip()), search)
    lines = text.splitlines()
    near = difflib.get_close_matches(first.strip(), [line.strip() for line in lines], n=1, cutoff=SIMILAR)
    if not near:
        return "Read the file again."
    number = next(index for index, line in enumerate(lines, 1) if line.strip() == near[0])
    return f"The nearest line is {number}: {lines[number - 1]!r}."
