"""Stream a model's output to a person while the model is still writing: prose unchanged, of JSON only its prose."""

from typing import Literal

from portico.agents.loop.partial_json import PartialJson
from portico.kernel.turn import Turn

Form = Literal["chat", "native", "text"]
"""An answer as it is; beside native calls, an answer or a call in disguise; a JSON step."""


class VisibleText:
    """The visible text of one step."""

    def __init__(self, turn: Turn, key: str) -> None:
        self._turn = turn
        self._key = key
        self.begin("text")

    def begin(self, form: Form) -> None:
        """Start an attempt."""
        self._form = form
        self._held: list[str] = []
        self._partial = PartialJson()
        self._spoken: list[str] = []
        self._begun = False

    def void(self) -> None:
        """Retract the text of an attempt that broke off."""
        self._turn.retract(self._key)

    def report(self, text: str, reasoning: str) -> None:
        if reasoning:
            self._turn.reasoning(reasoning, self._key)
        if not self._held:
            at = self._json_at(text)
            if text[:at].strip() or (self._begun and at):
                self._begun = True
                self._turn.text(text[:at], self._key)
            text = text[at:]
        if text:
            self._held.append(text)
            said = self._partial.feed(text)
            if said:
                self._spoken.append(said)
                self._turn.text(said, self._key)

    def _json_at(self, text: str) -> int:
        """Where JSON may begin. Beside native calls it is JSON only at the beginning of the text."""
        if self._form == "chat":
            return len(text)
        if self._form == "native":
            return len(text) if self._begun or not text.lstrip().startswith(("{", "[", "<", "`")) else 0
        return min((index for sign in "{`[" if (index := text.find(sign)) >= 0), default=len(text))

    def finish(self, words: str, end: str = "\n") -> None:
        """Send the part of the complete text that has not been sent yet. `end` separates a comment from what follows;
        the last answer has none."""
        spoken = "".join(self._spoken)
        rest = words.removeprefix(spoken) if words.startswith(spoken) else f"\n{words}"
        if words and rest + end:
            self._turn.text(rest + end, self._key)

    def replace(self, words: str) -> None:
        """Replace text that contains calls by the prose beside them."""
        self._turn.correct(self._key, words)

    def release(self) -> None:
        """Send text that looked like JSON and is not."""
        if self._held and not self._spoken:
            self._turn.text("".join(self._held), self._key)
        elif self._held:
            self._turn.correct(self._key, "".join(self._held))
