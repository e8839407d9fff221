"""Reasoning that models write into their text: `<think>` blocks and the channels of Harmony (gpt-oss).

The text streams, and a tag may arrive in pieces. What is reasoning is separated from what is meant for a person. The
message that is sent back to the model keeps its text as it came.
"""

import re
from typing import NamedTuple

TAGS = ("think", "thinking", "thought", "reasoning", "seed:think")
_OPEN = re.compile(r"\s*<(" + "|".join(TAGS) + r")>", re.IGNORECASE)
_CLOSE = re.compile(r"</(?:" + "|".join(TAGS) + r")>\s*", re.IGNORECASE)
_LONE = "</think>"
_TAG_CHARS = 16
"""The longest tag, so that one that arrives in pieces is waited for."""
_MARK = re.compile(r"<\|(start|channel|message|end|return|call|constrain)\|>")
_MARK_CHARS = 14


class Piece(NamedTuple):
    text: str = ""
    thought: str = ""
    void: bool = False
    """What was taken for text so far was reasoning: the opening tag was part of the prompt."""


class ThoughtFilter:
    """Separates one streamed answer. The usual answer has no tags and passes unchanged."""

    def __init__(self) -> None:
        self._held = ""
        self._mode = "start"  # start, text, thought, harmony
        self._thought_before = False
        self._channel = ""
        self._head = ""
        self.calls: list[tuple[str, str]] = []
        """Tool calls that Harmony's commentary channel has: name and arguments."""

    @property
    def passes(self) -> bool:
        """What has no tag in it needs no filter any more."""
        return self._mode == "text" and not self._held

    def feed(self, text: str) -> Piece:
        if self._mode == "text":
            return self._text(text)
        self._held += text
        if self._mode == "start":
            return self._start()
        if self._mode == "thought":
            return self._thought()
        return self._harmony()

    def end(self) -> Piece:
        """What is left when the stream ends."""
        held, self._held = self._held, ""
        if self._mode == "harmony":
            return self._spoken(held)
        return Piece(thought=held) if self._mode == "thought" else Piece(held if held.strip() else "")

    def _start(self) -> Piece:
        begun = self._held.lstrip()
        held = begun if self._thought_before else self._held
        if not begun:
            return Piece()
        if begun[0] != "<":
            self._mode, self._held = "text", ""
            return self._text(held)
        if _MARK.match(begun) is not None:
            self._mode, self._held = "harmony", begun
            return self._harmony()
        match = _OPEN.match(held)
        if match is not None:
            self._mode, self._held = "thought", held[match.end() :]
            return self._thought()
        if ">" in begun[:_TAG_CHARS] or len(begun) >= _TAG_CHARS:
            self._mode, self._held = "text", ""
            return self._text(held)
        return Piece()

    def _text(self, text: str) -> Piece:
        """A closing tag without an opening one: everything before it was reasoning. Only Qwen's and DeepSeek's
        templates do this, and only with `</think>`."""
        text, self._held = self._held + text, ""
        before, tag, after = text.partition(_LONE)
        if tag:
            return Piece(after.lstrip(), before, void=True)
        tail = text.rfind("<", max(0, len(text) - len(_LONE)))
        if tail >= 0 and _LONE.startswith(text[tail:]):  # it may arrive in pieces
            text, self._held = text[:tail], text[tail:]
        return Piece(text)

    def _thought(self) -> Piece:
        match = _CLOSE.search(self._held)
        if match is None:
            keep = self._held.rfind("<", max(0, len(self._held) - _TAG_CHARS))
            keep = len(self._held) if keep < 0 else keep
            thought, self._held = self._held[:keep], self._held[keep:]
            return Piece(thought=thought)
        thought, rest = self._held[: match.start()], self._held[match.end() :]
        self._mode, self._held, self._thought_before = "start", rest, True
        piece = self._start() if rest else Piece()
        return Piece(piece.text, thought + piece.thought, piece.void)

    def _harmony(self) -> Piece:
        text, thought = "", ""
        while (match := _MARK.search(self._held)) is not None:
            piece = self._spoken(self._held[: match.start()])
            text, thought = text + piece.text, thought + piece.thought
            self._held = self._held[match.end() :]
            self._enter(match[1])
        keep = self._held.rfind("<", max(0, len(self._held) - _MARK_CHARS))
        keep = len(self._held) if keep < 0 else keep
        piece = self._spoken(self._held[:keep])
        self._held = self._held[keep:]
        return Piece(text + piece.text, thought + piece.thought)

    def _enter(self, mark: str) -> None:
        if mark == "channel":
            self._head, self._channel = "", "head"
        elif mark == "message":
            recipient = re.search(r"to=(?:functions\.)?([\w.-]+)", self._head)
            if recipient is not None:
                self._channel = "call"
                self.calls.append((recipient[1], ""))
            else:
                self._channel = "thought" if self._head.strip().startswith("analysis") else "text"
        elif mark == "start":
            self._channel, self._head = "head", ""
        elif mark in ("end", "return", "call"):
            self._channel = ""

    def _spoken(self, text: str) -> Piece:
        if not text:
            return Piece()
        if self._channel == "head":
            self._head += text
        elif self._channel == "call":
            name, arguments = self.calls[-1]
            self.calls[-1] = (name, arguments + text)
        elif self._channel == "thought":
            return Piece(thought=text)
        elif self._channel == "text":
            return Piece(text)
        return Piece()
