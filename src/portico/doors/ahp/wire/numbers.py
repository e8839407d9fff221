"""The numbers on the wire. `serverSeq` comes from the log, so it goes on after a restart and replay needs no buffer.

One record of the log may become several actions, and a client must be able to come back between any two of them. So
the record `seq` owns the numbers `seq * SPAN ... seq * SPAN + SPAN - 1`: the first `SHARED` for its actions, each kind
of action at its fixed place; the others for what one client alone hears after that record (a rejection, the echo of an
action that changed nothing). All numbers a connection sees rise, and `> lastSeen` always means the right thing.
"""

from typing import NamedTuple

SPAN = 65_536
"""Numbers of one record: 2**53, the largest number every client can hold, is then a hundred billion records away, and a
client can be refused 65,000 times before anything else happens on the host."""
SHARED = 512
"""Places for actions that everybody sees."""
FOREIGN = 2**53
"""A number that this host has never given: whoever has seen it gets a snapshot."""


class ReadMark(NamedTuple):
    """A client's position: the record it has seen something of, and the last place within it."""

    seq: int
    subscription: int


def number(seq: int, subscription: int) -> int:
    return seq * SPAN + subscription


def through(seq: int) -> int:
    """The number that says: everything up to and with this record."""
    return seq * SPAN + SHARED - 1


def mark(server_seq: int) -> ReadMark:
    return ReadMark(*divmod(server_seq, SPAN))
