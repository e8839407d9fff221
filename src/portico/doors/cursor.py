"""A reader's cursor on the wire: `NUMBER.EPOCH`, the last number it has seen and the log that it counts in.

A number alone (as 0.1.0 gave them) is taken for one of this log. A cursor of another log, or beyond the end of this
one, points at nothing that its reader has seen: it is refused, and the reader takes a snapshot.
"""

import re

from portico.errors import BadRequest, CursorLost
from portico.log.log import Log

_CURSOR = re.compile(r"(\d{1,18})(?:-(\d{1,9}))?(?:\.([0-9a-f]{8}))?", re.ASCII)


def read_cursor(text: str, log: Log, head: int) -> tuple[int, int]:
    """The number, and how many pieces of the record behind it were seen (`NUMBER-PIECES`)."""
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise BadRequest(f"A cursor is a number, not {text!r}.", field="after")
    number, pieces, epoch = int(found[1]), int(found[2] or 0), found[3]
    if number > head or (epoch is not None and epoch != log.epoch):
        why = "beyond the end of this log" if number > head else "of another log"
        raise CursorLost(
            f"The cursor {text!r} is {why}. Read the state again and go on from its position.", field="after"
        )
    return number, pieces
