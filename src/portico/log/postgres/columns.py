"""A batch as the columns that `append_batch` takes, and the numbers that come back."""

from typing import Any

from portico.events import Channel, Event
from portico.log.notes import KeyValue
from portico.log.sqlite.checksum import kv_sum
from portico.log.sqlite.schema import blobs_in


def note_columns(values: list[KeyValue], ids: dict[Channel, int]) -> list[list[Any]]:
    """The columns of the notes; of two for one key the later one counts."""
    last = {(ids[value.channel], value.key): value.data for value in values}
    sums = [kv_sum(channel, key, data) if data is not None else None for (channel, key), data in last.items()]
    return [[channel for channel, _ in last], [key for _, key in last], sums, list(last.values())]


def blob_users(events: list[tuple[Channel, Event, bytes]], ids: dict[Channel, int]) -> list[list[Any]]:
    """Which channels refer to which blobs."""
    found = {(ids[channel], digest) for channel, _, data in events if b'"blob":"' in data for digest in blobs_in(data)}
    return [[channel for channel, _ in sorted(found)], [digest for _, digest in sorted(found)]]


def numbers(
    positions: list[int], channels: list[int], shared: list[int], last: int, heads: list[int] | None
) -> list[tuple[int, int]]:
    known = dict(zip(shared, heads or [], strict=True))
    first = last - len(positions) + 1
    return [
        (first + index, known[channel] - pos if pos < 0 else pos)
        for index, (pos, channel) in enumerate(zip(positions, channels, strict=True))
    ]
