"""Encodes a batch as the columns that `append_batch` takes, and decodes the numbers that it returns."""

from collections.abc import Callable
from typing import Any

from portico.cluster.postgres.store import stored_sum
from portico.cluster.postgres.text import to_text
from portico.kernel.events import Channel, Event
from portico.kernel.log.notes import KeyValue
from portico.kernel.log.pending import compactable_part
from portico.kernel.log.sqlite.checksum import kv_sum
from portico.kernel.log.sqlite.schema import blobs_in

EventRow = tuple[Channel, Event, bytes]


def event_columns(
    events: list[EventRow], ids: dict[Channel, int], head: Callable[[Channel], int | None], salt: int
) -> tuple[list[Any], list[int]]:
    """Return the columns of the rows, and the channels whose positions the database assigns (they have no head here):
    those are counted from -1 downwards."""
    heads: dict[Channel, int] = {}
    shared: dict[Channel, int] = {}
    positions = []
    for channel, _, _ in events:
        known = heads.get(channel) or head(channel)
        counted, step = (shared, -1) if known is None else (heads, 1)
        counted[channel] = (known or counted.get(channel, 0)) + step
        positions.append(counted[channel])
    numbers = [ids[channel] for channel, _, _ in events]
    sums = [stored_sum(salt, ids[channel], data) for channel, _, data in events]
    deltas = [compactable_part(event) is not None for _, event, _ in events]
    common = [ids[channel] for channel in shared]
    return [numbers, positions, deltas, sums, [data for _, _, data in events], common], common


def heads_of(found: list[int], channels: list[int], positions: list[int], shared: list[int]) -> list[int]:
    """Compute the heads of the shared channels of a batch whose answer was lost, from the positions of its rows."""
    rows = zip(found, channels, positions, strict=True)
    heads = {channel: pos + relative for pos, channel, relative in rows if relative < 0}
    return [heads[channel] for channel in shared]


def note_columns(values: list[KeyValue], ids: dict[Channel, int]) -> list[list[Any]]:
    """Return the columns of the notes; the later of two notes with the same key is used."""
    last = {(ids[value.channel], value.key): value.data for value in values}
    sums = [kv_sum(channel, key, data) if data is not None else None for (channel, key), data in last.items()]
    return [[channel for channel, _ in last], [to_text(key) for _, key in last], sums, list(last.values())]


def blob_users(events: list[EventRow], ids: dict[Channel, int]) -> list[list[Any]]:
    """Return the columns of channels and the blobs that they reference."""
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
