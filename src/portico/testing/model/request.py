"""A request of an agent, independent of the wire format: the conversation, the tools, and the position in the turn."""

import hashlib
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct

from portico.testing.model import script

Role = Literal["system", "user", "assistant", "tool"]

# Agents add reminders and facts about the machine to user messages, each in a separate tag.
_TAG = re.compile(r"<([\w-]+)[^<>]*>")
_CALL_ID = re.compile(r"call_[0-9a-f]{8}_\d+_(-?\d+)_\d+")
_SEARCH = "_search"
_REMARKS = ("", "Tool loaded.")  # the second is Claude Code's, beside the result of a search


class RequestMessage(Struct, frozen=True):
    role: Role
    text: str = ""
    calls: Sequence[str] = ()  # ids of the tool calls in an assistant's message


class RequestTool(Struct, frozen=True):
    name: str
    parameters: dict[str, Any] = {}
    freeform: bool = False  # takes plain text instead of a JSON object
    namespace: str = ""  # the beginning of its name, where the format has a field for it


class ModelRequest(Struct, frozen=True, dict=True):
    format: str
    model: str
    messages: Sequence[RequestMessage]
    tools: Sequence[RequestTool] = ()
    stream: bool = False
    schema: dict[str, Any] | None = None  # the JSON schema that the answer must have
    wants_usage: bool = True  # chat completions stream usage only on demand
    media: str = "text/event-stream"  # of a streamed answer

    @cached_property
    def _anchor(self) -> int:
        """Where the turn begins: the last user message that a person wrote; -1 if there is none."""
        users = [index for index, message in enumerate(self.messages) if message.role == "user"]
        for index in reversed(users):
            text = self.messages[index].text
            if without_injected(text).strip() not in _REMARKS or script.find(text).steps:
                return index
        return users[-1] if users else -1

    @property
    def prompt(self) -> str:
        return self.messages[self._anchor].text if self._anchor >= 0 else ""

    @property
    def result(self) -> str:
        """The last tool result of this turn."""
        results = [message.text for message in self.messages[self._anchor + 1 :] if message.role == "tool"]
        return results[-1] if results else ""

    @cached_property
    def position(self) -> int:
        """Which model request of its turn this is, from 0.

        An answer counts once however the agent stores it: some split text and calls, or parallel calls, into several
        messages. So messages in a row are one answer, and our call ids carry the step they came from.
        """
        position = 0
        previous: Role = "user"
        for message in self.messages[self._anchor + 1 :]:
            if message.role == "assistant":
                known = [int(found[1]) for call in message.calls if (found := _CALL_ID.search(call))]
                if known:
                    position = max(known) + 1
                elif previous != "assistant":
                    position += 1
            previous = message.role
        return position

    @cached_property
    def fingerprint(self) -> str:
        """Keeps ids apart when a conversation outlives the server that numbered its requests."""
        return hashlib.sha256(f"{len(self.messages)}:{self.prompt}".encode(errors="replace")).hexdigest()[:8]

    def call_id(self, number: int, index: int) -> str:
        return f"call_{self.fingerprint}_{number}_{self.position}_{index}"

    def search_id(self, number: int, index: int) -> str:
        """Of a call that comes before its step: the next request is answered by the same one."""
        return f"call_{self.fingerprint}_{number}_{self.position - 1}_{index}{_SEARCH}"

    @property
    def searched(self) -> bool:
        """Whether this step has searched for its tool; also detected if an agent drops the ids of calls."""
        calls = [call for message in self.messages[self._anchor + 1 :] for call in message.calls]
        return bool(calls) and (calls[-1].endswith(_SEARCH) or not _CALL_ID.search(calls[-1]))

    @property
    def tokens(self) -> int:
        return tokens("".join(message.text for message in self.messages))


def without_injected(text: str) -> str:
    """Return a message without everything that is inside tags."""
    kept: list[str] = []
    unclosed: set[str] = set()  # looked for once: a prompt full of open tags must not cost a search each
    position = 0
    for tag in _TAG.finditer(text):
        closing = f"</{tag[1]}>"
        if tag.start() < position or closing in unclosed:
            continue
        end = text.find(closing, tag.end())
        if end < 0:
            unclosed.add(closing)
        else:
            kept.append(text[position : tag.start()])
            position = end + len(closing)
    return "".join(kept) + text[position:]


def tokens(text: str) -> int:
    """A guess that grows with the text; no tokenizer is worth its weight here."""
    return max(1, len(text) // 4)


def join(parts: Sequence[str | None]) -> str:
    return "\n".join(part for part in parts if part)
