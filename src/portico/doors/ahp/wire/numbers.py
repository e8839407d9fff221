"""The numbers on the wire. `serverSeq` comes from the log, so it continues after a restart and replay needs no buffer.

One record of the log may become several actions, and a client must be able to reconnect between any two of them. So
the record `seq` owns the numbers `seq * SPAN ... seq * SPAN + SPAN - 1`: the first `SHARED` for its actions, each kind
of action at a fixed offset; the others for actions that only one client receives after that record (a rejection, the
echo of an action that changed nothing). The numbers on a connection always increase, so `> lastSeen` is correct.
"""

from typing import NamedTuple

SPAN = 65_536
"""Numbers of one record: 2**53, the largest number every client can hold, is then a hundred billion records away, and a
client can be refused 65,000 times before anything else happens on the host."""
SHARED = 512
"""Numbers for the actions that all subscribers receive."""
FOREIGN = 2**53
"""A number that this host never assigned: a client that has seen it gets a snapshot."""


class ReadMark(NamedTuple):
    """A client's position: the last record it has seen in part or in full, and the last number within it."""

    seq: int
    subscription: int


def number(seq: int, subscription: int) -> int:
    return seq * SPAN + subscription


def through(seq: int) -> int:
    """The number that covers everything up to and including this record."""
    return seq * SPAN + SHARED - 1


def mark(server_seq: int) -> ReadMark:
    return ReadMark(*divmod(server_seq, SPAN))
