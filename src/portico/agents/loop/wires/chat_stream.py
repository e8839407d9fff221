"""A streamed answer of chat completions: text, reasoning and tool calls, complete in the end or an error.

Only what is shown and run is understood here. Every other field of the vendor is merged into the message as it is.
"""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from portico import surrogates
from portico.agents.loop.refusal import in_stream
from portico.agents.loop.reply import Growth, ModelError, NativeCall, Reply, Report, TokensSpent
from portico.agents.loop.thoughts import ThoughtFilter
from portico.agents.loop.wires.frames import JoinedData
from portico.agents.loop.wires.merge import merge
from portico.kernel.events import Json

_OWN = frozenset({"content", "tool_calls", "role", "index", "refusal"})
_THOUGHTS = ("reasoning_content", "reasoning")


class _Choice(Struct):
    delta: Json | None = None
    message: Json | None = None
    finish_reason: str | None = None


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None
    object: Any = None
    message: Any = None
    detail: Any = None
    code: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode


class _Call:
    """One tool call while it streams; `extra` is what the vendor adds (Gemini's thought signature)."""

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.pieces: list[str] = []
        self.value: Any = None
        """Arguments that came as an object instead of as JSON text."""
        self.extra: Json = {}

    @property
    def arguments(self) -> str:
        if self.value is not None:
            return msgspec.json.encode(self.value).decode()
        return "".join(self.pieces)


class StreamedAnswer:
    """Grows with the stream."""

    def __init__(
        self,
        name: str,
        report: Report,
        retract: Callable[[], None] = lambda: None,
        grow: Callable[[str, str, str], None] = lambda ident, name, piece: None,
    ) -> None:
        """`retract` is called when everything reported so far turns out to be reasoning; `grow` with the id, the name
        and new arguments of a call."""
        self._grow = grow
        self._grown: dict[int, list[str]] = {}
        self._name = name
        self._report = report
        self._retract = retract
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._raw: list[str] = []
        self._parts: list[Any] = []
        """Content that comes as a list of parts."""
        self._growth = Growth(name)
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._message: Json = {}
        self._filter = ThoughtFilter()
        self._finish = ""
        self._usage: TokensSpent | None = None
        self._ended = False
        self._pieces = JoinedData()

    def take(self, lines: list[bytes]) -> bool:
        """One network chunk's lines; True when the answer is complete. Comments and keep-alives are passed over."""
        texts: list[str] = []
        thoughts: list[str] = []
        try:
            for line in lines:
                if not line.startswith(b"data:"):
                    if not line.strip():
                        self._pieces.end(self._name)
                    continue
                data = line[5:].strip()
                if data == b"[DONE]":
                    self._ended = True
                    break
                if data and (chunk := self._pieces.read(data, _decode, self._name)) is not None:
                    self._chunk(chunk, texts, thoughts)
        finally:
            if texts or thoughts:
                text, thought = "".join(texts), "".join(thoughts)
                self._texts.append(text)
                self._thoughts.append(thought)
                self._report(text, thought)
            if self._grown:
                for at, pieces in self._grown.items():
                    self._grow(self._calls[at].id, self._calls[at].name, "".join(pieces))
                self._grown = {}
        return self._ended

    def take_whole(self, body: bytes) -> Reply:
        """From a server that does not stream although it was asked to: the message counts as one delta."""
        try:
            whole = surrogates.decode(body, _decode)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{self._name} sent an answer that is not JSON.", again=True) from error
        texts: list[str] = []
        thoughts: list[str] = []
        for choice in (whole.choices or [])[:1]:
            choice.delta = choice.message if choice.message is not None else choice.delta
            choice.finish_reason = choice.finish_reason or "stop"
            for index, call in enumerate(_list(choice.delta.get("tool_calls") if choice.delta else None)):
                call["index"] = index
        self._chunk(whole, texts, thoughts)
        if not whole.choices and (whole.message or whole.detail):
            raise in_stream(self._name, {"message": whole.message or whole.detail, "code": whole.code})
        self._texts += texts
        self._thoughts += thoughts
        self._report("".join(texts), "".join(thoughts))
        return self.reply()

    def _chunk(self, chunk: _Chunk, texts: list[str], thoughts: list[str]) -> None:
        if chunk.error is not None:
            raise in_stream(self._name, chunk.error)
        if chunk.object == "error":  # vLLM: the fields of the error without an object around them
            raise in_stream(self._name, {"message": chunk.message, "code": chunk.code})
        if isinstance(chunk.usage, dict):
            self._usage = _spent(chunk.usage)
        for choice in (chunk.choices or [])[:1]:
            delta = choice.delta if choice.delta is not None else choice.message
            if delta:
                self._delta(delta, texts, thoughts)
            self._finish = choice.finish_reason or self._finish

    def _delta(self, delta: Json, texts: list[str], thoughts: list[str]) -> None:
        content = delta.get("content")
        if isinstance(content, str):
            if content:
                self._raw.append(content)
                if self._filter.passes and "<" not in content:
                    self._growth.add(len(content))
                    texts.append(content)
                else:
                    self._text(content, texts, thoughts)
            if len(delta) == 1:
                return  # nearly always, and thousands of times a second
        elif isinstance(content, list):
            self._list(content, texts, thoughts)
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._raw.append(refusal)
            self._text(refusal, texts, thoughts)
        thought = _thought(delta)
        if thought:
            self._growth.add(len(thought))
            thoughts.append(thought)
        for call in _list(delta.get("tool_calls")):
            self._call(call)
        merge(self._message, {key: value for key, value in delta.items() if key not in _OWN})

    def _text(self, text: str, texts: list[str], thoughts: list[str]) -> None:
        self._growth.add(len(text))
        piece = self._filter.feed(text)
        if piece.void:
            thoughts += [*self._texts, *texts]
            self._retract()
            self._texts.clear()
            texts.clear()
        if piece.text:
            texts.append(piece.text)
        if piece.thought:
            thoughts.append(piece.thought)

    def _list(self, content: list[Any], texts: list[str], thoughts: list[str]) -> None:
        """Content as a list of parts (Mistral, gateways): text is text, thinking is reasoning."""
        holder = {"content": self._parts}
        merge(holder, {"content": content})
        for part in content:
            if isinstance(part, str):
                self._text(part, texts, thoughts)
            elif isinstance(part, dict) and isinstance(text := part.get("text"), str):
                self._text(text, texts, thoughts)
            elif isinstance(part, dict) and (thought := _thinking(part.get("thinking"))):
                self._growth.add(len(thought))
                thoughts.append(thought)

    def _call(self, delta: Json) -> None:
        function = delta.get("function")
        function = function if isinstance(function, dict) else {}
        name, ident = _text(function.get("name")), _text(delta.get("id"))
        call = self._slot(delta.get("index"), ident, name)
        call.id = call.id or ident
        call.name = call.name or name
        arguments = function.get("arguments")
        if isinstance(arguments, str) and arguments:
            self._growth.add(len(arguments))
            call.pieces.append(arguments)
            self._grown.setdefault(self._calls.index(call), []).append(arguments)
        elif isinstance(arguments, dict):
            self._growth.add(len(msgspec.json.encode(arguments)))
            call.value = {**(call.value or {}), **arguments}
        merge(call.extra, {key: value for key, value in delta.items() if key not in ("index", "id", "function")})

    def _slot(self, index: Any, ident: str, name: str) -> _Call:
        """The call that a piece belongs to. Gemini gives all calls the same index, others give none."""
        if isinstance(index, int):
            call = self._by_index.get(index)
            if call is None or (name and _is_another(call, ident)):
                call = self._by_index[index] = self._new()
            return call
        found = next((each for each in self._calls if ident and each.id == ident), None)
        if found is not None:
            return found
        if not self._calls or ident or (name and self._calls[-1].name):
            return self._new()
        return self._calls[-1]

    def _new(self) -> _Call:
        self._growth.check_calls(len(self._calls) + 1)
        self._calls.append(_Call())
        return self._calls[-1]

    def reply(self) -> Reply:
        if not self._ended and not self._finish:
            raise ModelError(f"The stream of {self._name} ended before the answer did.", again=True)
        last = self._filter.end()
        if last.text or last.thought:
            self._texts.append(last.text)
            self._thoughts.append(last.thought)
            self._report(last.text, last.thought)
        calls = self._ordered()
        for name, arguments in self._filter.calls:
            calls.append((NativeCall(f"call_{len(calls)}", name, arguments.strip()), None))
        text = "".join(self._texts)
        message = self._whole([entry for _, entry in calls if entry is not None])
        return Reply(text, [call for call, _ in calls], self._finish, self._usage, message, "".join(self._thoughts))

    def _ordered(self) -> list[tuple[NativeCall, Json | None]]:
        """In the order of their indexes; each id once."""
        position = {id(call): index for index, call in self._by_index.items()}
        ordered = sorted(self._calls, key=lambda call: position.get(id(call), 0)) if _apart(position) else self._calls
        found: list[tuple[NativeCall, Json | None]] = []
        taken: set[str] = set()
        for number, call in enumerate(ordered):
            ident = call.id if call.id and call.id not in taken else _free(position.get(id(call), number), taken)
            taken.add(ident)
            function = {"name": call.name, "arguments": call.value if call.value is not None else call.arguments}
            entry = {"id": ident, "type": "function", **call.extra, "function": function}
            found.append((NativeCall(ident, call.name, call.arguments), entry))
        return found

    def _whole(self, calls: list[Json]) -> Json:
        content: Any = "".join(self._raw)
        if self._parts:
            content = [*self._parts, *([{"type": "text", "text": content}] if content else [])]
        message: Json = {"role": "assistant", "content": content or None, **self._message}
        if calls:
            message["tool_calls"] = calls
        return message


