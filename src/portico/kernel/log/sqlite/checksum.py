"""Checksums of stored data: a flipped bit on the disk is detected and not delivered."""

from zlib import crc32


def event_sum(salt: int, seq: int, channel: int, pos: int, time: int, data: bytes) -> int:
    """Over the event and its place in its log: a row that took another's place, or came from another log with its
    write-ahead log, is noticed too."""
    return crc32(data, salt ^ seq * 31 ^ pos * 8191 ^ channel << 20 ^ time)  # it takes the lower 32 bits


def kv_sum(channel: int, key: str, data: bytes) -> int:
    return crc32(data, crc32(key.encode(), channel))


def channel_sum(ident: int, name: str, pos: int) -> int:
    return crc32(f"{ident} {name} {pos}".encode())
