"""What an agent is told beside the message itself: the context of a side chat, and what is attached in words.

A side chat starts empty, but not ignorant: its session's config has `context`, and the agent reads it before the first
message, also when it has to begin again from the history. Attachments that stand for words (another chat, annotations)
carry them as `modelRepresentation`, settled when the message was accepted.
"""

from collections.abc import Sequence

import msgspec

from portico.events import Json, Message
from portico.host.state import TextPart, TurnState

CONTEXT = "context"
ABOUT = "This is about another conversation:\n\n"
ATTACHED = "\n\nAttached to the message:\n\n"
MESSAGE = "\n\nThe message is:\n\n"
_CHARS = 60_000
"""What a model reads before the real question; the end of a conversation matters more than its beginning."""
_IN_WORDS = ("chat", "annotations")


def told(message: Message, config: Json, *, first: bool) -> Message:
    """The message as the agent gets it; `first`: nothing was said here before."""
    words = [each for each in message.attachments if _is_words(each)]
    context = config.get(CONTEXT) if first else None
    if not words and not context:
        return message
    text = message.text
    if isinstance(context, str) and context:
        text = f"{ABOUT}{context}{MESSAGE}{text}"
    if words:
        text += ATTACHED
        text += "\n\n".join(f"{each.get('label') or 'Attached'}:\n{each['modelRepresentation']}" for each in words)
    attachments = [each for each in message.attachments if not _is_words(each)]
    return msgspec.structs.replace(message, text=text, attachments=attachments)


def _is_words(attachment: Json) -> bool:
    return attachment.get("type") in _IN_WORDS and isinstance(attachment.get("modelRepresentation"), str)


def history(turns: Sequence[TurnState], config: Json) -> list[TurnState]:
    """The turns as the agent was told them."""
    return [
        msgspec.structs.replace(turn, message=told(turn.message, config, first=index == 0))
        for index, turn in enumerate(turns)
    ]


def transcript(turns: Sequence[TurnState]) -> str:
    """A conversation in words."""
    said: list[str] = []
    for turn in turns:
        answer = "".join(part.text for part in turn.parts if isinstance(part, TextPart) and part.kind == "text")
        said.append(f"User: {turn.message.text}\nYou: {answer or '(no answer)'}")
    text = "\n\n".join(said)
    return text if len(text) <= _CHARS else f"(the beginning is left out)\n{text[-_CHARS:]}"
