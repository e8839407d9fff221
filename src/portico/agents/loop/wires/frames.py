"""A stream of events with a type each, as Responses and Messages have it."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from portico import surrogates
from portico.agents.loop.reply import Growth, ModelError, NativeCall, Reply, Report, TokensSpent
from portico.kernel.events import Json

T = TypeVar("T")
_decode = msgspec.json.Decoder(dict[str, Any]).decode
JOINED_MAX = 8 * 1024 * 1024
"""Bytes of one event that is spread over several lines, as of one line."""


_SIGNS = re.compile(rb'["{}\[\]]')
_TEXT_SIGNS = re.compile(rb'"|\\.', re.DOTALL)


class JoinedData:
    """Decodes the data of events. One event may have several `data:` lines, which are one text (HTML standard,
    server-sent events): a line that is only the beginning of a JSON object waits for the next ones."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self._size = 0
        self._depth = 0
        self._in_text = False

    def read(self, data: bytes, decode: Callable[[bytes], T], name: str) -> T | None:
        """The event, or None if its JSON is not complete yet."""
        if not self._begun:
            try:
                return surrogates.decode(data, decode)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                if data[:1] != b"{" or not self._is_open(data):
                    raise _no_json(name) from error
        elif not self._is_open(data):
            whole = b"\n".join([*self._begun, data])
            self._clear()
            try:
                return surrogates.decode(whole, decode)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise _no_json(name) from error
        self._begun.append(data)
        self._size += len(data)
        if self._size > JOINED_MAX:
            raise _no_json(name)
        return None

    def end(self, name: str) -> None:
        """A blank line ends the event."""
        if self._begun:
            self._clear()
            raise _no_json(name)

    def _clear(self) -> None:
        self._begun, self._size, self._depth, self._in_text = [], 0, 0, False

    def _is_open(self, data: bytes) -> bool:
        """Whether a bracket or a string of the event is still open after this line. Each line is looked at once."""
        at = 0
        while (found := (_TEXT_SIGNS if self._in_text else _SIGNS).search(data, at)) is not None:
            sign, at = found[0], found.end()
            if sign == b'"':
                self._in_text = not self._in_text
            elif sign in (b"{", b"["):
                self._depth += 1
            elif sign in (b"}", b"]"):
                self._depth -= 1
        still_open = self._depth > 0 or self._in_text
        if not still_open:
            self._depth, self._in_text = 0, False
        return still_open


def _no_json(name: str) -> ModelError:
    return ModelError(f"{name} sent a frame that is not JSON.", again=True)


class EventStream:
    """Reads the frames of one answer; a wire format defines what each event means and what the message is."""

    def __init__(self, name: str, report: Report) -> None:
        self._name = name
        self._report = report
        self._growth = Growth(name)
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._new_texts: list[str] = []
        self._new_thoughts: list[str] = []
        self._finish = ""
        self._usage: TokensSpent | None = None
        self._ended = False
        self._pieces = JoinedData()

    def take(self, lines: list[bytes]) -> bool:
        """One network chunk's lines; True when the answer is complete."""
        try:
            for line in lines:
                data = line[5:].strip() if line.startswith(b"data:") else b""
                if data == b"[DONE]":
                    self._ended = True
                elif data and (event := self._pieces.read(data, _decode, self._name)) is not None:
                    self._event(event)
                elif not line.strip():
                    self._pieces.end(self._name)
                if self._ended:
                    break
        finally:
            self._flush()
        return self._ended

    def take_whole(self, body: bytes) -> Reply:
        """From a server that does not stream."""
        try:
            whole = surrogates.decode(body, _decode)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{self._name} sent an answer that is not JSON.", again=True) from error
        self._whole(whole)
        self._flush()
        return self.reply()

    def _flush(self) -> None:
        if self._new_texts or self._new_thoughts:
            text, thought = "".join(self._new_texts), "".join(self._new_thoughts)
            self._texts.append(text)
            self._thoughts.append(thought)
            self._new_texts, self._new_thoughts = [], []
            self._report(text, thought)

    def _text(self, text: Any) -> None:
        if isinstance(text, str) and text:
            self._growth.add(len(text))
            self._new_texts.append(text)

    def _thought(self, text: Any) -> None:
        if isinstance(text, str) and text:
            self._growth.add(len(text))
            self._new_thoughts.append(text)

    def reply(self) -> Reply:
        if not self._ended and not self._finish:
            raise ModelError(f"The stream of {self._name} ended before the answer did.", again=True)
        message, calls = self._message()
        self._growth.check_calls(len(calls))
        return Reply("".join(self._texts), calls, self._finish, self._usage, message, "".join(self._thoughts))

    def _event(self, event: Json) -> None:
        raise NotImplementedError

    def _whole(self, whole: Json) -> None:
        raise NotImplementedError

    def _message(self) -> tuple[Any, list[NativeCall]]:
        raise NotImplementedError


def number(value: Any) -> int:
    return value if isinstance(value, int) else 0
