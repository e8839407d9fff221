"""An earlier conversation in words, for an agent that forgot it or never had it."""

from portico.kernel.context import transcript
from portico.kernel.state import TurnState

NOTE = "The agent began a new conversation; it was told what was said before."


def retold(history: list[TurnState]) -> str:
    """The turns so far, for a conversation that has to begin again."""
    said = transcript(history)
    return f"This conversation began earlier. What was said so far:\n\n{said}\n\nThe next message is:\n\n"
