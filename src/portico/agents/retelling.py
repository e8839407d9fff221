"""An earlier conversation in words, for an agent that forgot it or never had it."""

from portico.host.state import TextPart, TurnState

NOTE = "The agent began a new conversation; it was told what was said before."
_HISTORY_CHARS = 60_000
"""What a model reads before the real question; the end of a conversation matters more than its beginning."""


def retold(history: list[TurnState]) -> str:
    """The turns so far, for a conversation that has to begin again."""
    told: list[str] = []
    for turn in history:
        answer = "".join(part.text for part in turn.parts if isinstance(part, TextPart) and part.kind == "text")
        told.append(f"User: {turn.message.text}\nYou: {answer or '(no answer)'}")
    text = "\n\n".join(told)
    if len(text) > _HISTORY_CHARS:
        text = f"(the beginning is left out)\n{text[-_HISTORY_CHARS:]}"
    return f"This conversation began earlier. What was said so far:\n\n{text}\n\nThe next message is:\n\n"
