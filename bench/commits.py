"""What one event of a running turn costs the host beside the log: fold, summary, board, and what AHP shows of it.

With 100, 1,000 and 4,000 parts in the turn: it must not grow with them.
"""

import time

from bench.row import Row, verdict
from portico.doors.ahp.view import card, parts, snapshots
from portico.features.board.activity import activity, waiting_of
from portico.kernel import events as e
from portico.kernel.events import Message, Record, encode
from portico.kernel.fold import fold
from portico.kernel.state import SessionState, summarise

QUESTION = "what one event of a turn with thousands of parts costs beside the log"
EVENTS = 400
ROUNDS = 5


def measure() -> list[Row]:
    found = {count: min(_one(count) for _ in range(ROUNDS)) for count in (100, 1000, 4000)}
    base = found[100]
    return [
        Row(
            f"one event, {count:,} parts in the turn",
            f"{seconds * 1e6:.1f} us",
            f"{base * 1e6:.1f} us with 100",
            f"{seconds / base:.2f}",
            verdict("< 1.5", seconds / base < 1.5),
        )
        for count, seconds in found.items()
    ]


def _one(count: int) -> float:
    state, pos = SessionState("s"), 0

    def take(event: e.Event) -> None:
        nonlocal state, pos
        pos += 1
        state = fold(state, Record(pos, "session/s", pos, pos, encode(event), event))

    take(e.SessionStarted(session="s", agent="a", model="m", cwd="/", by="b"))
    take(e.TurnStarted(turn="t", message=Message("x"), by="b"))
    for number in range(count):
        take(e.ToolStarted(turn="t", call=f"c{number}", tool="read"))
        take(e.ToolEnded(turn="t", call=f"c{number}", ok=True, outcome="completed"))
    take(e.PartStarted(turn="t", part="p", kind="text"))
    began = time.perf_counter()
    for _ in range(EVENTS):
        take(e.PartDelta(turn="t", part="p", text="x"))
        summarise(state)
        activity(state, waiting_of(state))
        snapshots.input_needed(state)
        parts.open_questions(state)
        card.activity(state)
    return (time.perf_counter() - began) / EVENTS
