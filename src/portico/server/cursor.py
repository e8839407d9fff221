"""The wire format of a cursor: `NUMBER.EPOCH`, the last number that the reader has seen and the epoch of the log.

A number without an epoch (the format of 0.1.0) counts as a cursor of this log. A cursor of another log, or beyond the
end of this one, is refused, and the reader takes a snapshot.
"""

import re

from portico.kernel.errors import BadRequest, CursorLost
from portico.kernel.log.log import Log

_CURSOR = re.compile(r"(\d{1,18})(?:-(\d{1,9}))?(?:\.([0-9a-f]{8}))?", re.ASCII)


def read_cursor(text: str, log: Log, head: int) -> tuple[int, int]:
    """Return the number, and how many pieces of the next record were seen (`NUMBER-PIECES`)."""
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
