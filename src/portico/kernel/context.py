"""What an agent gets in addition to the message: the context of a side chat, and attachments as text.

A side chat starts without turns, but its session's config has `context`. The agent gets it before the first message,
also when the conversation is rebuilt from the history. Text attachments (another chat, annotations) have their text in
`modelRepresentation`, set when the message was accepted. Rules and skills of client plugins are sent with the first
message; those that are added or changed later are sent with the next one.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from portico.kernel.command_turn import COMMAND_LINE, command_line
from portico.kernel.customization import expanded, instructions
from portico.kernel.events import Json, Message
from portico.kernel.state import SessionState, TextPart, TurnState

CONTEXT = "context"
ABOUT = "This is about another conversation:\n\n"
RULES = "Keep to this in the whole conversation:\n\n"
LATER = "From now on keep to this:\n\n"
ATTACHED = "\n\nAttached to the message:\n\n"
MESSAGE = "\n\nThe message is:\n\n"
_CHARS = 60_000
"""Maximum length of a transcript. It is cut at the start, because the end of a conversation matters more."""
_IN_WORDS = ("chat", "annotations")
RULES_SENT = "told"
"""Key in the session's data: the digest of the rules and skills that were sent to its agent."""


def to_send(turn: str, message: Message, state: SessionState) -> tuple[Message, Json | None]:
    """Return the message of a turn as the agent gets it, and what to store after it was sent (see `news`)."""
    later = news(state) if state.client_data else None
    first = next(turn for turn in state.turns if COMMAND_LINE not in turn.message.meta).id == turn
    plain = not first and later is None and not message.attachments and not message.text.startswith("/")
    return message if plain else told(message, state, first=first, later=later is not None), later


def told(message: Message, state: SessionState, *, first: bool, later: bool = False) -> Message:
    """Return the message as the agent gets it. `first`: it is the first message. `later`: the rules have changed."""
    words = [each for each in message.attachments if _is_words(each)]
    text = expanded(message.text, state.client_data) if message.text.startswith("/") else message.text
    before = _before(state) if first else f"{LATER}{instructions(state.client_data)}" if later else ""
    if not words and not before and text == message.text:
        return message
    if before:
        text = f"{before}{MESSAGE}{text}"
    if words:
        text += ATTACHED
        text += "\n\n".join(f"{each.get('label') or 'Attached'}:\n{each['modelRepresentation']}" for each in words)
    attachments = [each for each in message.attachments if not _is_words(each)]
    return msgspec.structs.replace(message, text=text, attachments=attachments)


def _before(state: SessionState) -> str:
    context, rules = state.config.get(CONTEXT), instructions(state.client_data)
    about = f"{ABOUT}{context}" if isinstance(context, str) and context else ""
    return "\n\n".join(filter(None, (f"{RULES}{rules}" if rules else "", about)))


def news(state: SessionState) -> Json | None:
    """Return the value to store after sending the rules and skills of plugins; None if the agent has them."""
    rules = instructions(state.client_data)
    if not rules:
        return None
    value: Json = {"rules": hashlib.sha256(rules.encode()).hexdigest()}
    return value if state.client_data.get(RULES_SENT) != value else None


def _is_words(attachment: Json) -> bool:
    return attachment.get("type") in _IN_WORDS and isinstance(attachment.get("modelRepresentation"), str)


def history(turns: Sequence[TurnState], state: SessionState) -> list[TurnState]:
    """Return the turns as the agent received them."""
    return [
        msgspec.structs.replace(turn, message=told(turn.message, state, first=index == 0))
        for index, turn in enumerate(to_agent(turns))
    ]


def to_agent(turns: Iterable[TurnState]) -> Iterator[TurnState]:
    """Return the turns without the commands that people ran."""
    return (turn for turn in turns if command_line(turn.message) is None)


def transcript(turns: Sequence[TurnState]) -> str:
    """Return a conversation as text."""
    said: list[str] = []
    for turn in to_agent(turns):
        answer = "".join(part.text for part in turn.parts if isinstance(part, TextPart) and part.kind == "text")
        said.append(f"User: {turn.message.text}\nYou: {answer or '(no answer)'}")
    text = "\n\n".join(said)
    return text if len(text) <= _CHARS else f"(the beginning is left out)\n{text[-_CHARS:]}"
