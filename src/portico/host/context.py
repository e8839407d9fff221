"""What an agent is told beside the message itself: the context of a side chat, and what is attached in words.

A side chat starts empty, but not ignorant: its session's config has `context`, and the agent reads it before the first
message, also when it has to begin again from the history. Attachments that stand for words (another chat, annotations)
carry them as `modelRepresentation`, settled when the message was accepted. Plugins of clients have rules and skills:
they go with the first message, and those that came or changed later with the next one.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from portico.events import Json, Message
from portico.host.command_turn import command_line
from portico.host.customization import expanded, instructions
from portico.host.state import SessionState, TextPart, TurnState

CONTEXT = "context"
ABOUT = "This is about another conversation:\n\n"
RULES = "Keep to this in the whole conversation:\n\n"
LATER = "From now on keep to this:\n\n"
ATTACHED = "\n\nAttached to the message:\n\n"
MESSAGE = "\n\nThe message is:\n\n"
_CHARS = 60_000
"""What a model reads before the real question; the end of a conversation matters more than its beginning."""
_IN_WORDS = ("chat", "annotations")
RULES_SENT = "told"
"""Kept with a session: the digest of the rules and skills that its agent knows."""


def told(message: Message, state: SessionState, *, first: bool, later: bool = False) -> Message:
    """The message as the agent gets it; `first`: nothing was said here before. `later`: the rules are news to it."""
    words = [each for each in message.attachments if _is_words(each)]
    text = expanded(message.text, state.client_data)
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
    """What to keep once the agent has been told the rules and skills of plugins; None when it knows them."""
    rules = instructions(state.client_data)
    value: Json = {"rules": hashlib.sha256(rules.encode()).hexdigest()}
    return value if rules and state.client_data.get(RULES_SENT) != value else None


def _is_words(attachment: Json) -> bool:
    return attachment.get("type") in _IN_WORDS and isinstance(attachment.get("modelRepresentation"), str)


def history(turns: Sequence[TurnState], state: SessionState) -> list[TurnState]:
    """The turns as the agent was told them."""
    return [
        msgspec.structs.replace(turn, message=told(turn.message, state, first=index == 0))
        for index, turn in enumerate(to_agent(turns))
    ]


def to_agent(turns: Iterable[TurnState]) -> Iterator[TurnState]:
    """Without the commands that people ran themselves."""
    return (turn for turn in turns if command_line(turn.message) is None)


def transcript(turns: Sequence[TurnState]) -> str:
    """A conversation in words."""
    said: list[str] = []
    for turn in to_agent(turns):
        answer = "".join(part.text for part in turn.parts if isinstance(part, TextPart) and part.kind == "text")
        said.append(f"User: {turn.message.text}\nYou: {answer or '(no answer)'}")
    text = "\n\n".join(said)
    return text if len(text) <= _CHARS else f"(the beginning is left out)\n{text[-_CHARS:]}"
