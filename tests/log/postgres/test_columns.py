"""The columns of a batch: positions of a host's own channels, places for those that the database gives, and back."""

import pytest

from portico.cluster.postgres.columns import event_columns, heads_of, numbers
from tests.log.events import fact

IDS = {"session/a": 3, "session/b": 5, "host": 7, "job/1": 9}
HEADS = {"session/a": 4, "session/b": 0}


@pytest.mark.parametrize(
    ("channels", "positions", "shared"),
    [
        ([], [], []),
        (["session/a"], [5], []),
        (["session/b", "session/b"], [1, 2], []),
        (["session/a", "session/b", "session/a"], [5, 1, 6], []),
        (["host", "host"], [-1, -2], [7]),
        (["host", "session/a", "job/1", "host", "session/a"], [-1, 5, -1, -2, 6], [7, 9]),
    ],
)
def test_positions_are_given_here_or_by_the_database(
    channels: list[str], positions: list[int], shared: list[int]
) -> None:
    events = [(channel, fact(channel), b"{}") for channel in channels]
    columns, common = event_columns(events, IDS, HEADS.get, 0)
    assert (columns[0], columns[1], common) == ([IDS[channel] for channel in channels], positions, shared)
    # The database has `host` at 20 and `job/1` at 2: its answer, and what is found of it when the answer was lost.
    heads = [{7: 20, 9: 2}[ident] for ident in shared]
    placed = numbers(columns[1], columns[0], common, 100, heads)
    assert [seq for seq, _ in placed] == list(range(101 - len(channels), 101))
    given = {7: 20, 9: 2}
    assert [pos for _, pos in placed] == [
        given[ident] - pos if pos < 0 else pos for ident, pos in zip(columns[0], positions, strict=True)
    ]
    assert heads_of([pos for _, pos in placed], columns[0], columns[1], common) == heads
