"""Assemble Copilot's messages from deltas that are unreliable, and from the complete message that follows them.

During a flood the CLI repeats deltas, far apart (10,000 arrived as 16,000): each event has an id and counts once. The
message that follows contains the whole text and replaces the deltas where they differ. The text of an attempt that the
vendor retries is retracted.
"""

from copilot import session_events as s

from portico.agents.agent import Turn
from portico.agents.copilot.notice import failure_words
from portico.kernel.events import PartKind


class CopilotMessages:
    """The messages of one turn and its sub-agents."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        """Ids of the deltas of messages that are not complete."""
        self._growing: dict[str, tuple[Turn, PartKind]] = {}
        self._complete: set[str] = set()
        self._chunks: dict[str, list[str]] = {}
        self._failure = ""

    def grow(self, turn: Turn, kind: PartKind, key: str, delta: str, event: str) -> None:
        if event in self._seen or key in self._complete:
            return
        self._seen.add(event)
        self._growing[key] = (turn, kind)
        if delta:
            turn.say(kind, delta, key)

    def complete(self, turn: Turn, data: s.AssistantMessageData) -> None:
        """A very long one comes in chunks."""
        chunks = self._chunks.setdefault(data.message_id, [])
        chunks.append(data.content)
        if len(chunks) >= (data.chunk_count or 1):
            self.settle(turn, "text", data.message_id, "".join(self._chunks.pop(data.message_id)))
            self._seen.clear()

    def settle(self, turn: Turn, kind: PartKind, key: str, whole: str) -> None:
        self._growing.pop(key, None)
        self._complete.add(key)
        turn.correct(key, whole, kind)

    def fail(self, turn: Turn, data: s.AssistantTurnRetryData | s.ModelCallFailureData) -> None:
        """Handle an answer that broke off or is retried. Its text stays until the retry; without a retry it is the only
        text there is."""
        said = [key for key, (whose, _) in self._growing.items() if whose is turn]
        if isinstance(data, s.ModelCallFailureData):
            self._failure = failure_words(data)
            turn.activity = f"Copilot retries by itself. {self._failure.rstrip('.')}"
            if not said:
                turn.notice(f"{self._failure} Copilot tries again, if it can.")
            return
        for key in said:
            del self._growing[key]
            self._complete.add(key)
            turn.retract(key)
        if said or not self._failure:
            turn.notice(f"{self._failure or f'The answer broke off ({data.reason}).'} Copilot tries again.".lstrip())
        self._failure = ""
