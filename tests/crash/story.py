"""What must hold for the events of one channel, at any moment and after a restart."""

from collections import Counter

from portico.kernel import events as e
from portico.kernel.events import Event

_BEGIN_AND_END: list[tuple[type[Event], type[Event], str]] = [
    (e.PartStarted, e.PartEnded, "part"),
    (e.ToolStarted, e.ToolEnded, "call"),
    (e.ApprovalAsked, e.ApprovalAnswered, "approval"),
    (e.QuestionAsked, e.QuestionAnswered, "question"),
]


def check_turns(events: list[Event], finished: bool) -> None:
    """One turn at a time, each begun once (or resumed) and ended once."""
    running: str | None = None
    begun: set[str] = set()
    for event in events:
        if isinstance(event, e.TurnStarted | e.TurnResumed):
            assert running is None, f"{event} while {running} runs"
            assert isinstance(event, e.TurnResumed) or event.turn not in begun, f"{event.turn} began twice"
            running = event.turn
            begun.add(event.turn)
        elif isinstance(event, e.TurnEnded):
            assert running == event.turn, f"{event} ends {running}"
            running = None
    assert running is None or not finished, f"{running} still runs"


def check_ends(events: list[Event], finished: bool) -> None:
    for begin, end, key in _BEGIN_AND_END:
        begun = Counter(getattr(event, key) for event in events if isinstance(event, begin))
        ended = Counter(getattr(event, key) for event in events if isinstance(event, end))
        assert set(begun.values()) <= {1}, f"{begin.__name__} twice: {begun}"
        assert set(ended.values()) <= {1}, f"{end.__name__} twice: {ended}"
        assert ended.keys() <= begun.keys()
        if finished:
            assert ended.keys() == begun.keys(), f"no {end.__name__} for {begun.keys() - ended.keys()}"


def check_queue(events: list[Event], left: list[str]) -> None:
    """Every queued message became one turn, was removed once, or still waits."""
    added = Counter(event.pending for event in events if isinstance(event, e.QueueAdded))
    gone = Counter(event.pending for event in events if isinstance(event, e.QueueRemoved))
    gone.update(event.pending for event in events if isinstance(event, e.TurnStarted) and event.pending)
    assert set(added.values()) <= {1}
    assert Counter({**gone}) + Counter(left) == added
