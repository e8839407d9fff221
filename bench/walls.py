"""Where does the next wall stand, and how is it passed? A simulation: hosts, and databases that commit one at a time.

Every session streams a delta now and then; a host collects what waits for a database and commits it when that database
has no commit of this host in flight (group commit). A database does one commit after another: some milliseconds of work
and flush, and some microseconds for each event, as measured with the real log (docs/decisions/0016). With several
databases a session's channel names its one. Deltas of one session that wait for the same commit become one event.
"""

import heapq
import random
import statistics
from dataclasses import dataclass, field

from bench.row import Row, ms, verdict
from portico.kernel import limits

QUESTION = "the next wall: streaming sessions on one database and on several, to a million sessions (a simulation)"

COMMIT_SECONDS, EVENT_SECONDS = 0.0006, 0.000012
"""Of one commit in the database, and of each event in it: 0.5 ms for one, 0.7 for 10, 1.8 to 2.4 for 100."""
DELTA_SECONDS = 0.05
"""Between two deltas of a session that streams: 20 a second."""
PER_HOST = 400
"""Sessions at work on one host: an agent's process each."""
WORKING = 0.01
"""Of all sessions, those that stream at one moment."""
SECONDS = 3.0
"""Simulated; the first quarter is not counted."""
_DELTA, _ENDED, _CADENCE = range(3)
"""What happens: a session says something, a commit is durable, a host may commit deltas again."""


@dataclass
class Database:
    free_at: float = 0.0
    busy: float = 0.0
    commits: int = 0


@dataclass
class Queue:
    """What one host has for one database."""

    waiting: dict[int, list[float]] = field(default_factory=dict)
    """By session: when the deltas came that become its next event."""
    in_flight: bool = False
    began_at: float = -1.0


@dataclass
class Outcome:
    visible: list[float]
    commits: float
    busy: float


def simulate(sessions: int, databases: int, seed: int = 1) -> Outcome:
    """So many sessions stream; how long from a delta to its commit, and how busy the databases are."""
    chance = random.Random(seed)
    stores = [Database() for _ in range(databases)]
    hosts = max(1, round(sessions / PER_HOST))
    queues = {(host, store): Queue() for host in range(hosts) for store in range(databases)}
    visible: list[float] = []
    events: list[tuple[float, int, int, tuple[int, int]]] = []
    for session in range(sessions):
        where = (session % hosts, session % databases)
        heapq.heappush(events, (chance.uniform(0, DELTA_SECONDS), _DELTA, session, where))

    def commit(now: float, where: tuple[int, int]) -> None:
        queue, store = queues[where], stores[where[1]]
        cost = COMMIT_SECONDS + EVENT_SECONDS * len(queue.waiting)
        store.free_at = max(now, store.free_at) + cost
        store.busy += cost
        store.commits += 1
        queue.in_flight = True
        if now > SECONDS / 4:
            visible.extend(store.free_at - at for times in queue.waiting.values() for at in times)
        queue.waiting, queue.began_at = {}, now
        heapq.heappush(events, (store.free_at, _ENDED, 0, where))

    while events and events[0][0] < SECONDS:
        now, kind, session, where = heapq.heappop(events)
        queue = queues[where]
        if kind == _ENDED:
            queue.in_flight = False
        elif kind == _DELTA:
            queue.waiting.setdefault(session, []).append(now)
            heapq.heappush(events, (now + DELTA_SECONDS * chance.uniform(0.8, 1.2), _DELTA, session, where))
        if not queue.waiting or queue.in_flight:
            continue
        if now >= (due := queue.began_at + limits.COMMIT_CADENCE):
            commit(now, where)
        elif kind != _CADENCE:
            heapq.heappush(events, (due, _CADENCE, 0, where))
    busy = max(store.busy for store in stores) / SECONDS
    return Outcome(visible, sum(store.commits for store in stores) / SECONDS / databases, busy)


def measure() -> list[Row]:
    rows = []
    for stored, databases in ((10_000, 1), (100_000, 1), (300_000, 1), (1_000_000, 1), (1_000_000, 4), (1_000_000, 8)):
        found = simulate(int(stored * WORKING), databases)
        p50, p99 = statistics.median(found.visible), sorted(found.visible)[int(len(found.visible) * 0.99)]
        rows.append(
            Row(
                f"{stored:,} sessions, {int(stored * WORKING):,} stream, {databases} databases",
                f"delta to commit p50 {ms(p50)}, p99 {ms(p99)}",
                f"{found.commits:,.0f} commits/s in each, {min(found.busy, 1):.0%} busy",
                "",
                verdict("p99 100 ms", p99 < 0.1),
            )
        )
    return rows