def _is_another(call: _Call, ident: str) -> bool:
    """Whether a piece with a name at the same index is another call: it has another id, or the first is complete."""
    if ident and call.id:
        return ident != call.id
    return bool(call.name) and call.value is None and _is_json(call.arguments)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _apart(position: dict[int, int]) -> bool:
    """Whether every call has another index."""
    return len(set(position.values())) == len(position) and len(position) > 1


def _free(number: int, taken: set[str]) -> str:
    ident = f"call_{number}"
    while ident in taken:
        number += 1
        ident = f"call_{number}"
    return ident


def _list(value: Any) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _thought(delta: Json) -> str:
    """The readable reasoning of a delta; the last are OpenRouter's details."""
    for key in _THOUGHTS:
        if text := _text(delta.get(key)):
            return text
    return "".join(
        _text(each.get("text")) or _text(each.get("summary")) for each in _list(delta.get("reasoning_details"))
    )


def _thinking(value: Any) -> str:
    return value if isinstance(value, str) else "".join(_text(each.get("text")) for each in _list(value))


def _spent(usage: Json) -> TokensSpent:
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    cached = cached or usage.get("prompt_cache_hit_tokens")  # DeepSeek's name for it
    cost = usage.get("cost")
    spent = [
        each if isinstance(each, int) else 0 for each in (usage.get("prompt_tokens"), usage.get("completion_tokens"))
    ]
    return TokensSpent(
        spent[0], spent[1], cached if isinstance(cached, int) else 0, cost if isinstance(cost, int | float) else 0.0
    )
