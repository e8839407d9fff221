"""One answer of a model as it streams in: text, reasoning and tool calls, bounded, whole in the end or an error."""

from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import Struct

from portico import surrogates
from portico.agents.loop.protocol import NativeCall
from portico.errors import AgentError

ANSWER_MAX = 4 * 1024 * 1024
"""Characters of one answer: some 100 times what a model writes in one go."""
CALLS_MAX = 100
ERROR_CHARS = 300
"""What a message quotes of an endpoint's own words."""

Feature = Literal["tools", "schema", "usage", "pictures"]


class ModelError(AgentError):
    """The endpoint did not answer as asked. `again`: the same request may work later; `lacks`: what to leave out."""

    def __init__(
        self,
        message: str,
        *,
        again: bool = False,
        retry_after: float | None = None,
        lacks: Feature | None = None,
        too_long: bool = False,
        refused: bool = False,
    ) -> None:
        super().__init__(message, retry_after=retry_after)
        self.again = again
        self.lacks = lacks
        self.too_long = too_long
        self.refused = refused
        """It does not take the key."""


class NoList(ModelError):
    """It answers, but does not say which models there are."""


class TokensSpent(Struct, frozen=True):
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: float = 0.0
    """In dollars, where the endpoint says it (OpenRouter and other gateways do)."""


class Reply(Struct, frozen=True):
    text: str
    calls: list[NativeCall]
    finish: str
    usage: TokensSpent | None = None


class _Function(Struct):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(Struct):
    index: int = 0
    id: str | None = None
    function: _Function | None = None


class _Delta(Struct):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(Struct):
    delta: _Delta = msgspec.field(default_factory=_Delta)
    finish_reason: str | None = None


class _Details(Struct):
    cached_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    cost: float | None = None


class _Chunk(Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: Any = None


class _Message(Struct):
    message: _Delta = msgspec.field(default_factory=_Delta)
    finish_reason: str | None = None


class _Whole(Struct):
    choices: list[_Message] = []
    usage: _Usage | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode
_decode_whole = msgspec.json.Decoder(_Whole).decode

Report = Callable[[str, str], None]
"""Called with the new text and the new reasoning."""


class StreamedAnswer:
    """Grows with the stream."""

    def __init__(self, name: str, report: Report) -> None:
        self._name = name
        self._report = report
        self._texts: list[str] = []
        self._size = 0
        self._calls: dict[int, tuple[str, str, list[str]]] = {}
        self._finish = ""
        self._usage: TokensSpent | None = None
        self._ended = False

    def take(self, lines: list[bytes]) -> bool:
        """One network chunk's lines; True when the answer is over."""
        texts: list[str] = []
        thoughts: list[str] = []
        try:
            for line in lines:
                if not line.startswith(b"data:"):
                    continue
                data = line[5:].strip()
                if data == b"[DONE]":
                    self._ended = True
                    break
                self._chunk(self._read(data), texts, thoughts)
        finally:
            if texts or thoughts:
                text = "".join(texts)
                self._texts.append(text)
                self._report(text, "".join(thoughts))
        return self._ended

    def take_whole(self, body: bytes) -> Reply:
        """From a server that does not stream, whatever it was asked: the message counts as one delta."""
        try:
            whole = surrogates.decode(body, _decode_whole)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{self._name} sent an answer that is not JSON.", again=True) from error
        for choice in whole.choices[:1]:
            for index, call in enumerate(choice.message.tool_calls or ()):
                call.index = index
            self._finish = choice.finish_reason or "stop"
        texts: list[str] = []
        thoughts: list[str] = []
        deltas = [_Choice(choice.message, choice.finish_reason) for choice in whole.choices]
        self._chunk(_Chunk(deltas, whole.usage, whole.error), texts, thoughts)
        self._texts += texts
        self._report("".join(texts), "".join(thoughts))
        return self.reply()

    def _read(self, data: bytes) -> _Chunk:
        try:
            return surrogates.decode(data, _decode)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ModelError(f"{self._name} sent a frame that is not JSON.", again=True) from error

    def _chunk(self, chunk: _Chunk, texts: list[str], thoughts: list[str]) -> None:
        if chunk.error is not None:
            raise ModelError(f"{self._name} failed in mid-stream: {error_words(chunk.error)}", again=True)
        if chunk.usage is not None:
            self._usage = _spent(chunk.usage)
        for choice in chunk.choices[:1]:
            delta = choice.delta
            text = delta.content or delta.refusal
            thought = delta.reasoning_content or delta.reasoning
            if text:
                self._grow(len(text))
                texts.append(text)
            if thought:
                self._grow(len(thought))
                thoughts.append(thought)
            for call in delta.tool_calls or ():
                self._call(call)
            self._finish = choice.finish_reason or self._finish

    def _call(self, call: _ToolCall) -> None:
        function = call.function or _Function()
        if call.index not in self._calls:
            if len(self._calls) >= CALLS_MAX:
                raise ModelError(f"{self._name} calls more than {CALLS_MAX} tools at once.")
            self._calls[call.index] = (call.id or f"call_{call.index}", function.name or "", [])
        elif function.name and not self._calls[call.index][1]:
            ident, _, pieces = self._calls[call.index]
            self._calls[call.index] = (ident, function.name, pieces)
        if function.arguments:
            self._grow(len(function.arguments))
            self._calls[call.index][2].append(function.arguments)

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > ANSWER_MAX:
            raise ModelError(f"{self._name} does not stop: its answer is over {ANSWER_MAX} characters.")

    def reply(self) -> Reply:
        if not self._ended and not self._finish:
            raise ModelError(f"The stream of {self._name} ended before the answer did.", again=True)
        calls = [NativeCall(ident, name, "".join(pieces)) for _, (ident, name, pieces) in sorted(self._calls.items())]
        return Reply("".join(self._texts), calls, self._finish, self._usage)


def _spent(usage: _Usage) -> TokensSpent:
    details = usage.prompt_tokens_details or _Details()
    return TokensSpent(
        usage.prompt_tokens or 0, usage.completion_tokens or 0, details.cached_tokens or 0, usage.cost or 0.0
    )


def error_words(error: Any) -> str:
    if isinstance(error, dict):
        error = error.get("message") or error
    return str(error)[:ERROR_CHARS]
