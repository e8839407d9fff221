"""Which wire format an endpoint has, and its codec."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from portico.agents.loop.reply import Reply, Report, WireName
from portico.agents.loop.transcript import Entry
from portico.agents.loop.wires import chat, messages, responses
from portico.agents.loop.wires.chat_stream import StreamedAnswer
from portico.agents.loop.wires.messages import MessagesStream
from portico.agents.loop.wires.request import CompletionRequest
from portico.agents.loop.wires.responses import ResponsesStream
from portico.kernel.events import Json

WireSetting = Literal["auto", "chat", "responses", "messages"]


class AnswerStream(Protocol):
    def take(self, lines: list[bytes]) -> bool: ...
    def take_whole(self, body: bytes) -> Reply: ...
    def reply(self) -> Reply: ...


class Codec(Struct, frozen=True):
    path: str
    headers: Callable[[str], dict[str, str]]
    messages: Callable[..., list[Json]]
    body: Callable[[CompletionRequest], Json]
    stream: Callable[[str, Report, Callable[[], None], Callable[[str, str, str], None]], AnswerStream]
    plain: Callable[[str], Any]
    schemas: bool = True
    """Answers can be bound to a JSON schema."""

    def render(self, system: str, entries: Sequence[Entry], **how: Any) -> list[Json]:
        return self.messages(system, entries, **how)


CODECS: dict[WireName, Codec] = {
    "chat": Codec(chat.PATH, chat.headers, chat.messages, chat.body, StreamedAnswer, chat.plain),
    "responses": Codec(
        responses.PATH, responses.headers, responses.messages, responses.body, ResponsesStream, responses.plain
    ),
    "messages": Codec(
        messages.PATH, messages.headers, messages.messages, messages.body, MessagesStream, messages.plain, schemas=False
    ),
}


def wire_of(url: str, wanted: WireSetting = "auto") -> WireName:
    """By the setting, else by the address: Messages at Anthropic and compatible addresses, Responses at OpenAI."""
    if wanted != "auto":
        return wanted
    parts = urlsplit(url)
    if parts.hostname == "api.anthropic.com" or parts.path.rstrip("/").removesuffix("/v1").endswith("/anthropic"):
        return "messages"
    return "responses" if parts.hostname == "api.openai.com" else "chat"
