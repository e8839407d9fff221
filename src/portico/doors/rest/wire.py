"""A record on the wire of the REST door."""

from portico.events import Record


def wire(record: Record) -> bytes:
    """The record as JSON, around the bytes that are on disk."""
    return b'{"seq":%d,"channel":"%s","pos":%d,"time":%d,"event":%s}' % (
        record.seq,
        record.channel.encode(),
        record.pos,
        record.time,
        record.data,
    )
